package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/secret"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/backend"
	"github.com/parley-chat/parley/testkit/nettest"
)

// deployment is the environment of one measurement: a directory, the embedded servers, and the processes started on
// them. It is for the goroutine of the part, which an error ends. close stops everything, the latest first.
type deployment struct {
	bench    *bench
	engines  *process
	servers  []*process // of NATS, beside the embedded one
	redis    *process
	replicas []*service // the gateways or processors under test
	demo     demo
	bus      *bus.Bus
	store    store.Store        // the services' database
	keys     *credential.KeySet // sign visitors' tokens

	transport http.Transport // of the HTTP loads
	visitors  []visitor
	clients   []*client // the visitors' sockets
	trials    int

	dir       string
	engineEnv []string          // of the embedded servers, more than of all
	env       []string          // of all services
	vars      map[string]string // that the servers printed
	cleanups  []func()
}

// demo is the seeded demo company.
type demo struct {
	AccessToken string `json:"accessToken"`
	CompanyID   string `json:"companyId"`
	AppID       string `json:"appId"`
}

// service is a running service.
type service struct {
	*process
	addr string // host:port of its API
	ops  string // URL of its health checks and metrics
}

// newDeployment returns a deployment without servers. The caller closes it.
func (b *bench) newDeployment() *deployment {
	dir, err := os.MkdirTemp("", "parley-bench-")
	b.check(err)
	d := &deployment{bench: b, dir: dir}
	d.transport.MaxConnsPerHost = 4 * connections
	d.transport.MaxIdleConnsPerHost = 4 * connections
	d.cleanup(func() { _ = os.RemoveAll(dir) })
	return d
}

// check is [bench.check].
func (d *deployment) check(err error) { d.bench.check(err) }

func (d *deployment) cleanup(f func()) { d.cleanups = append(d.cleanups, f) }

func (d *deployment) close() {
	for i := len(d.cleanups) - 1; i >= 0; i-- {
		d.cleanups[i]()
	}
}

// open starts the embedded servers, and connects to them as services do.
func (d *deployment) open(ctx context.Context) {
	// For callers that share one token and one address, and for streams that a minute of load fills with hundreds of
	// megabytes: a full one would reject events.
	d.env = []string{"LIMITS=none", "LOG_LEVEL=WARN", "STREAM_MAX_BYTES=" + strconv.Itoa(16<<30)}
	d.startEngines()
	secrets, err := secret.Load(d.vars["SECRETS_KEY_FILE"])
	d.check(err)
	d.keys, err = credential.LoadKeySet(d.vars["VISITOR_KEYS_FILE"])
	d.check(err)
	logger := slog.New(slog.DiscardHandler)
	database := config.Store{SQLitePath: d.vars["SQLITE_PATH"]}
	d.store, err = backend.Open(backend.Config{Keys: secrets, Store: database, AppName: "bench", Logger: logger})
	d.check(err)
	d.cleanup(func() { _ = backend.Close(d.store) })
	d.bus, err = bus.Open(bus.Config{URL: d.vars["NATS_URL"], Name: "bench", Observe: true, Logger: logger})
	d.check(err)
	d.cleanup(d.bus.Close)
	d.await(ctx, "the bus is ready", func() bool { return d.bus.Ready(ctx) == nil })
}

func (d *deployment) startEngines() {
	data := filepath.Join(d.dir, "data")
	env := append([]string{"PARLEY_DATA_DIR=" + data, "PARLEY_NATS_ADDR=127.0.0.1:0"}, d.engineEnv...)
	d.engines = d.start(env, "bin/standalone", "engines")
	d.vars = d.readVariables(d.engines, "NATS_URL", "SQLITE_PATH", "SECRETS_KEY_FILE", "VISITOR_KEYS_FILE")
	for name, value := range d.vars {
		d.env = append(d.env, name+"="+value)
	}
	file, err := os.ReadFile(filepath.Join(data, "demo.json"))
	d.check(err)
	d.check(json.Unmarshal(file, &d.demo))
}

// serve starts a program that takes HTTP_ADDR and OPS_ADDR, and returns when it is ready.
func (d *deployment) serve(ctx context.Context, env []string, program string, args ...string) *service {
	ops := d.freeAddr()
	s := &service{addr: d.freeAddr(), ops: "http://" + ops}
	env = slices.Concat(env, []string{"HTTP_ADDR=" + s.addr, "OPS_ADDR=" + ops})
	s.process = d.start(env, program, args...)
	s.drain()
	d.await(ctx, program+" is ready", func() bool { return answers(s.ops + "/readyz") })
	return s
}

// await calls done until it returns true, for at most a minute.
func (d *deployment) await(ctx context.Context, what string, done func() bool) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for !done() {
		if ctx.Err() != nil {
			d.check(fmt.Errorf("did not happen in a minute: %s", what))
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// freeAddr is [nettest.FreeAddr].
func (d *deployment) freeAddr() string {
	addr, err := nettest.FreeAddr()
	d.check(err)
	return addr
}

// visitor is a visitor of the demo application.
type visitor struct{ id, chatID, token string }

// newVisitors returns visitors with valid tokens. The store has no records of them.
func (d *deployment) newVisitors(n int) []visitor {
	visitors := make([]visitor, n)
	now := time.Now()
	for i := range visitors {
		id := uuid.NewString()
		token, err := d.keys.Sign(credential.VisitorClaims{
			ChatUserID: id, AppID: d.demo.AppID, CompanyID: d.demo.CompanyID, TokenID: uuid.NewString(),
			IssuedAt: now, ExpiresAt: now.Add(24 * time.Hour),
		})
		d.check(err)
		visitors[i] = visitor{id: id, chatID: uuid.NewString(), token: token}
	}
	return visitors
}

// register writes n visitors with an open chat directly to the store.
func (d *deployment) register(ctx context.Context, n int) []visitor {
	visitors := d.newVisitors(n)
	d.parallel(ctx, n, func(ctx context.Context, i int) error {
		registered, err := d.store.Register(ctx, store.Registration{
			Visitor: chat.Visitor{
				ID: visitors[i].id, CompanyID: d.demo.CompanyID, AppID: d.demo.AppID, FirstName: "Ada",
			},
			Chat: &store.NewChat{Channel: chat.ChannelWidget, Now: time.Now()},
		})
		if err == nil {
			visitors[i].chatID = registered.Chat.ID
		}
		return err
	})
	return visitors
}

// write adds n messages to each visitor's chat, and returns the ids of the last visitor's.
func (d *deployment) write(ctx context.Context, visitors []visitor, n int) []string {
	ids := make([]string, n)
	d.parallel(ctx, len(visitors), func(ctx context.Context, i int) error {
		for k := range n {
			m := newMessage(messageData)
			if err := d.store.AppendMessage(ctx, visitors[i].chatID, m); err != nil {
				return err
			}
			if i == len(visitors)-1 {
				ids[k] = m.ID
			}
		}
		return nil
	})
	return ids
}

// parallel calls do for 0 to n-1, several at once.
func (d *deployment) parallel(ctx context.Context, n int, do func(ctx context.Context, i int) error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4 * connections)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	d.check(group.Wait())
}
