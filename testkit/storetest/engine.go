package storetest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/encrypted"
)

// Engine lets the suite reopen a store, open it from several processes, and disturb it.
type Engine struct {
	// Create creates an empty location for a store, removed when the test ends, and returns its address.
	Create func(t testing.TB) (address string)
	// Open opens the engine at an address. The suite encrypts its secrets, as package backend does.
	Open func(address string, o Options) (store.Store, error)
	// Dump returns the content of the database as it is stored.
	Dump func(t testing.TB, address string) []byte
	// Silence keeps the engine from answering writes until end is called; nil: not supported.
	Silence func(t testing.TB, address string) (end func())
	// Atomic means that a crash leaves no operation half done. Otherwise a repeat completes it.
	Atomic bool
}

// Run runs the whole suite on the engine. The package's TestMain calls [Main].
func (e Engine) Run(t *testing.T) {
	Run(t, func(t testing.TB, options ...Options) store.Store { return e.open(t, e.Create(t), options...) })
	for name, test := range map[string]func(*testing.T){
		"reopen":  e.testReopen,
		"kill":    e.testKill,
		"silence": e.testSilence,
		"closed":  e.testClosed,
		"secrets": e.testSecrets,
		"rotate":  e.testRotate,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

func (e Engine) open(t testing.TB, address string, options ...Options) store.Store {
	t.Helper()
	var o Options
	for _, o = range options {
	}
	engine, err := e.Open(address, o)
	must(t, err)
	t.Cleanup(func() { closeStore(t, engine) })
	return encrypted.New(engine, Keys())
}

// closeStore does nothing if the store is closed.
func closeStore(t testing.TB, s store.Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Errorf("closing: got error %v, want none", err)
	}
}

func (e Engine) testReopen(t *testing.T) {
	address := e.Create(t)
	first := e.open(t, address)
	Fill(t, first)
	written := map[store.Kind][]store.Record{}
	for _, kind := range store.Kinds() {
		written[kind] = Records(t, first, kind)
	}
	closeStore(t, first)
	again := e.open(t, address)
	for _, kind := range store.Kinds() {
		want(t, fmt.Sprintf("%s after opening again", kind), Records(t, again, kind), written[kind])
	}
}

func (e Engine) testClosed(t *testing.T) {
	s := e.open(t, e.Create(t))
	c := openChat(t, s)
	closeStore(t, s)
	closeStore(t, s)
	wantCode(t, "a write after Close", errorOf(s.ChangeChat(t.Context(), c.ID, store.ChatChange{ClosedAt: noon})), apperr.Unavailable)
	_, err := s.Chat(t.Context(), c.ID)
	wantCode(t, "a read after Close", err, apperr.Unavailable)
	wantCode(t, "Ready after Close", s.Ready(t.Context()), apperr.Unavailable)
}

// testSilence takes the operation timeout: five seconds.
func (e Engine) testSilence(t *testing.T) {
	if e.Silence == nil {
		t.Skip("this engine cannot be silenced")
	}
	address := e.Create(t)
	s := e.open(t, address)
	c, m := openChat(t, s), text(newID(), noon)
	end := e.Silence(t, address)
	defer end()

	begun := time.Now()
	abandoned, abandon := context.WithCancel(t.Context())
	results := make(chan error, 2)
	go func() { results <- s.AppendMessage(abandoned, c.ID, m) }()
	abandon()
	if err := <-results; err == nil || apperr.Is(err, apperr.Unavailable) {
		t.Errorf("a caller that gave up: got %v, want its context's error", err)
	}
	wantCode(t, "a write to a silent engine", s.AppendMessage(t.Context(), c.ID, m), apperr.Unavailable)
	if took := time.Since(begun); took > 30*time.Second { // five on an idle machine
		t.Errorf("got the answer after %s, want it after five seconds", took)
	}
	end()
	for deadline := time.Now().Add(time.Minute); ; {
		err := s.AppendMessage(t.Context(), c.ID, m)
		if err == nil {
			break
		}
		if !apperr.Is(err, apperr.Unavailable) || time.Now().After(deadline) {
			t.Fatalf("when it answers again: got %v, want success", err)
		}
	}
	want(t, "the history", ids(walk(t, s, c.ID, store.HistoryQuery{})), []string{m.ID})
}

// childVariable is the environment variable with the address for a child process of the suite.
const childVariable = "PARLEY_STORETEST_ADDRESS"

// Main is the TestMain of an engine's package: it runs the tests and checks for leaked goroutines, or is a
// child process of the suite that writes until it is killed.
func Main(m *testing.M, open func(address string, o Options) (store.Store, error)) {
	if address := os.Getenv(childVariable); address != "" {
		fmt.Fprintln(os.Stderr, "child:", writeForEver(address, open))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// writeForEver opens chats and writes into them from several goroutines, and prints the acknowledged writes.
func writeForEver(address string, open func(address string, o Options) (store.Store, error)) error {
	s, err := open(address, Options{})
	if err != nil {
		return err
	}
	const writers = 16
	failed := make(chan error, writers)
	acknowledged := acknowledgements{to: os.Stdout}
	for range writers {
		go func() {
			for {
				if err := converse(context.Background(), s, acknowledged.print); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	return <-failed
}

// acknowledgements prints whole lines.
type acknowledgements struct {
	mu sync.Mutex
	to io.Writer
}

func (a *acknowledgements) print(words ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, _ = io.WriteString(a.to, strings.Join(words, " ")+"\n")
}

// Converse registers a visitor, who then writes: load for tests.
func Converse(ctx context.Context, s store.Store) error { return converse(ctx, s, func(...string) {}) }

// converse registers a visitor, who then writes.
func converse(ctx context.Context, s store.Store, acknowledged func(words ...string)) error {
	identity := store.Identity{Scope: "app", Kind: store.KindUserID, Value: newID()}
	registered, err := s.Register(ctx, store.Registration{
		Identities: []store.Identity{identity},
		Visitor:    chat.Visitor{CompanyID: newID(), AppID: newID(), FirstName: "Ada"},
	})
	if err != nil {
		return err
	}
	v := registered.Visitor
	acknowledged("visitor", identity.Value, v.ID)
	c, _, err := s.OpenChat(ctx, v, store.NewChat{Channel: chat.ChannelWidget, Now: noon, Greetings: []chat.Message{fromCompany(newID(), noon)}})
	if err != nil {
		return err
	}
	acknowledged("chat", c.ID, v.ID)
	for i := range 3 {
		m := text(newID(), noon.Add(time.Duration(i+1)*time.Minute))
		if err := s.AppendMessage(ctx, c.ID, m); err != nil {
			return err
		}
		acknowledged("message", c.ID, m.ID)
	}
	return nil
}

// testKill lets two other processes write to this process's store, kills them while they write, and looks for
// all acknowledged writes.
func (e Engine) testKill(t *testing.T) {
	enough := 6*AtOnce + 16 // acknowledgements of each process
	address := e.Create(t)
	s := e.open(t, address)
	var lines [2][]string
	var children sync.WaitGroup
	for n := range lines {
		children.Go(func() { lines[n] = writeAndDie(t, address, enough) })
	}
	written := 0
	for range max(AtOnce/3, 4) {
		must(t, converse(t.Context(), s, func(...string) { written++ }))
	}
	children.Wait()
	if written == 0 || t.Failed() {
		t.FailNow()
	}
	e.verify(t, s, lines[0], lines[1])
	closeStore(t, s)
	s = e.open(t, address)
	e.verify(t, s, lines[0], lines[1])
	must(t, converse(t.Context(), s, func(...string) {}))
}

// writeAndDie starts a child, kills it after n acknowledgements, and returns all that it printed.
func writeAndDie(t testing.TB, address string, enough int) (lines []string) {
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	child.Env = append(os.Environ(), childVariable+"="+address)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Errorf("starting a process that writes: %v", err)
		return nil
	}
	reader := bufio.NewReader(out)
	for {
		line, err := reader.ReadString('\n')
		if err != nil { // a truncated line is not an acknowledgement
			break
		}
		if lines = append(lines, strings.TrimSpace(line)); len(lines) == enough {
			_ = child.Process.Kill() // SIGKILL; the pipe may hold further acknowledgements
		}
	}
	_ = child.Wait() // the error is that it was killed
	if len(lines) < enough {
		t.Errorf("a process that writes: got %d acknowledgements, want %d", len(lines), enough)
	}
	return lines
}

// verify looks for all acknowledged writes, and for half-done operations.
func (e Engine) verify(t testing.TB, s store.Store, processes ...[]string) {
	t.Helper()
	ctx := t.Context()
	for _, lines := range processes {
		for _, line := range lines {
			words := strings.Fields(line)
			var err error
			switch words[0] {
			case "visitor":
				var owner string
				if owner, err = s.FindVisitor(ctx, store.Identity{Scope: "app", Kind: store.KindUserID, Value: words[1]}); err == nil && owner != words[2] {
					err = fmt.Errorf("its owner is %s", owner)
				}
			case "chat":
				_, err = s.Chat(ctx, words[1])
			case "message":
				var at string
				if at, _, err = s.FindMessage(ctx, words[2]); err == nil && at != words[1] {
					err = fmt.Errorf("it is in chat %s", at)
				}
			}
			if err != nil {
				t.Errorf("acknowledged before the kill: %s: got %v", line, err)
			}
		}
	}
	for _, c := range get[[]chat.Chat](t)(s.Chats(ctx, store.ChatFilter{}, store.Page{})) {
		all := walk(t, s, c.ID, store.HistoryQuery{})
		if len(all) == 0 || !all[0].IsFromSupport {
			t.Errorf("chat %s: got %d messages without a greeting, want one", c.ID, len(all))
			continue
		}
		last := all[len(all)-1]
		if last.IsFromSupport {
			continue
		}
		if !e.Atomic {
			must(t, s.AppendMessage(ctx, c.ID, last))
			c = get[chat.Chat](t)(s.Chat(ctx, c.ID))
		}
		want(t, "the window of a chat with a message", c.WindowStartedAt, store.UTC(last.CreatedAt))
	}
}
