package fetch

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-pdf/fpdf"

	"github.com/parley-chat/parley/pkg/knowledge"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// site serves pages by path, and has no robots.txt unless it serves one.
func siteOf(t *testing.T, pages map[string]http.HandlerFunc) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	for path, handle := range pages {
		mux.HandleFunc(path, handle)
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

// has answers with a text of a type.
func has(contentType, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		if contentType != "" {
			w.Header().Set("Content-Type", contentType)
		}
		_, _ = w.Write([]byte(text))
	}
}

// pdfOf returns a PDF file with a page.
func pdfOf(t *testing.T, text string) string {
	t.Helper()
	f := fpdf.New("P", "mm", "A4", "")
	f.SetFont("Helvetica", "", 12)
	f.AddPage()
	f.Cell(100, 10, text)
	var out strings.Builder
	if err := f.Output(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func to(address string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, address, http.StatusFound) }
}

func clientFor(t *testing.T, allow []netip.Prefix) *client {
	c := newClient(allow, 0, time.Now)
	t.Cleanup(c.http.CloseIdleConnections)
	return c
}

// get fetches an address, and returns the answer or the failure.
func get(t *testing.T, c *client, address string) (answer, failure) {
	t.Helper()
	a, err := c.fetch(t.Context(), knowledge.Document{Address: address})
	if err == nil {
		return a, failure{}
	}
	f, ok := errors.AsType[*failure](err)
	if !ok {
		t.Fatalf("got %v, want a failure", err)
	}
	return a, *f
}

func TestPages(t *testing.T) {
	t.Parallel()
	server := siteOf(t, map[string]http.HandlerFunc{
		"/html":       has("text/html", "<html><head><title> Our\n returns &amp; more </title></head><body><p>Free</p></body></html>"),
		"/latin":      has("text/html; charset=ISO-8859-1", "<p>Gr\xfc\xdfe</p>"),
		"/meta":       has("text/html", `<head><meta charset="windows-1252"></head><p>Gr`+"\xfc\xdfe \x80</p>"),
		"/mark":       has("text/plain", "\uFEFFGrüße"),
		"/plain":      has("text/plain; charset=utf-8", "Grüße"),
		"/guide.md":   has("text/plain", "# Guide\n\nText"),
		"/typed":      has("text/markdown; charset=UTF-8", "# Guide\n\nText"),
		"/moved":      to("/plain"),
		"/xhtml":      has("application/xhtml+xml", "<p>Text</p>"),
		"/bad":        has("text/plain; charset=utf-8", "a\xffb"),
		"/menu":       has("application/pdf", pdfOf(t, "Soup")),
		"/robots.txt": status(http.StatusForbidden),
	})
	c := clientFor(t, loopback)
	for path, want := range map[string]page{
		"/html":     {knowledge.HTML, "Our returns & more", "<html><head><title> Our\n returns &amp; more </title></head><body><p>Free</p></body></html>"},
		"/latin":    {knowledge.HTML, "", "<p>Grüße</p>"},
		"/meta":     {knowledge.HTML, "", `<head><meta charset="windows-1252"></head><p>Grüße €</p>`},
		"/mark":     {knowledge.Text, "", "Grüße"},
		"/plain":    {knowledge.Text, "", "Grüße"},
		"/guide.md": {knowledge.Markdown, "", "# Guide\n\nText"},
		"/typed":    {knowledge.Markdown, "", "# Guide\n\nText"},
		"/moved":    {knowledge.Text, "", "Grüße"},
		"/xhtml":    {knowledge.HTML, "", "<p>Text</p>"},
		"/bad":      {knowledge.Text, "", "a\uFFFDb"},
		"/menu":     {knowledge.Markdown, "", "# Page 1\n\nSoup\n"},
	} {
		a, f := get(t, c, server.URL+path)
		if a.page != want || f.code != "" {
			t.Errorf("%s: got %+v and %+v, want %+v", path, a.page, f, want)
		}
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	server := siteOf(t, map[string]http.HandlerFunc{
		"/robots.txt": has("text/plain", "User-agent: *\nDisallow: /private\n"),
		"/private/x":  has("text/plain", "secret"),
		"/moved":      to("/private/x"),
		"/loop":       to("/loop"),
		"/away":       to(strings.Replace(closed.URL, "127.0.0.1", "127.0.0.2", 1) + "/x"),
		"/file":       to("file:///etc/passwd"),
		"/busy": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "999999999")
			w.WriteHeader(http.StatusTooManyRequests)
		},
		"/image":   has("image/png", "x"),
		"/untyped": has("", "x"),
		"/packed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			has("text/html", "x")(w, nil)
		},
		"/scan.pdf": has("application/pdf", pdfOf(t, "")),
		"/bad.pdf":  has("application/pdf", "%PDF-1.7 and no more"),
		"/large":    has("text/plain", strings.Repeat("x", knowledge.MaxText+1)),
		"/longer":   has("text/plain; charset=iso-8859-1", strings.Repeat("\xfc", knowledge.MaxText/2+1)),
		"/empty":    has("text/html", "<html><body><script>render()</script></body></html>"),
		"/breaks": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("x"))
		},
	})
	ruled := func(code int) string {
		return siteOf(t, map[string]http.HandlerFunc{"/robots.txt": status(code), "/": has("text/plain", "x")}).URL
	}
	c := clientFor(t, loopback)
	for address, want := range map[string]struct{ code, message string }{
		server.URL + "/missing":    {knowledge.FetchRefused, "404 Not Found"},
		server.URL + "/busy":       {knowledge.FetchRefused, "429 Too Many Requests"},
		server.URL + "/private/x":  {knowledge.FetchRobots, "forbids Parley-Documents"},
		server.URL + "/moved":      {knowledge.FetchRobots, "robots.txt"},
		server.URL + "/loop":       {knowledge.FetchRedirected, "more than 3 times"},
		server.URL + "/away":       {knowledge.FetchRedirected, "http://127.0.0.2:"},
		server.URL + "/file":       {knowledge.FetchRefused, "302 Found"},
		server.URL + "/image":      {knowledge.FetchType, "image/png"},
		server.URL + "/untyped":    {knowledge.FetchType, "does not say"},
		server.URL + "/packed":     {knowledge.FetchType, "compressed"},
		server.URL + "/scan.pdf":   {knowledge.FetchEmpty, "no text"},
		server.URL + "/bad.pdf":    {knowledge.FetchType, "not a PDF"},
		server.URL + "/large":      {knowledge.FetchTooLarge, "512 KiB"},
		server.URL + "/longer":     {knowledge.FetchTooLarge, "512 KiB"},
		server.URL + "/empty":      {knowledge.FetchEmpty, "no text"},
		server.URL + "/breaks":     {knowledge.FetchNoAnswer, "unexpected EOF"},
		closed.URL:                 {knowledge.FetchNoRobots, "robots.txt cannot be read"},
		ruled(503):                 {knowledge.FetchNoRobots, "robots.txt cannot be read"},
		"http://10.0.0.1/x":        {knowledge.FetchNotAllowed, "not allowed"},
		"http://[::1]:9000/x":      {knowledge.FetchNotAllowed, "not allowed"},
		"http://169.254.169.254/x": {knowledge.FetchNotAllowed, "not allowed"},
		"http://no-such.invalid/x": {knowledge.FetchNoRobots, "robots.txt cannot be read"},
	} {
		_, f := get(t, c, address)
		if f.code != want.code || !strings.Contains(f.message, want.message) {
			t.Errorf("%s: got %s, %q, want %s, %q", address, f.code, f.message, want.code, want.message)
		}
	}
	if _, f := get(t, c, server.URL+"/busy"); f.retryAfter != longestRetryAfter {
		t.Errorf("got the pause %v, want the longest one, %v", f.retryAfter, longestRetryAfter)
	}
	if a, f := get(t, c, ruled(404)); a.text != "x" {
		t.Errorf("without a robots.txt: got %+v, want the text", f)
	}
	public := clientFor(t, nil)
	if _, f := get(t, public, server.URL); f.code != knowledge.FetchNotAllowed || strings.Contains(f.message, "127.0.0.1") {
		t.Errorf("a private address: got %+v, want it refused", f)
	}
}

// A server is asked with what it said about the text that the document has.
func TestConditions(t *testing.T) {
	t.Parallel()
	var asked http.Header
	server := siteOf(t, map[string]http.HandlerFunc{"/page": func(w http.ResponseWriter, r *http.Request) {
		asked = r.Header.Clone()
		w.Header().Set("ETag", `"2"`)
		w.Header().Set("Last-Modified", "Sat, 28 Nov 2026 10:00:00 GMT")
		w.Header().Set("Content-Type", "text/plain")
		if r.Header.Get("If-None-Match") == `"2"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write([]byte("text"))
	}})
	c := clientFor(t, loopback)
	d := knowledge.Document{Address: server.URL + "/page#costs"}
	a, err := c.fetch(t.Context(), d)
	if err != nil || a.unchanged || a.etag != `"2"` || a.modified == "" {
		t.Fatalf("got %+v and %v, want the text", a, err)
	}
	if asked.Get("User-Agent") != userAgent || asked.Get("If-None-Match") != "" {
		t.Errorf("got the header %v, want no condition", asked)
	}
	d.Source.ETag, d.Source.Modified = a.etag, a.modified
	if a, err = c.fetch(t.Context(), d); err != nil || !a.unchanged || asked.Get("If-Modified-Since") != a.modified {
		t.Errorf("got %+v, %v and the header %v, want that it is unchanged", a, err, asked)
	}
}

func TestRobots(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text    string
		allowed bool
	}{
		"ours":               {"User-agent: *\nDisallow:\n\nUser-agent: parley-documents\nDisallow: /\n", false},
		"ours instead":       {"User-agent: *\nDisallow: /\n\nUser-agent: Parley-Documents\nAllow: /\n", true},
		"another one's":      {"User-agent: Other\nDisallow: /\n", true},
		"a query":            {"User-agent: *\nDisallow: /*?page=\n", false},
		"the longest":        {"User-agent: *\nDisallow: /\nAllow: /a\n", true},
		"a page":             {"<!doctype html><p>Not a robots.txt: Disallow: /</p>", true},
		"no groups":          {"Disallow: /\n", true},
		"a mark":             {"\uFEFFUser-agent: *\nDisallow: /\n", false},
		"rules before it":    {"Allow: /\nUser-agent: *\nDisallow: /\n", false},
		"a bad delay":        {"User-agent: *\nCrawl-delay: often\nDisallow: /\n", false},
		"invalid characters": {"User-agent: *\nDisallow: /\xff*x\nDisallow: /\n", false},
		"nothing":            {"", true},
	} {
		if got := groupOf([]byte(test.text)).Test("/a?page=1"); got != test.allowed {
			t.Errorf("%s: got %v, want %v", name, got, test.allowed)
		}
	}
}

// The rules of a site are read once an hour; that they could not be read is forgotten earlier.
func TestRobotsAreKept(t *testing.T) {
	t.Parallel()
	reads, code := 0, http.StatusServiceUnavailable
	server := siteOf(t, map[string]http.HandlerFunc{
		"/robots.txt": func(w http.ResponseWriter, _ *http.Request) { reads++; w.WriteHeader(code) },
		"/":           has("text/plain", "x"),
	})
	c := clientFor(t, loopback)
	now := time.Now()
	c.now = func() time.Time { return now }
	for _, step := range []struct {
		after time.Duration
		code  int
		reads int
		want  string
	}{
		{0, http.StatusServiceUnavailable, 1, knowledge.FetchNoRobots},
		{robotsRetry / 2, http.StatusNotFound, 1, knowledge.FetchNoRobots},
		{robotsRetry, http.StatusNotFound, 2, ""},
		{robotsAge / 2, http.StatusServiceUnavailable, 2, ""},
		{robotsAge, http.StatusServiceUnavailable, 3, knowledge.FetchNoRobots},
	} {
		now = now.Add(step.after)
		code = step.code
		if _, f := get(t, c, server.URL); f.code != step.want || reads != step.reads {
			t.Errorf("%v later: got %q and %d reads, want %q and %d", step.after, f.code, reads, step.want, step.reads)
		}
	}
}

func TestSameSite(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		from, to string
		want     bool
	}{
		{"http://shop.example/a", "https://www.shop.example/b", true},
		{"https://www.Shop.example", "https://shop.example", true},
		{"https://shop.example:8443", "https://shop.example:8443/b", true},
		{"https://shop.example", "http://shop.example", false},
		{"https://shop.example", "https://shop.example:8443", false},
		{"http://shop.example:8080", "https://shop.example", false},
		{"https://shop.example", "https://evil.example", false},
		{"https://shop.example", "https://shop.example.evil.example", false},
		{"https://shop.example", "https://de.shop.example", false},
	} {
		from, _ := url.Parse(test.from)
		to, _ := url.Parse(test.to)
		if got := isSameSite(from, to); got != test.want {
			t.Errorf("%s to %s: got %v, want %v", test.from, test.to, got, test.want)
		}
	}
}

// Requests to one host begin a second apart; other hosts wait for none of them.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(hostPause)
		begin := time.Now()
		for n := range 3 {
			if err := turns.wait(t.Context(), "a"); err != nil || time.Since(begin) != time.Duration(n)*hostPause {
				t.Errorf("request %d: got %v after %v", n, err, time.Since(begin))
			}
		}
		if err := turns.wait(t.Context(), "b"); err != nil || time.Since(begin) != 2*hostPause {
			t.Errorf("another host: got %v after %v", err, time.Since(begin))
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := turns.wait(ended, "a"); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the end", err)
		}
	})
}

func FuzzPage(f *testing.F) {
	f.Add("text/html; charset=utf-16", []byte("<title>x</title>"))
	f.Add("text/plain", []byte("a\xff\x00"))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		k, err := kindOf(http.Header{"Content-Type": {contentType}}, &url.URL{})
		if err != nil {
			return
		}
		p, err := k.page(t.Context(), body)
		if err != nil {
			return
		}
		d := knowledge.Document{Title: "x", Format: p.format, Text: p.text}
		if err := d.Check(); err != nil {
			t.Errorf("got %v for what was read", err)
		}
	})
}
