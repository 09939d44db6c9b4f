package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/ops"
	"github.com/parley-chat/parley/pkg/service"
	"github.com/parley-chat/parley/pkg/service/storage"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/proto-events/subject"
	clientapi "github.com/parley-chat/parley/services/client-api"
	widgetapi "github.com/parley-chat/parley/services/widget-api"
	"github.com/parley-chat/parley/testkit/abusetest"
	"github.com/parley-chat/parley/testkit/httpapitest"
	"github.com/parley-chat/parley/testkit/servicetest"
)

const (
	defaultAbuseSeed = 20261121
	abusers          = 4  // concurrent
	mostFaults       = 20 // reported errors; the rest is omitted

	// mostKept is the maximum memory that the process may keep per request: less than the smallest object that could leak.
	mostKept       = 128 // bytes
	mostKeptAnyway = 16 << 20
)

// abuseSeed is the same in every run, so that a failure is reproducible; PARLEY_ABUSE_SEED overrides it.
func abuseSeed(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(defaultAbuseSeed)
	if text := os.Getenv("PARLEY_ABUSE_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		check(t, err)
	}
	t.Logf("PARLEY_ABUSE_SEED=%d makes the same requests again", seed)
	return seed
}

// Every operation of the documents of the two APIs and of the panel gets mutated requests. Every response is
// documented, none is an internal error, no request leaks memory, and another company is served meanwhile.
// The processing layer handles the accepted ones.
func TestAbuse(t *testing.T) { // not parallel: it measures the whole process
	a := newAbuse(t)
	for _, door := range a.doors {
		for _, o := range door.operations {
			a.send(t, door, o, max(abusers, door.requests/10)) // fills caches, pools and connections
		}
	}
	before := settled(t, footprint{goroutines: 1 << 20})
	sent := 0
	for _, door := range a.doors {
		a.sendAll(t, door)
		sent += len(door.operations) * door.requests
	}
	after := settled(t, before)
	grown := after.heap - before.heap
	t.Logf("the heap has grown by %d KiB to %d KiB, goroutines from %d to %d", grown>>10, after.heap>>10, before.goroutines, after.goroutines)
	if most := int64(sent)*mostKept + mostKeptAnyway; grown > most {
		t.Errorf("the heap has grown by %d bytes, want at most %d", grown, most)
	}
	for _, door := range a.doors {
		a.flood(t, door)
	}
	if faults := a.log.faults(); len(faults) > 0 {
		t.Errorf("got %d errors in the log, want none: %s", len(faults), faults[0])
	}
	a.wantDigested(t)
}

// sendAll sends the requests to all operations of a door.
func (a *abuse) sendAll(t *testing.T, door *abused) {
	t.Helper()
	heap, began := settled(t, footprint{goroutines: 1 << 20}).heap, time.Now()
	for _, o := range door.operations {
		started := time.Now()
		statuses := a.send(t, door, o, door.requests)
		t.Logf("%-24s %d requests in %v: %v", o, door.requests, time.Since(started).Round(time.Millisecond), statuses)
		door.wantMixed(t, o, statuses)
	}
	door.forget()
	t.Logf("%s: %d requests in %v, the heap %d KiB before and %d KiB after", door.name, len(door.operations)*door.requests,
		time.Since(began).Round(time.Millisecond), heap>>10, settled(t, footprint{goroutines: 1 << 20}).heap>>10)
}

// flood sends requests to all operations of a door at a fixed rate, while the neighbour works.
func (a *abuse) flood(t *testing.T, door *abused) {
	t.Helper()
	requests := floodRate
	if longForm() {
		requests *= 20
	}
	before, done := a.neighbour.send(t, quietRounds), make(chan struct{})
	defer func() { <-done }() // it logs
	go func() {
		defer close(done)
		a.sendPaced(t, door, requests)
	}()
	during := a.neighbour.sendUntil(t, done)
	t.Logf("%s: %d requests at %d a second", door.name, requests, floodRate)
	for i, name := range neighbourCalls {
		wantUnharmed(t, name, before[i], during[i])
	}
}

// sendPaced sends n requests at floodRate, to one operation after the other.
func (a *abuse) sendPaced(t *testing.T, door *abused, n int) {
	t.Helper()
	var all sync.WaitGroup
	for i, cfg := range door.callers {
		cfg.Seed += uint64(i)
		all.Go(func() {
			m, pace := abusetest.New(cfg), time.NewTicker(abusers*time.Second/floodRate)
			defer pace.Stop()
			for sent := range n / abusers {
				<-pace.C
				r := m.Next(door.operations[sent%len(door.operations)])
				if _, err := door.tryAgain(t.Context(), r); err != nil {
					door.report(t, r, err)
				}
			}
		})
	}
	all.Wait()
}

// abuse has the doors in this process, to measure leaks, and uses the engines and the processing layer of a standalone.
type abuse struct {
	*standalone
	seed      uint64
	log       *faultLog
	doors     []*abused
	neighbour *neighbour
}

// abused is a door under test: an API or the panel.
type abused struct {
	name       string
	handler    http.Handler
	document   *httpapitest.Document
	operations []abusetest.Operation
	words      map[string]bool        // the fixed parts of the paths
	callers    []abusetest.Config     // one for each abuser
	requests   int                    // to each operation
	pages      func(path string) bool // for people, so not in the document
	// repair puts back what a request to a path has changed; nil: nothing to do.
	repair func(ctx context.Context, path string) error

	faults atomic.Int64

	mu   sync.Mutex
	seen map[string]bool // responses that were validated against the document
}

func newAbuse(t *testing.T) *abuse {
	a := &abuse{standalone: ownStandalone(t, t.TempDir()), seed: abuseSeed(t), log: new(faultLog)}
	client := clientapi.Config{Base: service.Base{NATS: config.NATS{NATSURL: a.NATSURL}}, Storage: storage.Config{Store: config.Store{SQLitePath: a.SQLitePath}}}
	widget := widgetConfig(t)
	widget.Storage.SQLitePath, widget.NATSURL, widget.VisitorKeysFile = a.SQLitePath, a.NATSURL, a.KeysFile
	widget.SecretsKeyFile = a.Secrets
	check(t, config.SetDefaults(&client))
	client.HTTPAddr, client.OpsAddr = "", ""
	client.RateToken, client.RateAuth = config.Rate{}, config.Rate{}  // they would answer nearly all requests
	client.RateNumber, client.RateChat = config.Rate{}, config.Rate{} // all valid messages go to one of each
	client.Logger = ops.NewLogger(a.log, "client-api", slog.LevelInfo)
	widget.Logger = ops.NewLogger(a.log, "widget-api", slog.LevelInfo)
	c, err := clientapi.New(client)
	check(t, err)
	w, err := widgetapi.New(widget)
	check(t, err)
	servicetest.Run(t, c.Run)
	servicetest.Run(t, w.Run)
	world := a.createRecords(t)
	a.doors = []*abused{
		newAbused(t, c.Handler(), clientapi.OpenAPI(), slices.Repeat([]abusetest.Config{world.client}, abusers)),
		newAbused(t, w.Handler(), widgetapi.OpenAPI(), slices.Repeat([]abusetest.Config{world.widget}, abusers)),
		a.newPanelDoor(t),
	}
	a.neighbour = a.newNeighbour(t)
	return a
}

// newAbused returns a door for the callers; as an API it gets the number of requests of abuseRequests.
func newAbused(t *testing.T, h http.Handler, document []byte, callers []abusetest.Config) *abused {
	t.Helper()
	operations, err := abusetest.Operations(document)
	check(t, err)
	contract := httpapitest.Contract(t, document)
	return &abused{
		name: contract.Spec().Info.Title, handler: h, document: contract, operations: operations, words: wordsOf(operations), callers: callers,
		requests: abuseRequests(), pages: isDocs, seen: map[string]bool{},
	}
}

// wordsOf returns the fixed parts of the operations' paths.
func wordsOf(operations []abusetest.Operation) map[string]bool {
	words := map[string]bool{}
	for _, o := range operations {
		for part := range strings.SplitSeq(o.Path, "/") {
			words[part] = !strings.HasPrefix(part, "{")
		}
	}
	return words
}

// abuseRequests returns the number of requests per operation: all in the long form of the tests (make
// test-faults), a tenth otherwise, which takes a few seconds with the race detector.
func abuseRequests() int {
	if longForm() {
		return 10_000
	}
	return 1_000
}

// abusedWorld configures the requests' ids and credentials.
type abusedWorld struct{ client, widget abusetest.Config }

// createRecords creates a record of every kind, so that requests with existing ids reach all code.
func (a *abuse) createRecords(t *testing.T) abusedWorld {
	s, api := openStore(t, a.place), a.widgetAPI(t)
	v := register(t, a.place, api)
	mine := v.write(t, "before the abuse")
	id, err := s.FindVisitor(t.Context(), store.Identity{Scope: a.AppID, Kind: store.KindEmail, Value: v.email})
	check(t, err)
	who, err := s.Visitor(t.Context(), id)
	check(t, err)
	c, err := store.CurrentChat(t.Context(), s, who, time.Now())
	check(t, err)
	fromCompany := want[sent](t, http.StatusOK, a.clientAPI(t).call(t, http.MethodPost, "/message/send",
		`{"type":"TEXT","data":{"text":"x"},"chatId":"`+c.ID+`"}`, accessToken(a.AccessToken)))
	_, _, foreign := putCompany(t, s)
	expired := putToken(t, s, a.CompanyID, time.Now().Add(-time.Minute))

	ghost := claims(a.place, uuid.NewString())
	late := claims(a.place, id)
	late["exp"] = time.Now().Add(-time.Minute).Unix()
	// The examples of the documents, and existing records of their kind.
	live := map[string]string{
		"0d9f5c7e-6c1d-4b7a-8f1e-2a3b4c5d6e7f": c.ID, "5b0f3f4e-1d5f-4a8f-9c38-1f1f3d6a2b10": a.TemplateID,
		"3f0e6e1a-2f57-4f0c-8a35-5c6f2a1b9d84": a.AppID, "0198b1c7-1a2b-7c3d-8e4f-5a6b7c8d9e0f": mine.ID,
	}
	world := abusedWorld{
		client: abusetest.Config{
			Seed: a.seed, Live: live, LiveOneIn: 20, Tokens: []string{a.AccessToken}, Foreign: []string{foreign, expired, v.token, "pat_" + strings.Repeat("A", 43)},
			Paths: map[string][]string{"/message/{id}": {"/message/" + fromCompany.MessageID, "/message/" + strings.ToUpper(fromCompany.MessageID)}},
		},
		widget: abusetest.Config{
			Seed: a.seed, Live: live, LiveOneIn: 20, Tokens: []string{v.token}, Ghosts: []string{sign(t, a.place, ghost)},
			Foreign: []string{sign(t, a.place, late), a.AccessToken, foreign},
			Paths: map[string][]string{
				"/settings/{id}": {"/settings/" + a.AppID}, "/message/{id}/read": {"/message/" + fromCompany.MessageID + "/read", "/message/" + mine.ID + "/read"},
				"/files/{id}/{name}": {a.upload(t, v.token, "a.png", "\x89PNG\r\n\x1a\n and more"), a.upload(t, v.token, "b é.svg", "<svg xmlns='http://www.w3.org/2000/svg'/>")},
			},
		},
	}
	return world
}

func (a *abuse) upload(t *testing.T, token, name, content string) (path string) {
	t.Helper()
	body := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" + name + "\"\r\n\r\n" + content + "\r\n--b--\r\n"
	got := a.widgetAPI(t).call(t, http.MethodPost, "/message", body, bearer(token), header{"Content-Type", "multipart/form-data; boundary=b"})
	return want[struct{ Data struct{ Path string } }](t, http.StatusCreated, got).Data.Path
}

// send sends concurrent requests to an operation and counts the responses.
func (a *abuse) send(t *testing.T, door *abused, o abusetest.Operation, n int) map[int]int {
	t.Helper()
	var all sync.WaitGroup
	counts := make([]map[int]int, abusers)
	for i, cfg := range door.callers {
		cfg.Seed = rand.New(rand.NewPCG(cfg.Seed+uint64(n), uint64(i))).Uint64() // a deterministic generator is intended
		counts[i] = map[int]int{}
		all.Go(func() {
			m := abusetest.New(cfg)
			for range n / abusers {
				r := m.Next(o)
				status, err := door.tryAgain(t.Context(), r)
				if err != nil {
					door.report(t, r, err)
				}
				counts[i][status]++
			}
		})
	}
	all.Wait()
	statuses := map[int]int{}
	for _, c := range counts {
		for status, n := range c {
			statuses[status] += n
		}
	}
	return statuses
}

// report fails the test; after mostFaults it is silent.
func (a *abused) report(t *testing.T, r abusetest.Request, err error) {
	t.Helper()
	if a.faults.Add(1) <= mostFaults {
		t.Errorf("%s: %v\nto the request\n%s", a.name, err, r)
	}
}

// tryAgain retries after a 503, as every client does: on a busy machine an engine may time out. An error that
// the request itself causes repeats.
func (a *abused) tryAgain(ctx context.Context, r abusetest.Request) (status int, err error) {
	for range 3 {
		if status, err = a.try(ctx, r); status != http.StatusServiceUnavailable {
			break
		}
	}
	return status, err
}

// try sends a request and returns the error of its response. The status is 0 if net/http would have answered itself.
func (a *abused) try(ctx context.Context, r abusetest.Request) (status int, err error) {
	ctx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	req, err := r.HTTP(ctx)
	if err != nil {
		return 0, nil // such a request does not reach the API
	}
	w := &recording{httptest.NewRecorder(), hangUp}
	if err := serve(a.handler, w, req); err != nil {
		return http.StatusInternalServerError, err
	}
	if a.repair != nil && changes(r.Method) && w.Code < http.StatusBadRequest {
		if err := a.repair(context.WithoutCancel(ctx), req.URL.Path); err != nil {
			return w.Code, err
		}
	}
	body := w.Body.Bytes()
	if req.Method == http.MethodHead || w.isStream() {
		body = nil // net/http drops it; of a stream there is only the beginning
	}
	switch status, header := w.Code, w.Result().Header; {
	case status < 200 || status >= 500:
		return status, fmt.Errorf("got %d %s, want neither a failure nor half an answer", status, body)
	case a.isKnown(req, status, header, body) || status < 400 && a.pages(req.URL.Path):
		return status, nil
	case a.pages(req.URL.Path) && req.Method == http.MethodHead:
		return status, nil
	case a.pages(req.URL.Path):
		return status, httpapitest.CheckProblem(status, header, body)
	default:
		return status, a.document.Check(req, status, header, body)
	}
}

// serve turns a panic, with which a handler aborts a connection, into an error.
func serve(h http.Handler, w http.ResponseWriter, req *http.Request) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	h.ServeHTTP(w, req)
	return nil
}

// recording records an answer. It hangs up when a stream of events begins, which would not end.
type recording struct {
	*httptest.ResponseRecorder
	hangUp context.CancelFunc
}

// Flush implements [http.Flusher].
func (r *recording) Flush() {
	if r.isStream() {
		r.hangUp()
	}
	r.ResponseRecorder.Flush()
}

func (r *recording) isStream() bool { return r.Header().Get("Content-Type") == "text/event-stream" }

// isDocs reports whether the path is one of the documentation pages, which the document does not list.
func isDocs(path string) bool { return path == "/openapi.json" || strings.HasPrefix(path, "/docs") }

// isKnown reports whether an equal response was validated before: most errors differ only in their id.
func (a *abused) isKnown(req *http.Request, status int, header http.Header, body []byte) bool {
	id := header.Get("X-Request-Id")
	if id == "" {
		return false
	}
	key := fmt.Sprintf("%s %s %d %s %t %s", req.Method, a.shape(req.URL.Path), status, header.Get("Content-Type"), header.Get("Retry-After")+header.Get("Allow") != "",
		bytes.ReplaceAll(body, []byte(id), []byte("id")))
	a.mu.Lock()
	defer a.mu.Unlock()
	known := a.seen[key]
	a.seen[key] = true
	return known && status >= 400
}

func (a *abused) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.seen)
}

// shape returns a path without the parts that differ between requests to one route.
func (a *abused) shape(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if !a.words[part] {
			parts[i] = "*"
		}
	}
	return strings.Join(parts, "/")
}

// wantMixed checks that both successes and errors occur: requests that are all rejected early would prove little. A few
// requests may be.
func (a *abused) wantMixed(t *testing.T, o abusetest.Operation, statuses map[int]int) {
	t.Helper()
	if a.requests < 1000 {
		return
	}
	good, refused := 0, 0
	for status, n := range statuses {
		switch {
		case status >= 400:
			refused += n
		case status >= 200:
			good += n
		}
	}
	if good == 0 || refused == 0 {
		t.Errorf("%s: got %v, want some answers of either kind", o, statuses)
	}
}

// quietRounds is how often the neighbour works before each flood.
const quietRounds = 100

// neighbourCalls are what another company does during the abuse.
var neighbourCalls = [3]string{"POST /message/send", "POST /message", "GET /api/chats"}

// neighbour is another company with a visitor and an agent, at the same doors.
type neighbour struct {
	*bystander
	panel   *api
	session header
}

func (a *abuse) newNeighbour(t *testing.T) *neighbour {
	t.Helper()
	p := a.place
	for n, base := range []*string{&p.ClientBaseURL, &p.WidgetBaseURL, &p.PanelURL} {
		server := httptest.NewServer(a.doors[n].handler)
		t.Cleanup(server.Close)
		*base = server.URL
	}
	b, s := newBystander(t, p), openStore(t, p)
	agent := putUser(t, s, account.Agent, b.visitor.place.CompanyID)
	return &neighbour{b, newAPI(t, p.PanelURL), header{"Cookie", "__Host-parley-panel=" + putSession(t, s, agent)}}
}

// send makes each call n times. All must succeed.
func (n *neighbour) send(t *testing.T, times int) (took [3]latencies) {
	t.Helper()
	for range times {
		two := n.bystander.send(t, 1)
		began := time.Now()
		n.listChats(t)
		for i, l := range []latencies{two[0], two[1], {time.Since(began)}} {
			took[i] = append(took[i], l...)
		}
	}
	for _, l := range took {
		slices.Sort(l)
	}
	return took
}

func (n *neighbour) listChats(t *testing.T) {
	t.Helper()
	got := n.panel.call(t, http.MethodGet, "/api/chats", nil, n.session)
	if got.Status != http.StatusOK {
		t.Fatalf("the neighbour's chats: got %d %s, want 200", got.Status, got.Body)
	}
}

// sendUntil makes the calls at the pace of a busy company.
func (n *neighbour) sendUntil(t *testing.T, done <-chan struct{}) (took [3]latencies) {
	t.Helper()
	pace := time.NewTicker(20 * time.Millisecond)
	defer pace.Stop()
	for {
		for i, l := range n.send(t, 1) {
			took[i] = append(took[i], l...)
		}
		select {
		case <-pace.C:
		case <-done:
			for _, l := range took {
				slices.Sort(l)
			}
			return took
		}
	}
}

// footprint is the memory and the goroutines of a process.
type footprint struct {
	goroutines int
	heap       int64
}

// settled waits until the number of goroutines is close to an earlier one, and measures.
func settled(t *testing.T, earlier footprint) (now footprint) {
	t.Helper()
	const mostMore = 24 // connections of the pools to MongoDB, each with one or two
	eventually(t, "goroutines end", func() error {
		if now.goroutines = runtime.NumGoroutine(); now.goroutines > earlier.goroutines+mostMore {
			return fmt.Errorf("got %d, want at most %d and a few", now.goroutines, earlier.goroutines)
		}
		return nil
	})
	runtime.GC()
	runtime.GC() // clears the pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	now.heap = int64(m.HeapAlloc)
	return now
}

// wantDigested waits until the processing layer has handled all accepted events, and checks for errors.
func (a *abuse) wantDigested(t *testing.T) {
	t.Helper()
	for _, name := range []string{subject.Inbound, subject.Sends} {
		digested(t, a.NATSURL, name)
	}
	wantNoDeadLetters(t, a.NATSURL)
	if faults := faultLine.FindAllString(a.stderr.String(), -1); len(faults) > 0 {
		t.Errorf("the standalone has failed: %s", faults[0])
	}
}

// digested waits until the consumers of a stream have acknowledged all of it.
func digested(t *testing.T, natsURL, name string) {
	t.Helper()
	stream, err := plainJetStream(t, natsURL).Stream(t.Context(), name)
	check(t, err)
	eventually(t, "the accepted events are handled", func() error {
		var consumers []*jetstream.ConsumerInfo // all first: a loop that ends early would leak the lister's goroutine
		for info := range stream.ListConsumers(t.Context()).Info() {
			consumers = append(consumers, info)
		}
		for _, info := range consumers {
			// By sequence: the server updates a consumer's pending count some time after it has acknowledged a publish.
			for _, filter := range info.Config.FilterSubjects {
				last, err := stream.GetLastMsgForSubject(t.Context(), filter)
				if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
					return err
				}
				if err == nil && info.AckFloor.Stream < last.Sequence {
					return fmt.Errorf("%s has come to %d of %d", info.Name, info.AckFloor.Stream, last.Sequence)
				}
			}
		}
		return nil
	})
}

var faultLine = regexp.MustCompile(`(?m)^.*"?level"?[:=]"?ERROR.*$`)

// faultLog collects the ERROR lines of a log.
type faultLog struct {
	mu   sync.Mutex
	kept []string
}

func (l *faultLog) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("ERROR")) && faultLine.Match(p) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.kept = append(l.kept, string(p))
	}
	return len(p), nil
}

func (l *faultLog) faults() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept
}
