package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// changingPage is a page with an ETag.
type changingPage struct {
	mu        sync.Mutex
	text      string
	unchanged int // answers that it is the one that was asked about
}

func (p *changingPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/robots.txt" {
		fmt.Fprint(w, "User-agent: *\nDisallow: /private\n")
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	tag := fmt.Sprintf(`"%d"`, len(p.text))
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		p.unchanged++
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "text/html")
	fmt.Fprint(w, p.text)
}

func (p *changingPage) set(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = text
}

// TestKnowledgeFromAddress lets a model answer from a page that Parley fetches: an unchanged page is not sent again, and a
// changed one is what the model gets. An address that robots.txt forbids gets no text.
func TestKnowledgeFromAddress(t *testing.T) {
	s := commonStandalone(t)
	o := newOperator(t, s)
	m := &citingModel{}
	model := httptest.NewServer(m)
	t.Cleanup(model.Close)
	page := &changingPage{text: "<title>Our shop</title><h1>Returns</h1><p>A parcel may be returned for thirty days."}
	web := httptest.NewServer(page)
	t.Cleanup(web.Close)

	company, app, _ := o.documentBot("Fetchers", model.URL, `{"passages":2}`)
	document := o.create("documents", "add", "--company", company, "--address", web.URL+"/returns", "--refresh", "24h")
	private := o.create("documents", "add", "--company", company, "--address", web.URL+"/private", "--refresh", "24h")

	type state struct {
		Title, Text string
		Fetch       struct {
			FetchedAt string
			Failure   struct{ Code string }
		}
	}
	await := func(id, what string, is func(state) bool) {
		t.Helper()
		eventually(t, what, func() error {
			var d state
			if err := json.Unmarshal(o.run("documents", "show", id, "-o", "json"), &d); err != nil {
				return err
			}
			if !is(d) {
				return fmt.Errorf("got %+v", d)
			}
			return nil
		})
	}
	await(document, "the page is fetched", func(d state) bool {
		return d.Title == "Our shop" && strings.Contains(d.Text, "thirty days")
	})
	await(private, "robots.txt forbids it", func(d state) bool {
		return d.Fetch.Failure.Code == "DOCUMENT_FORBIDDEN_BY_ROBOTS" && d.Text == ""
	})
	o.run("documents", "fetch", document)
	eventually(t, "the page is unchanged", func() error {
		page.mu.Lock()
		defer page.mu.Unlock()
		if page.unchanged == 0 {
			return fmt.Errorf("got no request with the ETag")
		}
		return nil
	})
	page.set("<title>Our shop</title><h1>Returns</h1><p>A parcel may be returned for sixty-one days.")
	o.run("documents", "fetch", document)
	await(document, "the changed page is fetched", func(d state) bool { return strings.Contains(d.Text, "sixty-one days") })

	there := s.place
	there.AppID, there.CompanyID = app, company
	v := register(t, there, there.widgetAPI(t))
	socket := connected(t, s.SocketURLs[0], v.token, "websocket")
	v.write(t, "How long may I return a parcel?")
	var read reading
	want := "You may return it [1] or not.\n\n[1] [Our shop › Returns](" + web.URL + "/returns)"
	if got, _ := socket.finish(t, &read); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if told := m.last(); !strings.Contains(told, "sixty-one days") || strings.Contains(told, "thirty") {
		t.Errorf("got the instructions %q, want the text of the changed page", told)
	}
}
