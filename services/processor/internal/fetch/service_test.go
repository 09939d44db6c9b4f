package fetch

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/testkit/storetest"
)

// world is a store, and a processor whose polls the test makes.
type world struct {
	*testing.T
	store store.Store
	*Service
	now time.Time
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, store: storetest.Open(t), now: time.Now().UTC().Truncate(time.Millisecond)}
	w.Service = w.processor()
	return w
}

// processor returns one more processor on the same store.
func (w *world) processor() *Service {
	s := New(Config{
		Store: w.store, Allow: loopback, Now: func() time.Time { return w.now }, Logger: slog.New(slog.DiscardHandler),
	})
	s.client.turns.pause = 0
	w.Cleanup(s.client.http.CloseIdleConnections)
	return s
}

// add stores a document that is fetched from an address, and returns its id.
func (w *world) add(companyID, address string) string {
	w.Helper()
	d := knowledge.Document{ID: chat.NewID(), CompanyID: companyID, Title: knowledge.AddressTitle(address), Format: knowledge.HTML}
	d.SetSource(address, 24, w.now)
	if err := d.Check(); err != nil {
		w.Fatal(err)
	}
	w.must(w.store.PutDocument(w.Context(), d, nil))
	return d.ID
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) document(id string) knowledge.Document {
	w.Helper()
	d, err := w.store.Document(w.Context(), id)
	w.must(err)
	return d
}

// poll fetches what is due, and returns when that has ended.
func (w *world) poll() {
	w.Helper()
	w.must(w.startDue(w.Context()))
	w.running.Wait()
}

// A page is fetched, unchanged, changed and gone: the text is the last one that the server had.
func TestRefresh(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var text, etag atomic.Value
	var code atomic.Int64
	server := siteOf(t, map[string]http.HandlerFunc{"/page": func(rw http.ResponseWriter, r *http.Request) {
		if n := code.Load(); n > 0 {
			rw.WriteHeader(int(n))
			return
		}
		rw.Header().Set("ETag", etag.Load().(string))
		if r.Header.Get("If-None-Match") == etag.Load() {
			rw.WriteHeader(http.StatusNotModified)
			return
		}
		has("text/html", text.Load().(string))(rw, r)
	}})
	etag.Store(`"1"`)
	text.Store("<title>Returns</title><h1>Costs</h1><p>Returning a parcel is free.")
	id := w.add("acme", server.URL+"/page")
	w.poll()
	first := w.document(id)
	if first.Title != "Returns" || first.Passages != 1 || first.Revision != 2 || first.Bytes != len(first.Text) {
		t.Errorf("got %+v, want the page", first)
	}
	want := knowledge.Source{RefreshHours: 24, FetchedAt: w.now, DueAt: w.now.Add(24 * time.Hour), ETag: `"1"`}
	if first.Source != want {
		t.Errorf("got %+v, want %+v", first.Source, want)
	}
	if found, err := w.store.SearchPassages(t.Context(), "acme", knowledge.Terms("parcels"), 5); err != nil || len(found) != 1 {
		t.Errorf("got %v and %v, want a passage", found, err)
	}

	w.poll() // nothing is due
	w.now = w.now.Add(24 * time.Hour)
	w.poll()
	same := w.document(id)
	if same.Revision != 2 || same.Source.FetchedAt != w.now || same.UpdatedAt != first.UpdatedAt {
		t.Errorf("got %+v, want it unchanged, and fetched", same)
	}
	etag.Store(`"2"`)
	w.now = w.now.Add(24 * time.Hour)
	w.poll()
	if d := w.document(id); d.Revision != 2 || d.Source.ETag != `"2"` {
		t.Errorf("the same text again: got %+v, want no new revision", d)
	}
	etag.Store(`"3"`)
	text.Store("<title>Other</title><p>Returning a parcel costs a euro.")
	w.now = w.now.Add(24 * time.Hour)
	w.poll()
	if d := w.document(id); d.Revision != 3 || !strings.Contains(d.Text, "euro") || d.Title != "Returns" {
		t.Errorf("another text: got %+v, want it, with the title that the document has", d)
	}

	code.Store(http.StatusNotFound)
	for n, pause := range []time.Duration{5, 10, 20, 40, 80, 160, 320, 640, 1280, 1440, 1440} {
		w.now = w.document(id).Source.DueAt
		w.poll()
		d := w.document(id)
		if d.Source.Failure.Code != knowledge.FetchRefused || d.Source.Failures != n+1 || d.Revision != 3 {
			t.Errorf("got %+v, want failure %d, and the text of before", d.Source, n+1)
		}
		if got := d.Source.DueAt.Sub(w.now); got != pause*time.Minute {
			t.Errorf("after failure %d: got the pause %v, want %v min", n+1, got, int(pause))
		}
	}
	code.Store(0)
	w.now = w.document(id).Source.DueAt
	w.poll()
	if d := w.document(id); d.Source.Failures != 0 || d.Source.Failure.Code != "" || d.Source.FetchedAt != w.now {
		t.Errorf("got %+v, want no failure any more", d.Source)
	}
}

// What a company does while its document is fetched wins over the answer.
func TestChangedMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var id string
	var meanwhile func(d *knowledge.Document)
	server := siteOf(t, map[string]http.HandlerFunc{"/page": func(rw http.ResponseWriter, r *http.Request) {
		d := w.document(id)
		meanwhile(&d)
		if err := w.store.PutDocument(r.Context(), d, nil); err != nil {
			t.Error(err)
		}
		has("text/plain", "fetched")(rw, r)
	}})
	id = w.add("acme", server.URL+"/page")
	meanwhile = func(d *knowledge.Document) { d.Title = "Ours" }
	w.poll()
	d := w.document(id)
	if d.Title != "Ours" || d.Text != "" || d.Revision != 2 {
		t.Errorf("got %+v, want the change", d)
	}
	w.now = d.Source.DueAt // the end of the lease
	meanwhile = func(d *knowledge.Document) {
		d.SetSource(d.Address, 0, w.now)
		d.Text = "by hand"
	}
	w.poll()
	if d := w.document(id); d.Text != "by hand" || d.Source != (knowledge.Source{}) {
		t.Errorf("got %+v, want the text that was given", d)
	}
}

// A company that has no room keeps the text of before.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := siteOf(t, map[string]http.HandlerFunc{"/page": has("text/plain", "text")})
	big := knowledge.Document{ID: chat.NewID(), CompanyID: "acme", Title: "x", Format: knowledge.Text, Bytes: knowledge.MaxTotal}
	w.must(w.store.PutDocument(t.Context(), big, nil))
	id := w.add("acme", server.URL+"/page")
	w.poll()
	if d := w.document(id); d.Text != "" || d.Source.Failure.Code != knowledge.FetchNoRoom {
		t.Errorf("got %+v, want that there is no room", d)
	}
}

// One company's documents, on a server that does not answer, take half of the slots; others are fetched meanwhile. Several
// processors fetch each document once. A shutdown makes what it breaks off due again.
func TestShared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, stop := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	waiting.Add(concurrent + 2)
	var fast, slow atomic.Int64
	server := siteOf(t, map[string]http.HandlerFunc{
		"/slow": func(_ http.ResponseWriter, r *http.Request) {
			slow.Add(1)
			waiting.Done()
			<-r.Context().Done()
		},
		"/fast": func(rw http.ResponseWriter, r *http.Request) {
			fast.Add(1)
			waiting.Done()
			has("text/plain", "text")(rw, r)
		},
	})
	var stuck []string
	for range 2 * concurrent {
		stuck = append(stuck, w.add("busy", server.URL+"/slow"))
	}
	w.now = w.now.Add(time.Second)
	for range 2 {
		w.add("other", server.URL+"/fast")
	}
	processors := []*Service{w.Service, w.processor()}
	var all sync.WaitGroup
	for _, p := range processors {
		all.Go(func() {
			if err := p.startDue(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	waiting.Wait()
	for _, p := range processors {
		all.Go(p.running.Wait)
	}
	stop()
	all.Wait()
	if slow.Load() != concurrent || fast.Load() != 2 {
		t.Errorf("got %d and %d requests, want half of all slots, and one of each document", slow.Load(), fast.Load())
	}
	for _, id := range stuck {
		if d := w.document(id); d.Source.DueAt.After(w.now) || d.Source.Failures > 0 {
			t.Errorf("got %+v, want it due", d.Source)
		}
	}
}

// A processor that is killed in the middle of a fetch delays it by its lease.
func TestKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := siteOf(t, map[string]http.HandlerFunc{"/page": has("text/plain", "text")})
	id := w.add("acme", server.URL+"/page")
	_, claimed, err := w.store.ClaimDocument(t.Context(), id, w.now, w.now.Add(lease))
	if err != nil || !claimed {
		t.Fatalf("got %v and %v, want it claimed", claimed, err)
	}
	w.poll()
	if d := w.document(id); d.Text != "" {
		t.Errorf("got %+v, want that nobody fetches it during the lease", d)
	}
	w.now = w.now.Add(lease)
	w.poll()
	if d := w.document(id); d.Text != "text" {
		t.Errorf("got %+v, want the text", d)
	}
}
