package e2e

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-chat/parley/testkit/nemesis"
	"github.com/parley-chat/parley/testkit/proxy"
)

// nemesisWorld is a deployment that faults hit. It owns the processes, the network between them, and their clocks, and
// records what clients did and saw.
//
// It begins with newNemesisWorld and ends with its test.
type nemesisWorld struct {
	*deployment
	seed   uint64
	logs   string // the folder for the output of the processes; empty: it is not kept
	record *nemesis.Record

	clustered bool     // three NATS servers
	nats      []string // the servers' names
	machines  map[string]machine
	disks     map[string]machine // those that may be slow or full
	units     map[string]*unit
	restarts  atomic.Int64            // of processes that had read a message that was not on the disk yet
	links     map[string]*proxy.Proxy // by name, such as gateway-1-redis
	busy      map[string]*sync.Mutex  // of each target: one fault at a time

	company, widget, panel *api

	endpoint *nemesisEndpoint // of the company
	model    *nemesisModel    // nil: the demo bot answers
	legacy   bool             // some clients have version 2
	guests   []*guest
	agents   []*agent
	writers  []*companyWriter
	over     context.Context // ends when actors give up what they began

	texts            atomic.Int64 // makes each text unique
	sides            sync.Map     // the side that wrote a text
	accepted, failed atomic.Int64 // attempts

	mu     sync.Mutex          // guards the rest
	sent   []string            // ids of the company's messages
	broken []nemesis.Violation // of rules that the record cannot show
}

// nemesisServices are the services of a deployment beside those of newDeployment.
var nemesisServices = []string{"processor-2", "widget-api-2", "panel"}

// nemesisGateways is the number of gateways; one more starts in a scale-up.
const nemesisGateways = 2

// nemesisBin builds the services so that a file sets their clocks (NEMESIS_CLOCK).
var nemesisBin = sync.OnceValues(func() (string, error) {
	if builtPrograms != "" {
		return builtPrograms, nil
	}
	dir, err := os.MkdirTemp("", "parley-nemesis-bin")
	if err != nil {
		return "", err
	}
	closeLater(func() { os.RemoveAll(dir) })
	return dir, build(dir, append([]string{"-tags=nemesis", servicesPath + "standalone"}, serviceCommands()...)...)
})

// newNemesisWorld allocates the addresses without starting anything.
func newNemesisWorld(t *testing.T, seed uint64, logs string) *nemesisWorld {
	t.Helper()
	w := &nemesisWorld{
		deployment: newDeployment(t, nemesisGateways+1),
		seed:       seed,
		logs:       logs,
		record:     &nemesis.Record{},
		units:      map[string]*unit{},
		links:      map[string]*proxy.Proxy{},
		machines:   map[string]machine{},
		disks:      map[string]machine{},
		busy:       map[string]*sync.Mutex{},
	}
	for _, name := range nemesisServices {
		w.add(t, name)
	}
	return w
}

// topology returns what starts the processes: services with one NATS server or three, or a single process.
func (w *nemesisWorld) topology() (start func(t *testing.T, w *nemesisWorld)) {
	switch w.chance("topology").IntN(4) {
	case 0:
		if mayCut() {
			return startCluster
		}
	case 1:
		return standaloneDisks[w.chance("disks").IntN(len(standaloneDisks))].start
	}
	return startServices
}

// startServices starts the services with one NATS server, and startCluster with three.
func startServices(t *testing.T, w *nemesisWorld) { w.startServices(t, false) }
func startCluster(t *testing.T, w *nemesisWorld)  { w.startServices(t, true) }

// startServices starts the engines, the network and the services, and returns when all are ready.
func (w *nemesisWorld) startServices(t *testing.T, clustered bool) {
	t.Helper()
	w.clustered = clustered
	w.streams = []string{"STREAM_PARTITIONS=4"} // fewer consumers: the server starts faster
	w.settings = []string{
		"WEBHOOK_ALLOW_CIDRS=127.0.0.0/8",
		"WEBHOOK_TIMEOUT=2s",
		"BOT_FAILURE_TEXT=" + nemesis.FailureText,
	}
	if w.chance("model").IntN(2) == 0 {
		w.model = w.newModel(t)
	}
	w.legacy = w.chance("legacy clients").IntN(2) == 0
	if w.legacy {
		w.settings = append(w.settings, "SOCKETIO_LEGACY=true", "TMPDIR="+w.dir) // a killed gateway leaves its socket
	}
	t.Logf("services; disks that forget: %v; three NATS servers: %v", mayCut(), clustered)
	onMongoDB := w.chance("store").IntN(3) == 0
	t.Logf("a language model: %v; clients of version 2: %v; MongoDB: %v", w.model != nil, w.legacy, onMongoDB)
	if mayCut() && !onMongoDB {
		disk := newCuttable(t, filepath.Join(w.dir, "store"))
		w.createData(t, disk.mount)
		w.disks[targetStore] = machine{disks: []*cuttable{disk}}
	}
	w.start(t, "seed")
	_, err := w.run["seed"].stop()
	check(t, err)
	if onMongoDB {
		w.startMongoDB(t)
	}
	if clustered {
		w.startServers(t)
	} else {
		w.startServer(t)
	}
	path, settings, args := w.command(t, "redis")
	w.supervise(t, "redis", func() (*child, error) { return spawn("redis", settings, path, args...) })
	for _, name := range w.services {
		w.link(t, name+"-nats", w.nats...)
		w.link(t, name+"-redis", "redis")
		if onMongoDB {
			w.link(t, name+"-mongodb", "mongodb")
		}
	}
	var gateways []string
	for n := range nemesisGateways + 1 {
		gateways = append(gateways, gatewayName(n))
	}
	w.linkClients(t, gateways, "client-api", "panel", "widget-api", "widget-api-2")
	if w.model != nil {
		w.model.configure(t)
	}
	for _, name := range w.services {
		w.startService(t, name)
	}
	check(t, w.units[w.spare()].kill())
	w.awaitReady(t, http.StatusOK, w.running()...)
}

// mayCut reports whether disks that forget can be mounted here.
func mayCut() bool {
	device, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	device.Close()
	_, err = exec.LookPath("fusermount3")
	return err == nil || os.Geteuid() == 0
}

// spare returns the gateway that runs in a scale-up only.
func (w *nemesisWorld) spare() string { return gatewayName(nemesisGateways) }

// client returns a client of an API whose patience is that of a person.
func (w *nemesisWorld) client(t *testing.T, base string) *api {
	t.Helper()
	a := newAPI(t, base)
	a.client.Timeout = requestTimeout
	return a
}

// requestTimeout is how long a client waits for a response before it tries again.
const requestTimeout = 10 * time.Second

// machine is what loses power at once: processes, and their disks.
type machine struct {
	processes []string // in the order in which they start
	disks     []*cuttable
}

// startServer starts one NATS server with the syncer beside it.
func (w *nemesisWorld) startServer(t *testing.T) {
	t.Helper()
	w.nats = []string{"nats"}
	of := machine{processes: []string{"nats", "nats-sync"}}
	if mayCut() {
		of.disks = append(of.disks, newCuttable(t, filepath.Join(w.dir, "nats")))
		w.machines[targetDisk] = of
		w.disks[targetDisk] = of
	}
	for _, name := range of.processes {
		path, settings, args := w.command(t, name)
		w.supervise(t, name, func() (*child, error) { return spawn(name, settings, path, args...) })
		if name == "nats" {
			w.applyStreams(t)
		}
	}
}

// startMongoDB starts FerretDB, and moves what is seeded there.
func (w *nemesisWorld) startMongoDB(t *testing.T) {
	t.Helper()
	w.addMongoDB(t)
	path, settings, args := w.command(t, "mongodb")
	w.supervise(t, "mongodb", func() (*child, error) {
		c, err := spawn("mongodb", settings, path, args...)
		if err == nil {
			_, err = c.await("MONGODB_URI=")
		}
		return c, err
	})
	w.migrate(t)
}

// startServers starts three NATS servers that sync each event.
func (w *nemesisWorld) startServers(t *testing.T) {
	t.Helper()
	cluster := configureNATSCluster(t)
	var all machine
	for n, s := range cluster.servers {
		name := fmt.Sprintf("nats-%d", n+1)
		w.nats = append(w.nats, name)
		w.addr[name] = s.addr
		w.supervise(t, name, func() (*child, error) { return s.spawn(t) })
		w.machines[name+"-disk"] = machine{processes: []string{name}, disks: []*cuttable{s.disk}}
		w.disks[name+"-disk"] = w.machines[name+"-disk"]
		all.processes = append(all.processes, name)
		all.disks = append(all.disks, s.disk)
	}
	w.machines[targetDisk] = all
	w.addr["nats"] = strings.TrimPrefix(cluster.url(), "nats://")
	w.NATSURL = w.natsURL("watcher")
	w.streams = append(w.streams, "STREAM_REPLICAS=3")
	w.applyStreams(t)
}

// supervise starts a process that faults hit. Its output is kept with the report.
func (w *nemesisWorld) supervise(t *testing.T, name string, start func() (*child, error)) {
	t.Helper()
	log := w.log(t, name)
	w.units[name] = supervise(t, name, &w.restarts, func() (*child, error) {
		c, err := start()
		if err != nil || log == nil {
			return c, err
		}
		return c, c.stderr.copyTo(log)
	})
	w.busy[name] = &sync.Mutex{}
}

// log opens the file for a process's output; nil: it is not kept.
func (w *nemesisWorld) log(t *testing.T, name string) io.Writer {
	t.Helper()
	if w.logs == "" {
		return nil
	}
	check(t, os.MkdirAll(w.logs, 0o755))
	file, err := os.Create(filepath.Join(w.logs, name+".log"))
	check(t, err)
	t.Cleanup(func() { file.Close() })
	return file
}

// linkClients starts a link for the clients of each API. The place has their addresses.
func (w *nemesisWorld) linkClients(t *testing.T, gateways []string, company, panel string, widget ...string) {
	t.Helper()
	w.SocketURLs = []string{w.link(t, "clients-gateways", gateways...)}
	w.WidgetBaseURL = w.link(t, "clients-widget-api", widget...)
	w.ClientBaseURL = w.link(t, "clients-client-api", company)
	w.PanelURL = w.link(t, "clients-panel", panel)
}

// link starts a link to processes, and returns its URL.
func (w *nemesisWorld) link(t *testing.T, name string, to ...string) string {
	t.Helper()
	var targets []string
	for _, process := range to {
		targets = append(targets, w.addr[process])
	}
	w.links[name] = proxy.Start(t, targets...)
	w.busy[name] = &sync.Mutex{}
	return "http://" + w.links[name].Addr()
}

// startService starts a service, which reaches the engines over its links, with a clock of its own.
func (w *nemesisWorld) startService(t *testing.T, name string) {
	t.Helper()
	path, settings, args := w.command(t, name)
	dir, err := nemesisBin()
	check(t, err)
	w.setClock(t, name, 0)
	settings = append(settings,
		"NATS_URL=nats://"+w.links[name+"-nats"].Addr(),
		"REDIS_URL=redis://"+w.links[name+"-redis"].Addr(),
		"NEMESIS_CLOCK="+w.clock(name),
	)
	if store := w.links[name+"-mongodb"]; store != nil {
		settings = append(settings, "MONGODB_URI="+mongoDBURI(store.Addr()))
	}
	path = filepath.Join(dir, filepath.Base(path))
	w.supervise(t, name, func() (*child, error) { return spawn(name, settings, path, args...) })
}

// clock returns the file with the offset of a service's clock, in milliseconds.
func (w *nemesisWorld) clock(name string) string { return filepath.Join(w.dir, name+".clock") }

// setClock sets a service's clock. The service never reads half of a number.
func (w *nemesisWorld) setClock(t *testing.T, name string, milliseconds int) {
	t.Helper()
	next := w.clock(name) + ".next"
	check(t, os.WriteFile(next, []byte(fmt.Sprint(milliseconds)), 0o600))
	check(t, os.Rename(next, w.clock(name)))
}

// running returns the services that run outside of a scale-up.
func (w *nemesisWorld) running() []string {
	spare := func(name string) bool { return name == w.spare() }
	return slices.DeleteFunc(slices.Clone(w.services), spare)
}

// chance returns the random numbers of an actor or of a fault: the same in each run with the seed.
func (w *nemesisWorld) chance(name string) *rand.Rand {
	stream := fnv.New64a()
	stream.Write([]byte(name))
	return rand.New(rand.NewPCG(w.seed, stream.Sum64()))
}

// The rules that the record cannot show.
const (
	ruleRuns     = "process-runs" // no process ends by itself, unless a stream has lost messages; all end when told to
	ruleAnswers  = "api-answers"  // a request gets a success, or an error that invites a retry
	ruleRecovers = "recovers"     // after the last fault all services are ready, and all clients connected, in time
)

// breach notes that a rule is broken.
func (w *nemesisWorld) breach(rule, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = append(w.broken, nemesis.Violation{Rule: rule, Detail: fmt.Sprintf(format, args...)})
}

// check returns all violations of the run.
func (w *nemesisWorld) check() []nemesis.Violation {
	for _, u := range w.units {
		for _, end := range u.takeEnds() {
			w.breach(ruleRuns, "%s ended by itself: %s", u.name, end)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return append(w.broken, nemesis.Check(w.record)...)
}

// text returns a text of a side that no other message has.
func (w *nemesisWorld) text(side nemesis.Side) string {
	text := nemesis.Text(int(w.texts.Add(1)))
	w.sides.Store(text, side)
	return text
}

// sideOf returns the side that wrote a message.
func (w *nemesisWorld) sideOf(r record) nemesis.Side {
	if !r.IsFromSupport {
		return nemesis.Visitor
	}
	if side, known := w.sides.Load(spoken(r)); known {
		return side.(nemesis.Side)
	}
	return nemesis.Bot
}
