package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/secret"
	"github.com/parley-chat/parley/services/processor"
	"github.com/parley-chat/parley/testkit/needs"
	"github.com/parley-chat/parley/testkit/nettest"
	"github.com/parley-chat/parley/testkit/opstest"
	"github.com/parley-chat/parley/testkit/tlstest"
)

// deployment is Parley as separate processes on one machine: the services, the real NATS and Redis servers,
// and a SQLite file that `standalone engines` has seeded.
type deployment struct {
	place
	t    *testing.T // of the whole test: a process outlives the subtest that started it
	dir  string
	addr map[string]string // of every process, by name
	ops  map[string]string // of every service

	services []string
	settings []string           // further settings of every service
	streams  []string           // settings of the streams
	accounts bool               // NATS authenticates users, as deploy/nats configures it
	tls      *tlstest.Authority // of Redis's certificate; nil: Redis without TLS
	pics     string             // address of the demo bot's picture
	run      map[string]*child
}

// natsMaxFileStore exceeds what the streams reserve, whatever the disk has: by default nats-server offers 75% of its
// free space, and refuses streams that reserve more.
const natsMaxFileStore = "1TB"

// newDeployment allocates the addresses without starting anything.
func newDeployment(t *testing.T, gateways int) *deployment {
	t.Helper()
	needs.Program(t, "redis-server")
	f := &deployment{t: t, dir: t.TempDir(), addr: map[string]string{}, ops: map[string]string{}, run: map[string]*child{}}
	f.services = []string{"client-api", "widget-api", "processor"}
	for n := range gateways {
		f.services = append(f.services, gatewayName(n))
	}
	var err error
	for _, name := range append([]string{"nats", "redis"}, f.services...) {
		f.addr[name], err = nettest.FreeAddr()
		check(t, err)
	}
	for _, name := range f.services {
		f.ops[name], err = nettest.FreeAddr()
		check(t, err)
	}
	f.NATSURL = f.natsURL("watcher")
	for n := range gateways {
		f.SocketURLs = append(f.SocketURLs, "http://"+f.addr[gatewayName(n)])
	}
	assets := httptest.NewServer(http.StripPrefix(strings.TrimSuffix(processor.DemoAssetsPath, "/"), http.FileServerFS(processor.DemoAssets())))
	t.Cleanup(assets.Close)
	f.pics = assets.URL
	f.createData(t, filepath.Join(f.dir, "data"))
	return f
}

// createData creates the folder of the store, with the keys of the services.
func (f *deployment) createData(t *testing.T, dir string) {
	t.Helper()
	f.SQLitePath = filepath.Join(dir, "parley.db")
	f.KeysFile = filepath.Join(dir, "visitor-keys.json")
	f.Secrets = filepath.Join(dir, "secrets-key.json")
	keys, err := credential.GenerateKeySet()
	check(t, err)
	check(t, os.MkdirAll(dir, 0o700))
	check(t, os.WriteFile(f.KeysFile, keys, 0o600))
	secrets, err := secret.Generate(time.Now())
	check(t, err)
	check(t, os.WriteFile(f.Secrets, secrets, 0o600))
}

func gatewayName(n int) string { return fmt.Sprintf("gateway-%d", n+1) }

// start starts or restarts a process.
func (f *deployment) start(t *testing.T, name string) {
	t.Helper()
	path, settings, args := f.command(t, name)
	c, err := spawn(name, settings, path, args...)
	check(t, err)
	c.stopAtEnd(f.t)
	f.run[name] = c
	if name == "nats" {
		f.applyStreams(t)
		if f.run["nats-sync"] == nil { // it outlives the server
			f.start(t, "nats-sync")
		}
	}
	if len(f.settings) > 0 {
		c.stderr.keepAll()
	}
	if name == "mongodb" {
		_, err := c.await("MONGODB_URI=")
		check(t, err)
	}
	if name == "seed" { // it seeds the demo company before it prints its settings
		_, err := c.await("VISITOR_KEYS_FILE=")
		check(t, err)
		f.Demo, err = readDemo(filepath.Dir(f.SQLitePath))
		check(t, err)
		f.NATSURL = f.natsURL("watcher")
	}
}

// applyStreams runs the operator's commands that precede the services.
func (f *deployment) applyStreams(t *testing.T) {
	t.Helper()
	c := exec.CommandContext(t.Context(), program(t, "parleyctl"), "streams", "apply", "--wait", limit.String())
	c.Env = append(os.Environ(), "NATS_URL="+f.natsURL("operator"))
	c.Env = append(c.Env, f.streams...)
	if f.addr["mongodb"] == "" { // FerretDB has no TTL indexes
		c.Env = append(c.Env, f.storeSettings()...)
	}
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("parleyctl streams apply: %v\n%s", err, out)
	}
}

// redisURL returns the URL for a user of Redis.
func (f *deployment) redisURL(user string) string {
	scheme, login := "redis://", ""
	if f.tls != nil {
		scheme = "rediss://"
	}
	if f.accounts {
		login = user + ":" + passwordOf(user) + "@"
	}
	return scheme + login + f.addr["redis"]
}

// natsURL returns the URL for a user of NATS.
func (f *deployment) natsURL(user string) string {
	if !f.accounts {
		return "nats://" + f.addr["nats"]
	}
	return "nats://" + user + ":" + passwordOf(user) + "@" + f.addr["nats"]
}

func (f *deployment) command(t *testing.T, name string) (path string, settings, args []string) {
	t.Helper()
	host, port, _ := strings.Cut(f.addr[name], ":")
	switch name {
	case "nats":
		config := filepath.Join(root(), "deploy/nats/nats-server.conf")
		if !f.accounts {
			config = filepath.Join(f.dir, "nats-server.conf")
			check(t, os.WriteFile(config, []byte("jetstream: {max_file_store: "+natsMaxFileStore+"}\n"), 0o600))
		}
		args = []string{"-c", config, "-a", host, "-p", port, "-js", "-sd", filepath.Join(f.dir, "nats")}
		return program(t, "nats-server"), natsPasswords(), args
	case "nats-sync":
		return program(t, "parleyctl"), []string{"NATS_URL=" + f.natsURL("syncer")}, []string{
			"streams", "sync", "--store-dir", filepath.Join(f.dir, "nats"),
		}
	case "redis":
		args = []string{"--bind", host, "--port", port, "--save", "", "--dir", f.dir}
		if f.tls != nil {
			args = append(args, "--port", "0", "--tls-port", port, "--tls-auth-clients", "no", "--tls-ca-cert-file", f.tls.Path("authority"),
				"--tls-cert-file", f.tls.Path("redis"), "--tls-key-file", f.tls.Path("redis-key"))
		}
		if f.accounts {
			needs.Program(t, "redis-server")
			return filepath.Join(root(), "deploy/redis/start.sh"), redisPasswords(f.dir), args
		}
		return needs.Program(t, "redis-server"), nil, args
	case "mongodb":
		return program(t, "ferretdb"), nil, []string{"-addr", f.addr[name], "-dir", filepath.Join(f.dir, "ferretdb")}
	case "seed":
		return program(t, "standalone"), []string{
			"PARLEY_NATS_ADDR=127.0.0.1:0", "PARLEY_DATA_DIR=" + filepath.Dir(f.SQLitePath),
			"PARLEY_CLIENT_ADDR=" + f.addr["client-api"], "PARLEY_WIDGET_ADDR=" + f.addr["widget-api"],
		}, []string{"engines"}
	}
	binary := strings.TrimRight(name, "-0123456789") // of the second one, such as processor-2
	if binary == "gateway" {
		binary = "socket-gateway"
	}
	return program(t, binary), append([]string{
		"WIDGET_URL=http://" + f.addr["widget-api"], "CLIENT_URL=http://" + f.addr["client-api"], // of the panel
		"HTTP_ADDR=" + f.addr[name], "OPS_ADDR=" + f.ops[name], "LOG_LEVEL=WARN",
		"NATS_URL=" + f.natsURL(binary), "REDIS_URL=" + f.redisURL(binary),
		"VISITOR_KEYS_FILE=" + f.KeysFile, "SECRETS_KEY_FILE=" + f.Secrets, "JWKS_URL=http://" + f.addr["widget-api"] + "/.well-known/jwks.json",
		"ASSETS_URL=" + f.pics,
		"LIMITS=none",          // all clients share one address here
		"PHONE_CONNECTOR=true", // the tests read what is sent to phones
	}, append(f.storeSettings(), f.settings...)...), nil
}

func (f *deployment) storeSettings() []string {
	if f.MongoDB != "" {
		return []string{"MONGODB_URI=" + f.MongoDB, "MONGODB_DATABASE=" + f.Database}
	}
	return []string{"SQLITE_PATH=" + f.SQLitePath}
}

// asOperator returns the place with the permission to read every stream.
func (f *deployment) asOperator() place {
	p := f.place
	p.NATSURL = f.natsURL("operator")
	return p
}

// awaitReady waits until the readiness of every service has that status; with 200 all of their dependencies
// must be up too.
func (f *deployment) awaitReady(t *testing.T, status int, names ...string) {
	t.Helper()
	f.awaitState(t, func(s opstest.State) bool {
		if status == http.StatusOK {
			return s.AllUp()
		}
		return s.Status != "" && !s.Ready
	}, names...)
}

// awaitDown waits until every service reports a dependency as down; they stay ready.
func (f *deployment) awaitDown(t *testing.T, dependency string, names ...string) {
	t.Helper()
	f.awaitState(t, func(s opstest.State) bool { return s.Down(dependency) && s.Ready }, names...)
}

func (f *deployment) awaitState(t *testing.T, wanted func(opstest.State) bool, names ...string) {
	t.Helper()
	for _, name := range names {
		eventually(t, name, func() error {
			state, err := opstest.Read("http://" + f.ops[name])
			if err == nil && !wanted(state) {
				err = fmt.Errorf("readyz: got %+v", state)
			}
			return err
		})
	}
}

// TestDeploymentThroughFaults runs the session flow and then stops one component after the other under load.
func TestDeploymentThroughFaults(t *testing.T) {
	f := newDeployment(t, 2)
	f.accounts = true
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	for _, name := range f.services { // before their engines: they wait
		f.start(t, name)
	}
	f.awaitReady(t, http.StatusServiceUnavailable, f.services...)
	for _, engine := range []string{"seed", "nats", "redis"} {
		f.start(t, engine)
	}
	f.awaitReady(t, http.StatusOK, f.services...)

	t.Run("session over websocket", func(t *testing.T) { session(t, f.place, "websocket") })
	t.Run("session over polling", func(t *testing.T) { session(t, f.place, "polling") })
	t.Run("twenty large uploads at once", f.largeUploads)
	for range rounds() {
		t.Run("NATS down", f.natsDown)
		t.Run("Redis down", f.redisDown)
		t.Run("Redis forgets everything", f.redisForgets)
		t.Run("processor down", f.processorDown)
		t.Run("gateway away", f.gatewayOutage)
	}
	t.Run("session after all of it", func(t *testing.T) { session(t, f.place, "polling", "websocket") })
	for _, name := range f.services {
		if code, err := f.run[name].stop(); err != nil || code != 0 {
			t.Errorf("stopping %s: got code %d, %v, want 0", name, code, err)
		}
	}
}

func (f *deployment) natsDown(t *testing.T) {
	traffic := startTraffic(t, f.place)
	traffic.await(t, "traffic", &traffic.accepted, 30)
	check(t, f.run["nats"].kill())
	traffic.await(t, "503 while NATS is down", &traffic.refused, 5)
	f.awaitDown(t, "nats", f.services...)
	f.start(t, "nats")
	traffic.await(t, "traffic after NATS is back", &traffic.accepted, 30)
	f.awaitReady(t, http.StatusOK, f.services...)
	traffic.checkNothingLost(t, f.asOperator())
}

func (f *deployment) redisDown(t *testing.T) {
	v := register(t, f.place, f.widgetAPI(t))
	s := connected(t, f.SocketURLs[1], v.token, "websocket")
	v.write(t, "before")
	s.next(t)
	if _, err := f.run["redis"].stop(); err != nil {
		t.Fatal(err)
	}
	f.awaitDown(t, "redis", "gateway-1", "gateway-2")
	before := len(v.history(t))
	v.write(t, "menu") // accepted and answered, though no socket can deliver it
	eventually(t, "the bot's answer in the history", func() error {
		if got := len(v.history(t)); got != before+2 {
			return fmt.Errorf("got %d messages, want %d", got, before+2)
		}
		return nil
	})
	f.start(t, "redis")
	f.awaitReady(t, http.StatusOK, "gateway-1", "gateway-2")
	mine := v.write(t, "after")
	for {
		if d := s.next(t); strings.Contains(d.member(t, "text"), "after") && d.CreatedAt >= mine.CreatedAt {
			return // earlier answers may arrive before it
		}
	}
}

func (f *deployment) processorDown(t *testing.T) {
	traffic := startTraffic(t, f.place)
	traffic.await(t, "traffic", &traffic.accepted, 30)
	check(t, f.run["processor"].kill())
	traffic.await(t, "traffic without a processor", &traffic.accepted, 30)
	f.start(t, "processor")
	traffic.checkNothingLost(t, f.asOperator())
	v := register(t, f.place, f.widgetAPI(t))
	s := connected(t, f.SocketURLs[0], v.token, "websocket")
	v.write(t, "hello again")
	s.next(t)
}

// gatewayOutage stops a gateway with connected sockets: the official client reconnects by itself, and the
// history has what it missed.
func (f *deployment) gatewayOutage(t *testing.T) {
	v := register(t, f.place, f.widgetAPI(t))
	s := connected(t, f.SocketURLs[0], v.token, "websocket")
	other := connected(t, f.SocketURLs[1], v.token, "websocket")
	received := append(v.history(t), v.write(t, "before"))
	received = append(received, other.next(t).record)
	s.next(t)
	check(t, f.run["gateway-1"].kill())
	s.await(t, "disconnect")
	received = append(received, v.write(t, "meanwhile"))
	received = append(received, other.next(t).record) // the other gateway continues
	f.start(t, "gateway-1")
	s.await(t, "connect")
	received = append(received, v.write(t, "after"))
	after := other.next(t)
	received = append(received, after.record)
	for d := s.next(t); !d.same(after.record); d = s.next(t) { // missed messages may arrive before it
		if !strings.Contains(d.member(t, "text"), "meanwhile") {
			t.Errorf("socket: got %s, want nothing but what it missed and then %s", d.Data, after.Data)
		}
	}
	checkHistory(t, v, received)
}
