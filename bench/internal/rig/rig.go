// Package rig is shared by the benchmarks: it starts the servers and the services that `make build` made as child
// processes (rig.go), reads their CPU and memory (process.go), publishes events (publish.go), and sums up figures
// (stat.go).
package rig

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/secret"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/backend"
	"github.com/parley-chat/parley/testkit/nettest"
)

// Rig is the environment of one measurement: a directory, the embedded servers, and the processes started on them.
// It is for one goroutine.
type Rig struct {
	Engines *Process
	Demo    Demo

	bin       string
	dir       string
	env       []string          // of all services
	vars      map[string]string // that the servers printed
	processes []*Process
	started   int
}

// Demo is the seeded demo company.
type Demo struct {
	AccessToken string `json:"accessToken"`
	CompanyID   string `json:"companyId"`
	AppID       string `json:"appId"`
}

// Service is a running service.
type Service struct {
	*Process
	Addr string // host:port of its API
	Ops  string // host:port of its health checks and metrics
}

// unlimited are settings for callers that share one token and one address, and for streams that a minute of load fills
// with hundreds of megabytes: a full one would reject events.
func unlimited() []string {
	return []string{"LIMITS=none", "LOG_LEVEL=WARN", "STREAM_MAX_BYTES=" + strconv.Itoa(16<<30)}
}

// Open starts the embedded servers. The caller closes the rig.
func Open(bin string) (*Rig, error) {
	dir, err := os.MkdirTemp("", "parley-bench-")
	if err != nil {
		return nil, err
	}
	r := &Rig{bin: bin, dir: dir, env: unlimited()}
	if err := r.startEngines(); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func (r *Rig) startEngines() (err error) {
	data := r.Path("data")
	env := []string{"PARLEY_DATA_DIR=" + data, "PARLEY_NATS_ADDR=127.0.0.1:0"}
	if r.Engines, err = r.Start("engines", env, filepath.Join(r.bin, "standalone"), "engines"); err != nil {
		return err
	}
	r.vars, err = r.Engines.ReadVariables("NATS_URL", "SQLITE_PATH", "SECRETS_KEY_FILE", "VISITOR_KEYS_FILE")
	if err != nil {
		return err
	}
	for name, value := range r.vars {
		r.env = append(r.env, name+"="+value)
	}
	file, err := os.ReadFile(filepath.Join(data, "demo.json"))
	if err != nil {
		return err
	}
	return json.Unmarshal(file, &r.Demo)
}

// Close stops everything, the servers last.
func (r *Rig) Close() {
	for i := len(r.processes) - 1; i >= 0; i-- {
		r.processes[i].Stop()
	}
	_ = os.RemoveAll(r.dir)
}

// Path returns a path in the rig's directory.
func (r *Rig) Path(name string) string { return filepath.Join(r.dir, name) }

// Start starts a program; its log is in the rig's directory. Close stops it if the caller does not.
func (r *Rig) Start(name string, env []string, program string, args ...string) (*Process, error) {
	r.started++
	log := r.Path(name + "-" + strconv.Itoa(r.started) + ".log")
	p, err := start(append(r.env[:len(r.env):len(r.env)], env...), log, program, args...)
	if err == nil {
		r.processes = append(r.processes, p)
	}
	return p, err
}

// Serve starts a program that takes HTTP_ADDR and OPS_ADDR, and returns when it is ready.
func (r *Rig) Serve(ctx context.Context, name string, env []string, program string, args ...string) (*Service, error) {
	s := &Service{Addr: FreeAddr(), Ops: FreeAddr()}
	env = append(env, "HTTP_ADDR="+s.Addr, "OPS_ADDR="+s.Ops)
	var err error
	if s.Process, err = r.Start(name, env, program, args...); err != nil {
		return nil, err
	}
	s.drain()
	err = Await(ctx, name+" is ready", func() bool { return Answers(ctx, "http://"+s.Ops+"/readyz") })
	return s, err
}

// Service starts one of our services.
func (r *Rig) Service(ctx context.Context, name string, env ...string) (*Service, error) {
	return r.Serve(ctx, name, env, filepath.Join(r.bin, name))
}

// NATSURL returns the address of the embedded NATS.
func (r *Rig) NATSURL() string { return r.vars["NATS_URL"] }

// OpenBus returns a connection to the streams.
func (r *Rig) OpenBus(ctx context.Context) (*bus.Bus, error) {
	b, err := bus.Open(bus.Config{
		URL: r.NATSURL(), Name: "bench", Observe: true, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	return b, Await(ctx, "the bus is ready", func() bool { return b.Ready(ctx) == nil })
}

// OpenStore opens the database of the services.
func (r *Rig) OpenStore() (store.Store, error) {
	keys, err := secret.Load(r.vars["SECRETS_KEY_FILE"])
	if err != nil {
		return nil, err
	}
	return backend.Open(backend.Config{
		Keys:    keys,
		Store:   config.Store{SQLitePath: r.vars["SQLITE_PATH"]},
		AppName: "bench",
		Logger:  slog.New(slog.DiscardHandler),
	})
}

// VisitorKeys returns the keys that sign visitors' tokens.
func (r *Rig) VisitorKeys() (*credential.KeySet, error) {
	return credential.LoadKeySet(r.vars["VISITOR_KEYS_FILE"])
}

// FreeAddr is [nettest.FreeAddr]; if there is no free address, the system chooses a port, and readiness checks then
// fail.
func FreeAddr() string {
	addr, err := nettest.FreeAddr()
	if err != nil {
		return "127.0.0.1:0"
	}
	return addr
}
