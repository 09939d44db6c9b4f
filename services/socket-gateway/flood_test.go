package socketgateway_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/parley-chat/parley/pkg/config"
	socketgateway "github.com/parley-chat/parley/services/socket-gateway"
	"github.com/parley-chat/parley/testkit/opstest"
	"github.com/parley-chat/parley/testkit/timetest"
)

const long = "long"

// resident returns the memory of a process in bytes.
func resident(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if size, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kilobytes, err := strconv.Atoi(strings.Fields(size)[0])
			if err != nil {
				t.Fatal(err)
			}
			return kilobytes << 10
		}
	}
	t.Fatal("got no VmRSS")
	return 0
}

// TestAbuseByPings has connections without a token that send empty pings and read nothing. What waits for them may not
// grow, whether their frames are counted or not.
func TestAbuseByPings(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the memory of a process is read from /proc")
	}
	t.Parallel()
	connections, megabytes := 20, 1
	if os.Getenv("PARLEY_FAULTS") == long {
		connections, megabytes = 100, 10
	}
	const most = 50 << 20
	for name, rate := range map[string]int{"bounded": 100, "pongs alone": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &faultWorld{world: newWorld(t)}
			c := f.startChild(func(b *childBounds) { b.MaxFrameRate = rate })
			pid := c.command.Process.Pid
			before := resident(t, pid)
			var highest atomic.Int64
			stop := make(chan struct{})
			var watching, flooding sync.WaitGroup
			watching.Go(func() {
				for tick := time.NewTicker(20 * time.Millisecond); ; {
					highest.Store(max(highest.Load(), int64(resident(t, pid))))
					select {
					case <-stop:
						tick.Stop()
						return
					case <-tick.C:
					}
				}
			})
			for range connections {
				flooding.Go(func() { floodWithPings(t, strings.TrimPrefix(c.url, "http://"), megabytes) })
			}
			flooding.Wait()
			close(stop)
			watching.Wait()
			t.Logf("memory: %d MB before, %d MB at most", before>>20, highest.Load()>>20)
			if more := int(highest.Load()) - before; more > most {
				t.Errorf("got %d MB more, want at most %d", more>>20, most>>20)
			}
			rest := most / 2
			if raced { // it returns less to the system
				rest = most
			}
			timetest.Until(t, "no connection is left, and the memory is free again", func() bool {
				return f.connections(c) == 0 && resident(t, pid)-before <= rest
			})
		})
	}
}

// floodWithPings sends masked empty pings until all are sent or the gateway has had enough.
func floodWithPings(t *testing.T, addr string, megabytes int) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10) // the kernel's buffer must not hide the gateway's
	_ = conn.SetDeadline(time.Now().Add(faultLimit))
	_, _ = io.WriteString(conn, "GET /socket.io/?EIO=4&transport=websocket HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	line, err := bufio.NewReaderSize(conn, 16).ReadSlice(' ')
	if err != nil || string(line) != "HTTP/1.1 " {
		t.Errorf("got %q, %v, want an answer", line, err)
		return
	}
	pings := bytes.Repeat([]byte("\x89\x80\x01\x02\x03\x04"), 1<<20/6)
	for range megabytes {
		if _, err := conn.Write(pings); err != nil {
			return // it was closed
		}
	}
}

// connections counts those that the gateway has open.
func (f *faultWorld) connections(c *child) (n int) {
	f.t.Helper()
	response, err := http.Get(c.ops + "/metrics")
	if err != nil {
		f.t.Fatal(err)
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "parley_gateway_connections{"); ok {
			_, value, _ = strings.Cut(value, "} ")
			open, err := strconv.ParseFloat(value, 64)
			if err != nil {
				f.t.Fatal(err)
			}
			n += int(open)
		}
	}
	return n
}

// TestAbuseByBareHandshakes opens sessions that never show a token, from one address, for as long as visitors connect.
func TestAbuseByBareHandshakes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const places = 5
	g := w.start(func(c *socketgateway.Config) {
		c.MaxConnections, c.MaxPending, c.MaxPendingPerAddress = places, 300, 200
	})
	opstest.AwaitUp(w.t, g.ops)
	atOnce := 600
	if os.Getenv("PARLEY_FAULTS") == long {
		atOnce = 20_000
	}
	bareClient := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}, Timeout: limit}
	t.Cleanup(bareClient.CloseIdleConnections)
	bare := func() (int, error) {
		response, err := bareClient.Get(g.url + "/socket.io/?EIO=4&transport=polling")
		if err != nil {
			return 0, err
		}
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		return response.StatusCode, nil
	}
	for range atOnce {
		if status, err := bare(); err != nil || status != http.StatusOK {
			t.Fatalf("got %d, %v before anybody has joined, want sessions", status, err)
		}
	}
	stop := make(chan struct{})
	var flooding sync.WaitGroup
	flooding.Go(func() {
		for tick := time.NewTicker(time.Second / 900); ; {
			select {
			case <-stop:
				tick.Stop()
				return
			case <-tick.C:
				_, _ = bare()
			}
		}
	})
	v := w.visitor()
	var inside []*client
	for range places {
		inside = append(inside, connect(t, g.url, v.token))
	}
	for _, c := range inside {
		c.await("connect")
	}
	if status := w.get(g.url + "/socket.io/?EIO=4&transport=polling"); status != http.StatusServiceUnavailable {
		t.Errorf("got %d of a gateway that is full, want 503", status)
	}
	close(stop)
	flooding.Wait()
	want := w.reply(v, `{"text":"here"}`)
	for _, c := range inside {
		if got := string(c.await("message").Data); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestVisitorsSendTokensOnly sends what a token never is.
func TestVisitorsSendTokensOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start()
	v := w.visitor()
	for name, send := range map[string]func(*websocket.Conn) error{
		"a long message": func(c *websocket.Conn) error {
			return c.Write(t.Context(), websocket.MessageText, []byte(`42/message,["token","`+strings.Repeat("x", 16<<10)+`"]`))
		},
		"binary data": func(c *websocket.Conn) error { return c.Write(t.Context(), websocket.MessageBinary, []byte{1}) },
		"a packet with an attachment": func(c *websocket.Conn) error {
			return c.Write(t.Context(), websocket.MessageText, []byte(`451-/message,["token",{"_placeholder":true,"num":0}]`))
		},
	} {
		c := connect(t, g.url, v.token)
		c.await("connect")
		if err := send(c.conn); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := c.await("disconnect"); got.Reason != "transport" {
			t.Errorf("%s: got %+v, want the connection closed", name, got)
		}
	}
	_, _, body := request(t, http.MethodGet, g.url+"/socket.io/?EIO=4&transport=polling", nil)
	if !strings.Contains(body, `"maxPayload":16384`) {
		t.Errorf("got %s, want a maximum of 16384 bytes", body)
	}
}

// TestRecoveriesAreLimited has a visitor that comes back too often: the stream is not read for it, it loads
// the history.
func TestRecoveriesAreLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(func(c *socketgateway.Config) { c.RecoveryRate = config.Rate{Count: 2, Per: time.Hour} })
	v := w.visitor()
	first := connect(t, g.url, v.token)
	pid := pidOf(t, first.await("connect"))
	w.reply(v, `{"text":"missed"}`)
	offset := first.await("message").Offset
	first.conn.CloseNow()
	missed := w.reply(v, `{"text":"missed as well"}`)
	for n, recovered := range []bool{true, true, false, false} {
		c := connectWith(t, g.url, "", map[string]string{"token": v.token, "pid": pid, "offset": offset})
		if got := pidOf(t, c.await("connect")) == pid; got != recovered {
			t.Errorf("reconnect %d: got recovered %v, want %v", n+1, got, recovered)
		}
		if recovered {
			if got := string(c.await("message").Data); got != missed {
				t.Errorf("got %s, want %s", got, missed)
			}
		}
	}
	other := w.visitor()
	c := connect(t, g.url, other.token)
	again := pidOf(t, c.await("connect"))
	c = connectWith(t, g.url, "", map[string]string{"token": other.token, "pid": again})
	if got := pidOf(t, c.await("connect")); got != again {
		t.Error("got another visitor limited too, want no limit")
	}
}

func pidOf(t *testing.T, h happening) string {
	t.Helper()
	var answer struct {
		PID string `json:"pid"`
	}
	if err := json.Unmarshal(h.Data, &answer); err != nil || answer.PID == "" {
		t.Fatalf("got %s, want a pid", fmt.Sprint(string(h.Data)))
	}
	return answer.PID
}

// comeBack waits as long as clients do before they reconnect.
func comeBack(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Second):
	}
}

// runAsForger makes this test's binary a forger of the gateway at that URL.
const runAsForger = "PARLEY_TEST_FORGER"

// forger is connections without a valid token, which send CONNECT packets with forged ones at the highest
// rate that frames may have. It runs in a process of the lowest priority: strangers do not use the gateway's
// processors.
type forger struct {
	url     string
	tokens  []string
	refused atomic.Int64 // handshakes
}

// forgery is what a forger begins with, and what it has reached at the end.
type forgery struct {
	Connections int
	Tokens      []string
	Refusal     bool  // it goes on until a handshake has been refused, however busy the machine is
	Refused     int64 // handshakes
	Answered    int   // CONNECT packets of the busiest connection
}

// forgerMain forges until its standard input ends.
func forgerMain(url string) {
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, 19) // it works with less
	var f forgery
	in := json.NewDecoder(os.Stdin)
	if err := in.Decode(&f); err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	all, answered := &forger{url: url, tokens: f.Tokens}, make(chan int)
	for range f.Connections {
		go func() { answered <- all.forge(ctx) }()
	}
	_ = in.Decode(&struct{}{}) // until the end
	for end := time.Now().Add(timetest.Limit); f.Refusal && all.refused.Load() == 0 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	for range f.Connections {
		f.Answered = max(f.Answered, <-answered)
	}
	_ = json.NewEncoder(os.Stdout).Encode(forgery{Refused: all.refused.Load(), Answered: f.Answered})
}

// startForger starts a forger. The returned function stops it and returns what it has reached.
func (w *world) startForger(url string, f forgery) (stop func() forgery) {
	w.t.Helper()
	c := exec.CommandContext(w.t.Context(), os.Args[0])
	c.Env = append(os.Environ(), runAsForger+"="+url)
	in, err := c.StdinPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	var out bytes.Buffer
	c.Stdout = &out
	if err := c.Start(); err != nil {
		w.t.Fatal(err)
	}
	if err := json.NewEncoder(in).Encode(f); err != nil {
		w.t.Fatal(err)
	}
	return func() (reached forgery) {
		_ = in.Close()
		if err := c.Wait(); err != nil {
			w.t.Fatal(err)
		}
		if err := json.Unmarshal(out.Bytes(), &reached); err != nil {
			w.t.Fatal(err)
		}
		return reached
	}
}

// forge opens connections until stop is closed, and returns how many CONNECT packets the gateway has answered
// on the busiest one.
func (f *forger) forge(ctx context.Context) (answered int) {
	for ctx.Err() == nil {
		answered = max(answered, f.connection(ctx))
		comeBack(ctx)
	}
	return answered
}

// connection sends forged tokens until the gateway closes the connection.
func (f *forger) connection(ctx context.Context) (answered int) {
	conn, response, err := websocket.Dial(ctx, strings.Replace(f.url, "http", "ws", 1)+"/socket.io/?EIO=4&transport=websocket", nil)
	if response != nil && response.StatusCode == http.StatusServiceUnavailable {
		f.refused.Add(1)
	}
	if err != nil {
		return 0
	}
	defer conn.CloseNow()
	pace := time.NewTicker(time.Second / 90)
	defer pace.Stop()
	for {
		_, packet, err := conn.Read(ctx)
		if err != nil {
			return answered // the gateway has closed it
		}
		if strings.HasPrefix(string(packet), "44") {
			answered++
		}
		<-pace.C
		token := f.tokens[answered%len(f.tokens)]
		if conn.Write(ctx, websocket.MessageText, []byte(`40/message,{"token":"`+token+`"}`)) != nil {
			return answered
		}
	}
}

// forgedTokens returns tokens with the gateway's key id and wrong signatures, which are different and so in no cache.
func (w *world) forgedTokens(n int) []string {
	w.t.Helper()
	tokens := make([]string, n)
	for i := range tokens {
		token := w.visitor().token
		dot := strings.LastIndexByte(token, '.')
		tokens[i] = token[:dot] + token[dot:dot+1] + strings.Repeat("A", len(token)-dot-1)
	}
	return tokens
}

// TestAbuseByForgedTokens has connections of one address that try one forged token after the other: each is
// closed after three, and the handshakes of the address are refused above its rate. The long form measures
// the flood without that rate too. It logs the delivery to a visitor, and compares what the gateway spends,
// which does not depend on what else the machine does.
func TestAbuseByForgedTokens(t *testing.T) {
	t.Parallel()
	f := &faultWorld{world: newWorld(t)}
	if os.Getenv("PARLEY_FAULTS") != long {
		f.underForgery(20, time.Second, config.Rate{Count: 10, Per: 10 * time.Second})
		return
	}
	unbounded := f.underForgery(1000, 20*time.Second, config.Rate{})
	bounded := f.underForgery(1000, 20*time.Second, config.Rate{Count: 300, Per: 3 * time.Second})
	if most := unbounded * 3 / 4; bounded > most {
		t.Errorf("processor time of the gateway: got %s, want at most %s", bounded, most)
	}
}

// underForgery measures the delivery to a visitor before and during a flood of connections with forged
// tokens, and returns the processor time of the gateway.
func (f *faultWorld) underForgery(connections int, lasts time.Duration, rate config.Rate) time.Duration {
	f.t.Helper()
	g := f.startChild(func(b *childBounds) { b.AddressRate = addressRate(rate) })
	v := f.visitor()
	inside := connect(f.t, g.url, v.token)
	inside.await("connect")
	before := f.deliver(inside, v, lasts)
	stop := f.startForger(g.url, forgery{Connections: connections, Tokens: f.forgedTokens(100), Refusal: rate.Count > 0})
	during := f.deliver(inside, v, lasts)
	reached := stop()
	g.kill()
	spent := g.command.ProcessState.UserTime() + g.command.ProcessState.SystemTime()
	f.t.Logf("p99 of deliveries: %s before, %s during %d connections with forged tokens at a rate of %v; %d handshakes refused; %s of "+
		"processor time", before, during, connections, rate, reached.Refused, spent)
	if got := reached.Refused > 0; got != (rate.Count > 0) {
		f.t.Errorf("a rate of %v: got handshakes refused %v", rate, got)
	}
	if reached.Answered > 3 {
		f.t.Errorf("got %d CONNECT packets of a connection answered, want at most 3", reached.Answered)
	}
	return spent
}

// TestAbuseByRenewals has sockets that renew their token with every frame that they may send.
func TestAbuseByRenewals(t *testing.T) {
	t.Parallel()
	f := &faultWorld{world: newWorld(t)}
	connections, lasts := 20, time.Second
	if os.Getenv("PARLEY_FAULTS") == long {
		connections, lasts = 100, 20*time.Second
	}
	g := f.startChild()
	tokens := f.forgedTokens(100)
	f.underFlood(g, connections, lasts, func(ctx context.Context) error { return renewForever(ctx, g.url, f.visitor().token, tokens) })
}

// renewForever joins and sends token events, and joins again when the gateway disconnects it.
func renewForever(ctx context.Context, url, token string, forged []string) error {
	for ctx.Err() == nil {
		conn, _, err := websocket.Dial(ctx, strings.Replace(url, "http", "ws", 1)+"/socket.io/?EIO=4&transport=websocket", nil)
		if err != nil {
			comeBack(ctx)
			continue
		}
		_ = conn.Write(ctx, websocket.MessageText, []byte(`40/message,{"token":"`+token+`"}`))
		answered := 0
		for pace := time.NewTicker(time.Second / 90); ; <-pace.C {
			_, packet, err := conn.Read(ctx)
			if err != nil || strings.HasPrefix(string(packet), "41") {
				pace.Stop()
				break
			}
			if strings.HasPrefix(string(packet), "43") {
				answered++
			}
			if !strings.HasPrefix(string(packet), "0") {
				_ = conn.Write(ctx, websocket.MessageText, []byte(`42/message,1["token","`+forged[answered%len(forged)]+`"]`))
			}
		}
		conn.CloseNow()
		if answered > 13 {
			return fmt.Errorf("got %d renewals of a socket answered, want at most 13", answered)
		}
		comeBack(ctx)
	}
	return nil
}

// underFlood measures the delivery to a visitor before and during a flood of connections, each of which calls flood.
func (f *faultWorld) underFlood(g *child, connections int, lasts time.Duration, flood func(context.Context) error) {
	f.t.Helper()
	v := f.visitor()
	inside := connect(f.t, g.url, v.token)
	inside.await("connect")
	before := f.deliver(inside, v, lasts)
	ctx, stop := context.WithCancel(f.t.Context())
	defer stop()
	var flooding sync.WaitGroup
	for range connections {
		flooding.Go(func() {
			if err := flood(ctx); err != nil {
				f.t.Error(err)
			}
		})
	}
	during := f.deliver(inside, v, lasts)
	stop()
	flooding.Wait()
	f.t.Logf("p99 of deliveries: %s before, %s during a flood of %d connections", before, during, connections)
}

// deliver publishes a reply every 20 ms and returns the 99th percentile of their delivery.
func (f *faultWorld) deliver(inside *client, v visitor, lasts time.Duration) time.Duration {
	f.t.Helper()
	var took []time.Duration
	for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		began := time.Now()
		want := f.reply(v, `{"text":"still here"}`)
		if got := string(inside.await("message").Data); got != want {
			f.t.Fatalf("got %s, want %s", got, want)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took[len(took)*99/100]
}
