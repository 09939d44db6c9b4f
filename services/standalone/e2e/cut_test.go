package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/testkit/needs"
	"github.com/parley-chat/parley/testkit/nettest"
)

// recovery bounds how long clients and histories may take to be complete after a cut.
const recovery = 10 * time.Second

// TestPowerCut cuts the power under load, again and again. What was answered with a success is delivered once, in
// order, and is in the history; a retry with its Idempotency-Key has no second effect, and an effect at all.
//
// CUTS sets the number of cuts (the long form has 100), which cutWorlds share, SEED the moments, RENAME the file
// system's way, and STREAM_SYNC what the streams promise: with none the test must fail.
func TestPowerCut(t *testing.T) {
	needs.FUSE(t)
	cuts := setting(t, "CUTS", uint64(cutWorlds*rounds()*rounds()))
	seed := setting(t, "SEED", uint64(time.Now().UnixNano()))
	t.Logf("SEED=%d", seed)
	for world := range uint64(cutWorlds) {
		t.Run(fmt.Sprint("world ", world), func(t *testing.T) {
			t.Parallel() // most of the time passes while an interrupted request keeps its lease
			w := newCutWorld(t)
			stays := w.join(t) // connected, or trying to, through all cuts
			for n := world; n < cuts; n += cutWorlds {
				chance := rand.New(rand.NewPCG(seed, n))
				t.Run(fmt.Sprint("cut ", n), func(t *testing.T) { w.cutUnderLoad(t, chance, stays) })
			}
		})
	}
}

// cutWorlds is the number of systems that lose power side by side.
const cutWorlds = 4

// setting returns a number from the environment.
func setting(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	check(t, err)
	return n
}

// cutWorld is a standalone whose data is on a disk that forgets.
type cutWorld struct {
	*standalone
	t       *testing.T // of the whole test
	disk    *child
	power   io.Writer // of the disk's commands
	dir     string
	env     []string
	company *api
	widget  *api
	texts   atomic.Int64 // makes each text unique
}

func newCutWorld(t *testing.T) *cutWorld {
	t.Helper()
	mount := t.TempDir()
	w := &cutWorld{t: t, dir: filepath.Join(mount, "data")}
	rename := "ordered"
	if set := os.Getenv("RENAME"); set != "" {
		rename = set
	}
	var err error
	w.disk, w.power, err = spawnWithInput(
		"cutdisk", nil, program(t, "cutdisk"), "-backing", t.TempDir(), "-mount", mount, "-rename", rename,
	)
	check(t, err)
	w.disk.stopAtEnd(t)
	_, err = w.disk.await("mounted")
	check(t, err)
	for _, name := range []string{"PARLEY_CLIENT_ADDR", "PARLEY_WIDGET_ADDR"} { // clients come back to the same address
		w.env = append(w.env, name+"="+nettest.Addr(t))
	}
	if sync := os.Getenv("STREAM_SYNC"); sync != "" {
		w.env = append(w.env, "STREAM_SYNC="+sync)
	}
	w.start(t)
	w.company, w.widget = w.clientAPI(t), w.widgetAPI(t)
	return w
}

func (w *cutWorld) start(t *testing.T) {
	t.Helper()
	s, err := startStandalone(program(t, "standalone"), w.dir, w.env...)
	check(t, err)
	s.stopAtEnd(w.t)
	w.standalone = s
}

// cut cuts the power. With a seed the kernel had written some of the files.
func (w *cutWorld) cut(t *testing.T, seed string) {
	t.Helper()
	check(t, w.kill())
	_, err := fmt.Fprintln(w.power, strings.TrimSpace("cut "+seed))
	check(t, err)
	lines, err := w.disk.await("ok")
	check(t, err)
	t.Logf("cut %s:\n%s", seed, strings.Join(lines, "\n"))
}

// member is a visitor, with a client that is connected or away.
type member struct {
	*visitor
	chatID string
	online bool // the client was connected when the power failed
	client *socket

	mu       sync.Mutex
	attempts []*attempt // in the order of their beginnings, two at a time: the visitor's and the company's

	// What the client received.
	seen      []string // ids
	connects  int
	recovered bool // it never connected anew
}

// attempt is a request that may be sent more than once under one key.
type attempt struct {
	company bool // from the company; otherwise from the visitor
	text    string
	key     string
	id      string // of the message; empty: not answered yet
}

// join registers a visitor, and connects a client. The chat's id is known then.
func (w *cutWorld) join(t *testing.T) *member {
	t.Helper()
	m := &member{visitor: register(w.t, w.place, w.widget), online: true}
	m.client = connected(w.t, w.WidgetBaseURL, m.token, "websocket")
	m.connects, m.recovered = 1, true
	a := w.attempt(m, false)
	check(t, w.try(m, a))
	m.read(t, func() bool { return m.chatID != "" })
	return m
}

// attempt begins an attempt.
func (w *cutWorld) attempt(m *member, company bool) *attempt {
	a := &attempt{company: company, text: fmt.Sprintf("number %d.", w.texts.Add(1)), key: uuid.NewString()}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.attempts = append(m.attempts, a)
	return a
}

// try sends an attempt, again or for the first time, and notes the message's id.
func (w *cutWorld) try(m *member, a *attempt) error {
	key := header{"Idempotency-Key", a.key}
	body := map[string]any{"type": "TEXT", "data": map[string]string{"text": a.text}}
	api, path, success, credential := w.widget, "/message", http.StatusCreated, bearer(m.token)
	if a.company {
		body["chatId"] = m.chatID
		api, path, success, credential = w.company, "/message/send", http.StatusOK, accessToken(w.AccessToken)
	}
	got, err := api.try(http.MethodPost, path, body, credential, key)
	if err != nil {
		return err
	}
	if got.Status != success {
		return fmt.Errorf("POST %s: got %d %s", path, got.Status, got.Body)
	}
	var answer struct{ ID, MessageID string }
	if err := json.Unmarshal([]byte(got.Body), &answer); err != nil {
		return err
	}
	id := answer.ID + answer.MessageID // one of them
	if a.id != "" && a.id != id {
		return fmt.Errorf("POST %s again: got the message %s, want that of the first answer, %s", path, id, a.id)
	}
	a.id = id
	return nil
}

// load writes as the visitor and as the company until ctx is done or the power fails.
func (w *cutWorld) load(ctx context.Context, m *member, accepted *atomic.Int64) *sync.WaitGroup {
	var writers sync.WaitGroup
	for _, company := range []bool{false, true} {
		writers.Go(func() {
			for ctx.Err() == nil {
				if err := w.try(m, w.attempt(m, company)); err != nil {
					return
				}
				accepted.Add(1)
			}
		})
	}
	return &writers
}

func (w *cutWorld) cutUnderLoad(t *testing.T, chance *rand.Rand, stays *member) {
	members := []*member{stays, w.join(t), w.join(t)}
	away := w.join(t)
	away.online = false
	away.client.of.command(t, map[string]any{"op": "close", "id": away.client.id})
	away.client.await(t, "closed")
	members = append(members, away)

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var accepted atomic.Int64
	var writers []*sync.WaitGroup
	for _, m := range members {
		writers = append(writers, w.load(ctx, m, &accepted))
	}
	moment := int64(20 + chance.IntN(400))
	for deadline := time.Now().Add(limit); accepted.Load() < moment; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("got %d messages accepted in %v, want %d", accepted.Load(), limit, moment)
		}
	}
	seed := ""
	if chance.IntN(2) == 0 {
		seed = fmt.Sprint(chance.Uint32())
	}
	w.cut(t, seed)
	stop()
	for _, of := range writers {
		of.Wait()
	}
	t.Logf("%d messages were accepted", accepted.Load())

	w.start(t)
	for _, m := range members {
		m.comeBack(t, w)
		m.retry(t, w)
		m.writeMore(t, w)
	}
	for _, m := range members {
		m.check(t)
	}
}

// comeBack waits until the client is connected again.
func (m *member) comeBack(t *testing.T, w *cutWorld) {
	t.Helper()
	if !m.online {
		m.client = connected(w.t, w.WidgetBaseURL, m.token, "websocket")
		m.seen, m.recovered = nil, false
		return
	}
	before := m.connects
	m.read(t, func() bool { return m.connects > before })
}

// read reads the client's events until done returns true.
func (m *member) read(t *testing.T, done func() bool) {
	t.Helper()
	if !m.readUntil(t, time.After(limit), done) {
		t.Fatalf("the client: not in time; it has received %d messages", len(m.seen))
	}
}

// readUntil returns whether done returned true in time.
func (m *member) readUntil(t *testing.T, timeout <-chan time.Time, done func() bool) bool {
	t.Helper()
	for !done() {
		select {
		case e := <-m.client.events:
			m.receive(t, e)
		case <-timeout:
			return false
		}
	}
	return true
}

func (m *member) receive(t *testing.T, e clientEvent) {
	t.Helper()
	switch {
	case e.Kind == "connect":
		m.connects++
		m.recovered = m.recovered && e.Recovered
		if !e.Recovered {
			m.seen = nil // it has the history
		}
	case e.Kind == "event" && e.Event == "message":
		var d delivery
		check(t, json.Unmarshal(e.Args[0], &d))
		m.chatID = d.ChatID
		m.seen = append(m.seen, d.ID)
	}
}

// retry sends the last attempts again, answered or not. An attempt that the power failure interrupted is in progress
// until its lease ends.
func (m *member) retry(t *testing.T, w *cutWorld) {
	t.Helper()
	for _, a := range m.attempts[max(0, len(m.attempts)-10):] {
		err := w.try(m, a)
		for end := time.Now().Add(idempotency.Lease + limit); err != nil && time.Now().Before(end); err = w.try(m, a) {
			time.Sleep(50 * time.Millisecond)
		}
		if err != nil {
			t.Errorf("a retry: %v", err)
		}
	}
}

// writeMore writes a little with the client connected.
func (m *member) writeMore(t *testing.T, w *cutWorld) {
	t.Helper()
	for n := range 6 {
		a := w.attempt(m, n%2 == 1)
		eventually(t, "a message after the cut", func() error { return w.try(m, a) })
	}
}

// check checks the history, then what the client has received of it.
func (m *member) check(t *testing.T) {
	t.Helper()
	var history []record
	var wrong []string
	for deadline := time.Now().Add(recovery); ; time.Sleep(50 * time.Millisecond) {
		history = m.history(t)
		wrong = m.wrongInHistory(t, history)
		if len(wrong) == 0 || time.Now().After(deadline) {
			break
		}
	}
	for _, problem := range summary(wrong) {
		t.Errorf("the history of %s: %s", m.email, problem)
	}
	sides := map[string][]string{} // ids, of the company and of the bot
	for _, r := range history {
		if r.IsFromSupport {
			sides[side(r)] = append(sides[side(r)], r.ID)
		}
	}
	m.await(t, sides)
	for name, ids := range sides {
		m.checkReceived(t, name, ids)
	}
}

// wrongInHistory returns what is wrong: a kind of problem, a colon and an example.
func (m *member) wrongInHistory(t *testing.T, history []record) (wrong []string) {
	t.Helper()
	index := map[string]int{} // by id
	texts := map[string]int{} // how often a side has said it: a number
	for i, r := range history {
		if _, twice := index[r.ID]; twice {
			wrong = append(wrong, "an id is there twice: "+r.ID)
		}
		index[r.ID] = i
		text := r.member(t, "text")
		if at := strings.Index(text, "number "); at >= 0 {
			texts[side(r)+text[at:strings.Index(text, ".")]]++
		}
	}
	last := map[bool]int{} // the place of each side's last message
	for _, a := range m.attempts {
		of := "visitor "
		if a.company {
			of = "company "
		}
		at, there := index[a.id]
		number := strings.TrimSuffix(a.text, ".")
		switch said := texts[of+number]; {
		case !there:
			wrong = append(wrong, "an accepted message is lost: "+of+a.text)
		case said != 1:
			wrong = append(wrong, fmt.Sprintf("a message is there %d times: %s", said, of+a.text))
		case at < last[a.company]:
			wrong = append(wrong, "a message is out of order: "+of+a.text)
		}
		last[a.company] = max(last[a.company], at)
		if answers := texts["bot "+number]; !a.company && answers != 1 {
			wrong = append(wrong, fmt.Sprintf("the bot answered %d times: to %s", answers, a.text))
		}
	}
	return wrong
}

// side returns "visitor ", "company " or "bot ", for a message with a number.
func side(r record) string {
	switch {
	case !r.IsFromSupport:
		return "visitor "
	case strings.HasPrefix(string(r.Data), `{"text":"number `):
		return "company "
	}
	return "bot "
}

// ending returns the last messages of a side: those after the cut, at least.
func ending(ids []string) []string { return ids[max(0, len(ids)-3):] }

// await waits until the client has received the end of the history.
func (m *member) await(t *testing.T, sides map[string][]string) {
	t.Helper()
	m.readUntil(t, time.After(recovery), func() bool {
		for _, ids := range sides {
			if slices.ContainsFunc(ending(ids), func(id string) bool { return !slices.Contains(m.seen, id) }) {
				return false
			}
		}
		return true
	})
}

// checkReceived checks that the client has received every message of a side since its last new connection once, in the
// order of the history. Two sides that write in the same millisecond may be in another order live.
func (m *member) checkReceived(t *testing.T, name string, history []string) {
	t.Helper()
	var seen []string
	for _, id := range m.seen {
		if slices.Contains(history, id) {
			seen = append(seen, id)
		}
	}
	want := ending(history)
	if len(seen) > 0 {
		want = history[min(slices.Index(history, seen[0]), len(history)-len(want)):]
	}
	if slices.Equal(seen, want) {
		return
	}
	missing, doubled := 0, len(seen)-len(slices.Compact(slices.Sorted(slices.Values(seen))))
	for _, id := range want {
		if !slices.Contains(seen, id) {
			missing++
		}
	}
	t.Errorf("the client of %s (online: %v, recovered: %v): of the %s got %d messages, want %d in the order of the "+
		"history; %d are missing, %d arrived twice", m.email, m.online, m.recovered, name, len(seen), len(want), missing, doubled)
}

// summary returns each kind of problem once, with its number and an example.
func summary(wrong []string) (kinds []string) {
	count, example := map[string]int{}, map[string]string{}
	for _, problem := range wrong {
		kind, of, _ := strings.Cut(problem, ": ")
		count[kind]++
		example[kind] = of
	}
	for _, kind := range slices.Sorted(maps.Keys(count)) {
		kinds = append(kinds, fmt.Sprintf("%d times: %s, for example %s", count[kind], kind, example[kind]))
	}
	return kinds
}
