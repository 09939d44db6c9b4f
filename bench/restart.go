package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
)

// restart measures how long NATS and the services take to be ready after all of them ended by kill -9 at once, with
// 1,000,000 replies in their stream, which the recorder has stored. nats-server writes its index of a stream every two
// minutes; without one it reads all messages. TMPDIR selects the disk.
func (b *bench) restart(ctx context.Context) {
	m := b.newMachine()
	defer m.close()
	m.boot(ctx)
	t := m.fill(ctx, size(b, 1_000_000, 10_000))
	m.measure(ctx, t, "kill -9", func() {})
	m.measure(ctx, t, "kill -9, without index.db", m.removeIndex)
	fmt.Print(t)
}

// restartCut is restart after a power cut, with the files of NATS on a disk that forgets what was not synced. It needs
// FUSE, which makes writing slow, so that there are only 100,000 replies.
func (b *bench) restartCut(ctx context.Context) {
	m := b.newMachine()
	defer m.close()
	m.mount(ctx)
	m.boot(ctx)
	t := m.fill(ctx, size(b, 100_000, 10_000))
	m.measure(ctx, t, "a power cut", m.cut)
	fmt.Print(t)
}

// machine is a NATS server with its syncer, and the services, which all lose power at once. The store of the services
// is on another disk.
type machine struct {
	*deployment
	program   string     // nats-server
	storeDir  string     // of nats-server
	nats      string     // host:port
	programs  []string   // the services
	addresses []string   // of their APIs
	checks    []string   // of their health checks
	running   []*process // everything
	disk      *process   // nil: a plain disk
	power     io.Writer  // commands of the disk
}

func (b *bench) newMachine() *machine {
	d := b.newDeployment()
	return &machine{
		deployment: d,
		storeDir:   filepath.Join(d.dir, "nats"),
		programs:   []string{"client-api", "processor", "socket-gateway"},
	}
}

// boot starts NATS, declares the streams, and starts the services.
func (m *machine) boot(ctx context.Context) {
	m.open(ctx) // for the store
	m.program = m.build(ctx, "github.com/nats-io/nats-server/v2", "nats-server")
	m.check(os.MkdirAll(m.storeDir, 0o700)) // the syncer may start before the server
	m.nats = m.freeAddr()
	for range m.programs {
		m.addresses = append(m.addresses, m.freeAddr())
		m.checks = append(m.checks, m.freeAddr())
	}
	m.env = append(m.env, "NATS_URL="+m.natsURL(), "JWKS_URL="+m.serveJWKS(), "BOT=external")
	m.startNATS()
	m.applyStreams(ctx, m.natsURL(), bus.StreamSettings{Sync: bus.SyncShared, MaxBytes: 2 << 30})
	m.startServices()
	m.awaitReady(ctx, time.Now())
}

// mount puts the files of NATS on a disk that forgets what was not synced.
func (m *machine) mount(ctx context.Context) {
	program := m.build(ctx, "github.com/parley-chat/parley/testkit/engines/cutdisk/cmd/cutdisk", "cutdisk")
	backing, mount := filepath.Join(m.dir, "backing"), filepath.Join(m.dir, "mount")
	m.check(errors.Join(os.Mkdir(backing, 0o700), os.Mkdir(mount, 0o700)))
	cmd := exec.Command(program, "-backing", backing, "-mount", mount)
	input, err := cmd.StdinPipe()
	m.check(err)
	out, err := cmd.StdoutPipe()
	m.check(err)
	m.check(cmd.Start())
	m.disk, m.power = &process{cmd: cmd, stdout: bufio.NewReader(out)}, input
	m.cleanup(m.disk.stop)
	m.awaitDisk("mounted")
	m.storeDir = filepath.Join(mount, "nats")
}

// awaitDisk reads the answer of the disk.
func (m *machine) awaitDisk(prefix string) {
	for {
		line, err := m.disk.stdout.ReadString('\n')
		m.check(err)
		if strings.HasPrefix(line, "error") {
			m.check(errors.New(line))
		}
		if strings.HasPrefix(line, prefix) {
			return
		}
	}
}

func (m *machine) cut() {
	_, err := fmt.Fprintln(m.power, "cut")
	m.check(err)
	m.awaitDisk("ok")
}

func (m *machine) startNATS() {
	host, port, _ := net.SplitHostPort(m.nats)
	m.run(m.program, nil, "-a", host, "-p", port, "-js", "-sd", m.storeDir)
	m.run("bin/parleyctl", nil, "streams", "sync", "--store-dir", m.storeDir)
}

func (m *machine) startServices() {
	for n, name := range m.programs {
		m.run("bin/"+name, []string{"HTTP_ADDR=" + m.addresses[n], "OPS_ADDR=" + m.checks[n]})
	}
}

func (m *machine) run(program string, env []string, args ...string) {
	p := m.start(env, program, args...)
	p.drain()
	m.running = append(m.running, p)
}

// awaitReady returns the times since began until NATS and each service are ready.
func (m *machine) awaitReady(ctx context.Context, began time.Time) []time.Duration {
	times := make([]time.Duration, 1+len(m.programs))
	m.await(ctx, "all are ready", func() bool {
		left := 0
		for n := range times {
			if times[n] > 0 {
				continue
			}
			if !m.ready(n) {
				left++
				continue
			}
			times[n] = time.Since(began)
		}
		return left == 0
	})
	return times
}

// ready reports whether NATS (0) takes connections, or a service is ready.
func (m *machine) ready(n int) bool {
	if n > 0 {
		return answers("http://" + m.checks[n-1] + "/readyz")
	}
	conn, err := net.Dial("tcp", m.nats)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}

// measure ends everything by kill -9, calls then, starts everything, and adds the times.
func (m *machine) measure(ctx context.Context, t *table, name string, then func()) {
	turns := make([][]float64, 1+len(m.programs))
	for range 3 {
		for _, p := range m.running {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
		m.running = nil
		then()
		began := time.Now()
		m.startNATS()
		m.startServices()
		for n, took := range m.awaitReady(ctx, began) {
			turns[n] = append(turns[n], took.Seconds())
		}
	}
	cells := []string{name}
	for _, seconds := range turns {
		cells = append(cells, fmt.Sprintf("%.2f s", median(seconds)))
	}
	t.row(cells...)
}

// removeIndex removes the index of each stream: nats-server reads all blocks of its messages instead.
func (m *machine) removeIndex() {
	files, err := filepath.Glob(filepath.Join(m.storeDir, "jetstream/$G/streams/*/msgs/index.db"))
	m.check(err)
	for _, file := range files {
		m.check(os.Remove(file))
	}
}

// fill publishes replies, and returns when the recorder has stored them and the disk has them.
func (m *machine) fill(ctx context.Context, total int) *table {
	m.visitors = m.register(ctx, recorderChats)
	conn, err := nats.Connect(m.natsURL())
	m.check(err)
	defer conn.Close()
	js, err := jetstream.New(conn, jetstream.WithPublishAsyncMaxPending(4096))
	m.check(err)
	for n := range total {
		_, err := js.PublishMsgAsync(m.replyEvent(n), jetstream.WithStallWait(time.Minute))
		m.check(err)
	}
	<-js.PublishAsyncComplete()
	b, err := bus.Open(bus.Config{URL: m.natsURL(), Name: "bench", Observe: true, Logger: slog.New(slog.DiscardHandler)})
	m.check(err)
	defer b.Close()
	m.await(ctx, "the bus is ready", func() bool { return b.Ready(ctx) == nil })
	for left := total; left > 0; pause(ctx, time.Second) {
		m.check(ctx.Err())
		left = m.unrecorded(ctx, b)
	}
	m.check(b.Sync(ctx, subject.Replies))
	return newTable(fmt.Sprintf("All processes start at once with %d replies in the stream; time until each is ready, "+
		"median of 3", total), "after", "NATS", "client-api", "processor", "socket-gateway")
}

func (m *machine) natsURL() string { return "nats://" + m.nats }

// replyEvent returns a reply as the processor publishes it.
func (m *machine) replyEvent(n int) *nats.Msg {
	v := m.visitors[n%len(m.visitors)]
	e := event.Reply{
		CompanyID: m.demo.CompanyID, AppID: m.demo.AppID, ChatUserID: v.id, ChatID: v.chatID,
		Message: newMessage(messageData),
	}
	return eventMsg(e, "/processor", e.Message.CreatedAt)
}

// unrecorded returns the number of replies that the recorder has not stored.
func (m *machine) unrecorded(ctx context.Context, b *bus.Bus) int {
	recorder, err := b.Group(ctx, subject.Replies, "recorder")
	m.check(err)
	left := recorder.Total()
	return int(left.Pending) + left.AckPending
}
