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
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"

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

// Every operation of both documents gets thousands of invalid requests. Every response is documented, none is an internal error,
// and no request leaks memory. The processing layer handles the accepted ones.
func TestAbuse(t *testing.T) { // not parallel: it measures the whole process
	a := newAbuse(t)
	for _, target := range a.targets {
		for _, o := range target.operations {
			a.send(t, target, o, a.requests/10) // fills caches, pools and connections
		}
	}
	before := settled(t, footprint{goroutines: 1 << 20})
	began, sent := time.Now(), 0
	for _, target := range a.targets {
		for _, o := range target.operations {
			started := time.Now()
			statuses := a.send(t, target, o, a.requests)
			sent += a.requests
			t.Logf("%-24s %d requests in %v: %v", o, a.requests, time.Since(started).Round(time.Millisecond), statuses)
			wantMixed(t, o, statuses)
		}
		target.forget()
	}
	t.Logf("%d requests in %v", sent, time.Since(began).Round(time.Millisecond))
	after := settled(t, before)
	grown := after.heap - before.heap
	t.Logf("the heap has grown by %d KiB to %d KiB, goroutines from %d to %d", grown>>10, after.heap>>10, before.goroutines, after.goroutines)
	if most := int64(sent)*mostKept + mostKeptAnyway; grown > most {
		t.Errorf("the heap has grown by %d bytes, want at most %d", grown, most)
	}
	a.othersAreServed(t)
	if faults := a.log.faults(); len(faults) > 0 {
		t.Errorf("got %d errors in the log, want none: %s", len(faults), faults[0])
	}
	a.digested(t)
}

// abuse has both APIs in this process, to measure leaks, and uses the engines and the processing layer of a standalone.
type abuse struct {
	*standalone
	seed     uint64
	requests int // to each operation
	log      *faultLog
	targets  []*abused
}

// abused is an API under test.
type abused struct {
	handler    http.Handler
	document   *httpapitest.Document
	operations []abusetest.Operation
	config     abusetest.Config

	faults atomic.Int64

	mu   sync.Mutex
	seen map[string]bool // responses that were validated against the document
}

func newAbuse(t *testing.T) *abuse {
	a := &abuse{standalone: ownStandalone(t, t.TempDir()), seed: abuseSeed(t), requests: abuseRequests(), log: new(faultLog)}
	client := clientapi.Config{Base: service.Base{NATS: config.NATS{NATSURL: a.NATSURL}}, Storage: storage.Config{Store: config.Store{SQLitePath: a.SQLitePath}}}
	widget := widgetConfig(t)
	widget.Storage.SQLitePath, widget.NATSURL, widget.VisitorKeysFile = a.SQLitePath, a.NATSURL, a.KeysFile
	widget.SecretsKeyFile = a.Secrets
	check(t, config.SetDefaults(&client))
	client.HTTPAddr, client.OpsAddr = "", ""
	client.RateToken, client.RateAuth = config.Rate{}, config.Rate{} // they would answer nearly all requests
	client.Logger = ops.NewLogger(a.log, "client-api", slog.LevelInfo)
	widget.Logger = ops.NewLogger(a.log, "widget-api", slog.LevelInfo)
	c, err := clientapi.New(client)
	check(t, err)
	w, err := widgetapi.New(widget)
	check(t, err)
	servicetest.Run(t, c.Run)
	servicetest.Run(t, w.Run)
	world := a.createRecords(t)
	a.targets = []*abused{
		newAbused(t, c.Handler(), clientapi.OpenAPI(), world.client), newAbused(t, w.Handler(), widgetapi.OpenAPI(), world.widget),
	}
	return a
}

// othersAreServed sends messages of another company and its visitor through the same APIs.
func (a *abuse) othersAreServed(t *testing.T) {
	t.Helper()
	p := a.place
	for n, base := range []*string{&p.ClientBaseURL, &p.WidgetBaseURL} {
		server := httptest.NewServer(a.targets[n].handler)
		defer server.Close()
		*base = server.URL
	}
	newBystander(t, p).send(t, 20)
}

func newAbused(t *testing.T, h http.Handler, document []byte, cfg abusetest.Config) *abused {
	t.Helper()
	operations, err := abusetest.Operations(document)
	check(t, err)
	return &abused{handler: h, document: httpapitest.Contract(t, document), operations: operations, config: cfg, seen: map[string]bool{}}
}

// abuseRequests returns the number of requests per operation: all in the long form of the tests (make test-faults), a tenth
// otherwise, which takes a few seconds with the race detector.
func abuseRequests() int {
	if os.Getenv("PARLEY_FAULTS") == "long" {
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
	id, _, err := s.ResolveVisitor(t.Context(), []store.Identity{{Scope: a.AppID, Kind: store.KindEmail, Value: v.email}})
	check(t, err)
	who, err := s.Visitor(t.Context(), id)
	check(t, err)
	c, err := s.CurrentChat(t.Context(), who, time.Now())
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
func (a *abuse) send(t *testing.T, target *abused, o abusetest.Operation, n int) map[int]int {
	t.Helper()
	var all sync.WaitGroup
	counts := make([]map[int]int, abusers)
	for i := range abusers {
		cfg := target.config
		cfg.Seed = rand.New(rand.NewPCG(cfg.Seed+uint64(n), uint64(i))).Uint64() // a deterministic generator is intended
		counts[i] = map[int]int{}
		all.Go(func() {
			m := abusetest.New(cfg)
			for range n / abusers {
				r := m.Next(o)
				status, err := target.tryAgain(t.Context(), r)
				if err != nil && target.faults.Add(1) <= mostFaults {
					t.Errorf("%s: %v\nto the request\n%s", o, err, r)
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

// tryAgain retries after a 503, as every client does: on a busy machine an engine may time out. An error that the request itself
// causes repeats.
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
	req, err := r.HTTP(ctx)
	if err != nil {
		return 0, nil //nolint:nilerr // such a request does not reach the API
	}
	w := httptest.NewRecorder()
	if err := serve(a.handler, w, req); err != nil {
		return http.StatusInternalServerError, err
	}
	body := w.Body.Bytes()
	if req.Method == http.MethodHead {
		body = nil // net/http drops it
	}
	switch status, header := w.Code, w.Result().Header; {
	case status < 200 || status >= 500:
		return status, fmt.Errorf("got %d %s, want neither a failure nor half an answer", status, body)
	case a.isKnown(req, status, header, body) || status < 400 && isPage(req.URL.Path):
		return status, nil
	case isPage(req.URL.Path):
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

// isPage reports whether the path is one of the documentation pages, which the document does not list.
func isPage(path string) bool { return path == "/openapi.json" || strings.HasPrefix(path, "/docs") }

// isKnown reports whether an equal response was validated before: most errors differ only in their id.
func (a *abused) isKnown(req *http.Request, status int, header http.Header, body []byte) bool {
	id := header.Get("X-Request-Id")
	if id == "" {
		return false
	}
	key := fmt.Sprintf("%s %s %d %s %t %s", req.Method, shape(req.URL.Path), status, header.Get("Content-Type"), header.Get("Retry-After")+header.Get("Allow") != "",
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
func shape(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		switch part {
		case "", "message", "send", "push-message", "register", "settings", "files", "read":
		default:
			parts[i] = "*"
		}
	}
	return strings.Join(parts, "/")
}

// wantMixed checks that both successes and errors occur: requests that are all rejected early would prove little.
func wantMixed(t *testing.T, o abusetest.Operation, statuses map[int]int) {
	t.Helper()
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

// digested waits until the processing layer has handled all accepted events, and checks for errors.
func (a *abuse) digested(t *testing.T) {
	t.Helper()
	for _, name := range []string{subject.Inbound, subject.Sends} {
		a.digestedIn(t, name)
	}
	wantNoDeadLetters(t, a.NATSURL)
	if faults := faultLine.FindAllString(a.stderr.String(), -1); len(faults) > 0 {
		t.Errorf("the standalone has failed: %s", faults[0])
	}
}

// digestedIn waits until the consumers of a stream have acknowledged all of it.
func (a *abuse) digestedIn(t *testing.T, name string) {
	t.Helper()
	stream, err := plainJetStream(t, a.NATSURL).Stream(t.Context(), name)
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
