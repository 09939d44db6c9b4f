package widgetapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/chat"
	widgetapi "github.com/parley-chat/parley/services/widget-api"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/httpapitest"
	"github.com/parley-chat/parley/testkit/timetest"
)

// Beginnings of real files, sufficient to detect the type.
const (
	png  = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00"
	mp4  = "\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isomiso2"
	webm = "\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\xf7\x81\x01\x42\xf2\x81\x04\x42\xf3\x81\x08\x42\x82\x84webm"
	mp3  = "ID3\x03\x00\x00\x00\x00\x0f\x76TIT2\x00\x00\x00\x06\x00\x00\x00Hello"
	pdf  = "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"
	svg  = `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`
	page = "<!doctype html><html><script>alert(1)</script></html>"
)

// part is one part of a form.
type part struct{ disposition, contentType, content string }

func filePart(name, contentType, content string) part {
	return part{fmt.Sprintf(`form-data; name="file"; filename="%s"`, name), contentType, content}
}

func field(name, content string) part { return part{`form-data; name="` + name + `"`, "", content} }

// form encodes parts, and returns the body with its Content-Type.
func form(parts ...part) (body, contentType string) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, p := range parts {
		header := textproto.MIMEHeader{"Content-Disposition": {p.disposition}}
		if p.contentType != "" {
			header.Set("Content-Type", p.contentType)
		}
		into, _ := w.CreatePart(header)
		_, _ = io.WriteString(into, p.content)
	}
	_ = w.Close()
	return b.String(), w.FormDataContentType()
}

func (w *world) upload(token string, parts ...part) httpapitest.Response {
	w.t.Helper()
	body, contentType := form(parts...)
	got, err := w.do(http.MethodPost, "/message", body, headers{"Content-Type": contentType, "Authorization": "Bearer " + token, "Origin": "https://shop.example.com"})
	w.must(err)
	return got
}

// fileData is the data of a message with a file.
type fileData struct {
	URL       string  `json:"url"`
	Mime      string  `json:"mime"`
	Path      string  `json:"path"`
	Size      int     `json:"size"`
	Caption   *string `json:"caption"`
	FileName  string  `json:"fileName"`
	Extension string  `json:"extension"`
}

// uploaded uploads a file that must be accepted.
func (w *world) uploaded(token string, parts ...part) (record, fileData) {
	w.t.Helper()
	got := w.upload(token, parts...)
	var r record
	var d fileData
	if err := json.Unmarshal([]byte(got.Body), &r); err != nil || got.Status != http.StatusCreated {
		w.t.Fatalf("POST /message: got %d %s, want 201 and a record", got.Status, got.Body)
	}
	w.must(json.Unmarshal(r.Data, &d))
	return r, d
}

// kept counts the messages of the object store: chunks and metadata.
func (w *world) kept() int {
	w.t.Helper()
	nc, err := nats.Connect(w.engines.NATSURL)
	w.must(err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	w.must(err)
	stream, err := js.Stream(context.Background(), "OBJ_FILES")
	w.must(err)
	return int(stream.CachedInfo().State.Msgs)
}

// keptNothing fails the test if files are left in the store.
func (w *world) keptNothing(what string) {
	w.t.Helper()
	if n := w.kept(); n != 0 {
		w.t.Errorf("%s: got %d messages in the object store, want none", what, n)
	}
}

// A file's message has the type of its content, whatever its name, and is in the stream, in the history and
// at its address.
func TestUploadBecomesAMessage(t *testing.T) {
	t.Parallel()
	w := start(t)
	token := w.register(appID, `"email":"a@example.com","firstName":"Ada"`)
	published := bustest.Collect(t, w.engines.NATSURL, "chat.in.visitor.message.>")
	for _, test := range []struct {
		name                                string
		parts                               []part
		kind, mime, fileName, extension     string
		caption, disposition, contentTypeAs string
	}{
		{"a picture", []part{filePart("a.png", "image/png", png), field("caption", "Look “here” <b>")}, "IMAGE", "image/png", "a.png", "png", "Look “here” <b>", `inline; filename="a.png"`, "image/png"},
		{"the caption first", []part{field("caption", "first"), field("own", "ignored"), filePart("a.png", "", png)}, "IMAGE", "image/png", "a.png", "png", "first", `inline; filename="a.png"`, "image/png"},
		{"a video", []part{filePart("a.mp4", "video/mp4", mp4)}, "VIDEO", "video/mp4", "a.mp4", "mp4", "", `inline; filename="a.mp4"`, "video/mp4"},
		{"sound", []part{filePart("a.mp3", "audio/mpeg", mp3)}, "AUDIO", "audio/mpeg", "a.mp3", "mp3", "", `inline; filename="a.mp3"`, "audio/mpeg"},
		{"a recorded voice", []part{filePart("voice.webm", "audio/webm;codecs=opus", webm)}, "AUDIO", "audio/webm", "voice.webm", "weba", "", `inline; filename="voice.webm"`, "audio/webm"},
		{"a document", []part{filePart("a.pdf", "application/pdf", pdf)}, "FILE", "application/pdf", "a.pdf", "pdf", "", `attachment; filename="a.pdf"`, "application/pdf"},
		{"a text with a name of another script", []part{filePart("گزارش (1).txt", "text/plain", "words")}, "FILE", "text/plain", "گزارش (1).txt", "txt", "", `attachment; filename="_____ (1).txt"; filename*=UTF-8''%DA%AF%D8%B2%D8%A7%D8%B1%D8%B4%20%281%29.txt`, "text/plain; charset=utf-8"},
		{"a drawing that can hold script", []part{filePart("a.svg", "image/svg+xml", svg)}, "IMAGE", "image/svg+xml", "a.svg", "svg", "", `attachment; filename="a.svg"`, "image/svg+xml"},
		{"a page", []part{filePart("a.html", "text/html", page)}, "FILE", "text/html", "a.html", "html", "", `attachment; filename="a.html"`, "text/html; charset=utf-8"},
		{"a page that is called a picture", []part{filePart("a.png", "application/octet-stream", page)}, "FILE", "text/html", "a.png", "html", "", `attachment; filename="a.png"`, "text/html; charset=utf-8"},
		{"a picture that is called a program", []part{filePart(`..\..\a.exe`, "", png)}, "IMAGE", "image/png", "a.exe.png", "png", "", `inline; filename="a.exe.png"`, "image/png"},
		{"no name", []part{{`form-data; name="file"`, "image/png", png}}, "IMAGE", "image/png", "file.png", "png", "", `inline; filename="file.png"`, "image/png"},
	} {
		r, d := w.uploaded(token, test.parts...)
		content := contentOf(test.parts)
		if r.Type != test.kind || r.IsFromSupport || r.NameOfSender != "Ada" || r.ID == "" {
			t.Errorf("%s: got %+v, want %s of the visitor", test.name, r, test.kind)
		}
		if d.Mime != test.mime || d.FileName != test.fileName || d.Extension != test.extension || d.Caption == nil || *d.Caption != test.caption ||
			d.Size != len(content) || d.URL != w.base+d.Path || !strings.HasPrefix(d.Path, "/files/") {
			t.Errorf("%s: got %s, want %+v", test.name, r.Data, test)
		}
		if faults := chat.ValidateData(chat.MessageType(r.Type), r.Data); len(faults) > 0 {
			t.Errorf("%s: the data breaks the rules: %v", test.name, faults)
		}
		w.published(published.Next(), w.claims(token).ChatUserID, r.ID, string(r.Data))
		if last := w.history(token); string(last[len(last)-1].Data) != string(r.Data) {
			t.Errorf("%s: got the history's %s, want the answer's %s", test.name, last[len(last)-1].Data, r.Data)
		}
		got := w.fetch(http.MethodGet, d.URL, nil)
		h := got.Header
		if got.Status != http.StatusOK || got.Body != content || h.Get("Content-Type") != test.contentTypeAs || h.Get("Content-Disposition") != test.disposition {
			t.Errorf("%s: got %d %v, want the content as %s, %s", test.name, got.Status, h, test.contentTypeAs, test.disposition)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(h.Get("Content-Security-Policy"), "sandbox;") || h.Get("Accept-Ranges") != "bytes" ||
			h.Get("Cache-Control") != "private, max-age=86400, immutable" || h.Get("Access-Control-Allow-Origin") != "https://shop.example.com" {
			t.Errorf("%s: got %v, want the headers of a file", test.name, h)
		}
	}
}

func contentOf(parts []part) string {
	for _, p := range parts {
		if strings.Contains(p.disposition, `"file"`) {
			return p.content
		}
	}
	return ""
}

// fetch requests the address in a message, from a page of another origin.
func (w *world) fetch(method, address string, header headers) httpapitest.Response {
	w.t.Helper()
	u, err := url.Parse(address)
	w.must(err)
	all := headers{"Origin": "https://shop.example.com"}
	for name, value := range header {
		all[name] = value
	}
	got, err := w.do(method, u.RequestURI(), "", all)
	w.must(err)
	return got
}

func TestDownload(t *testing.T) {
	t.Parallel()
	w := start(t)
	token := w.register(appID, `"email":"a@example.com"`)
	content := strings.Repeat("0123456789", 40_000) // more than three chunks
	_, d := w.uploaded(token, filePart("a.txt", "text/plain", content))
	tag, modified := w.fetch(http.MethodGet, d.URL, nil).Header.Get("ETag"), w.fetch(http.MethodGet, d.URL, nil).Header.Get("Last-Modified")
	for name, test := range map[string]struct {
		header       headers
		status       int
		body, ranged string
	}{
		"a range":                       {headers{"Range": "bytes=131070-131079"}, 206, content[131070:131080], "bytes 131070-131079/400000"},
		"the end":                       {headers{"Range": "bytes=-5"}, 206, "56789", "bytes 399995-399999/400000"},
		"from somewhere":                {headers{"Range": "bytes=399990-"}, 206, "0123456789", "bytes 399990-399999/400000"},
		"of this file":                  {headers{"Range": "bytes=0-4", "If-Range": tag}, 206, "01234", "bytes 0-4/400000"},
		"of another file":               {headers{"Range": "bytes=0-4", "If-Range": `"other"`}, 200, content, ""},
		"no unit of ours":               {headers{"Range": "lines=0-4"}, 200, content, ""},
		"no range at all":               {headers{"Range": "bytes=a-b"}, 416, "", "bytes */400000"},
		"after the end":                 {headers{"Range": "bytes=400000-"}, 416, "", "bytes */400000"},
		"known":                         {headers{"If-None-Match": `"x", ` + tag}, 304, "", ""},
		"known since":                   {headers{"If-Modified-Since": modified}, 304, "", ""},
		"known otherwise":               {headers{"If-None-Match": `"x"`}, 200, content, ""},
		"only if it is another":         {headers{"If-Match": `"x"`}, 412, "", ""},
		"only if it is this":            {headers{"If-Match": tag}, 200, content, ""},
		"only if it was there long ago": {headers{"If-Unmodified-Since": "Sat, 01 Jan 2000 00:00:00 GMT"}, 412, "", ""},
	} {
		got := w.fetch(http.MethodGet, d.URL, test.header)
		if got.Status != test.status || got.Header.Get("Content-Range") != test.ranged || got.Status < 300 && got.Body != test.body {
			t.Errorf("%s: got %d %v and %d bytes, want %d %s", name, got.Status, got.Header, len(got.Body), test.status, test.ranged)
		}
		if test.status >= 400 && (got.Problem(t).StatusCode != test.status || got.Header.Get("Content-Disposition") != "" || got.Header.Get("ETag") != "") {
			t.Errorf("%s: got %s with %v, want the body of all errors and nothing of the file", name, got.Body, got.Header)
		}
	}
	for _, ranges := range []string{"bytes=0-1,8-9", "bytes=" + strings.Repeat("0-0,", 9000) + "0-0", "bytes=0-4, 5-6"} {
		if several := w.fetch(http.MethodGet, d.URL, headers{"Range": ranges}); several.Status != http.StatusOK || several.Body != content {
			t.Errorf("%.20s: got %d and %d bytes, want the whole file", ranges, several.Status, len(several.Body))
		}
	}
	head := w.fetch(http.MethodHead, d.URL, nil)
	if head.Status != 200 || head.Body != "" || head.Header.Get("Content-Length") != "400000" || head.Header.Get("ETag") != tag {
		t.Errorf("HEAD: got %d %v, want what GET says", head.Status, head.Header)
	}
}

// Only the exact address of a message leads to its file.
func TestAddressesAreExact(t *testing.T) {
	t.Parallel()
	w := start(t)
	token := w.register(appID, `"email":"a@example.com"`)
	_, d := w.uploaded(token, filePart("a b%.txt", "text/plain", "words"))
	_, other := w.uploaded(token, filePart("a b%.txt", "text/plain", "words"))
	if other.Path == d.Path {
		t.Error("got the same address twice, want one for each file")
	}
	id := strings.Split(d.Path, "/")[2]
	for _, path := range []string{
		"/files/" + id + "/a.txt", "/files/" + id + "/a%20b%25.html", "/files/" + id + "/", "/files/" + id[:39] + "/a%20b%25.txt", "/files/" + strings.ToLower(id) + "X/a",
		"/files/x/a.txt", "/files/" + id + "/..%2fa", "/files/*/>", "/files/" + strings.Repeat("z", 7) + "-" + strings.Repeat("A", 32) + "/a.txt",
	} {
		if got := w.get(path, ""); got.Status != http.StatusNotFound {
			t.Errorf("GET %s: got %d, want 404", path, got.Status)
		}
	}
	if got := w.get("/files/"+id+"/%61%20b%25.txt", ""); got.Status != http.StatusOK || got.Body != "words" {
		t.Errorf("the same address written otherwise: got %d %s, want the file", got.Status, got.Body)
	}
}

// Rejected uploads, which leave nothing in the store.
func TestUploadErrors(t *testing.T) {
	t.Parallel()
	w := start(t, func(cfg *widgetapi.Config) { cfg.FileMaxBytes = 300 << 10 })
	token := w.register(appID, `"email":"a@example.com"`)
	_, first := w.uploaded(token, filePart("largest.txt", "", strings.Repeat("x", 300<<10)))
	if first.Size != 300<<10 {
		t.Errorf("got %d bytes, want a file as large as it may be", first.Size)
	}
	before := w.kept()
	picture, long := filePart("a.png", "image/png", png), strings.Repeat("x", 4097)
	large := strings.Repeat("x", 300<<10+1)
	whole, contentType := form(filePart("a.txt", "", strings.Repeat("x", 200<<10)), field("caption", "c"))
	for _, test := range []struct {
		name, body, contentType string
		parts                   []part
		status                  int
		code, details           string
	}{
		{name: "nothing", parts: nil, status: 400, code: "VALIDATION_ERROR", details: "file is required"},
		{name: "no file and a long caption", parts: []part{field("caption", long)}, status: 400, code: "VALIDATION_ERROR", details: "caption must have at most 4096 characters; file is required"},
		{name: "a field called file", parts: []part{field("file", "words")}, status: 400, code: "VALIDATION_ERROR", details: "file must be a file"},
		{name: "an empty file", parts: []part{filePart("a.txt", "text/plain", "")}, status: 400, code: "VALIDATION_ERROR", details: "file must not be empty"},
		{name: "two files and a long caption", parts: []part{picture, field("caption", long), picture}, status: 400, code: "VALIDATION_ERROR", details: "caption must have at most 4096 characters; file must be sent once"},
		{name: "two captions", parts: []part{field("caption", "a"), picture, field("caption", "b")}, status: 400, code: "VALIDATION_ERROR", details: "caption must be sent once"},
		{name: "a caption of 4-byte characters", parts: []part{picture, field("caption", strings.Repeat("😀", 4097))}, status: 400, code: "VALIDATION_ERROR", details: "caption must have at most 4096 characters"},
		{name: "a caption that is no text", parts: []part{picture, field("caption", "\xff\xfe")}, status: 400, code: "VALIDATION_ERROR", details: "caption must be UTF-8"},
		{name: "a page that is declared a picture", parts: []part{filePart("a.png", "image/png", page)}, status: 400, code: "FILE_TYPE_MISMATCH", details: "file is declared as something else than its content, which is text/html"},
		{name: "text that is declared a PDF", parts: []part{filePart("a.pdf", "application/pdf", "words")}, status: 400, code: "FILE_TYPE_MISMATCH", details: "file is declared as something else than its content, which is text/plain"},
		{name: "too large", parts: []part{filePart("a.txt", "", large)}, status: 413, code: "PAYLOAD_TOO_LARGE"},
		{name: "much too large", parts: []part{filePart("a.txt", "", strings.Repeat(large, 3))}, status: 413, code: "PAYLOAD_TOO_LARGE"},
		{name: "too much beside the file", parts: []part{picture, field("own", large)}, status: 413, code: "PAYLOAD_TOO_LARGE"},
		{name: "too much before the file", parts: []part{field("own", large), picture}, status: 413, code: "PAYLOAD_TOO_LARGE"},
		{name: "cut off in the file", body: whole[:150<<10], contentType: contentType, status: 400, code: "MALFORMED_MULTIPART"},
		{name: "cut off in the caption", body: whole[:len(whole)-40], contentType: contentType, status: 400, code: "MALFORMED_MULTIPART"},
		{name: "cut off before the end", body: whole[:len(whole)-6], contentType: contentType, status: 400, code: "MALFORMED_MULTIPART"},
		{name: "no form at all", body: "words", contentType: contentType, status: 400, code: "MALFORMED_MULTIPART"},
		{name: "no body", body: "", contentType: contentType, status: 400, code: "MALFORMED_MULTIPART"},
		{name: "no boundary", body: whole, contentType: "multipart/form-data", status: 400, code: "MALFORMED_MULTIPART"},
		{name: "another boundary", body: whole, contentType: "multipart/form-data; boundary=x", status: 400, code: "MALFORMED_MULTIPART"},
		{name: "another kind of parts", body: whole, contentType: strings.Replace(contentType, "form-data", "mixed", 1), status: 415, code: "UNSUPPORTED_MEDIA_TYPE"},
	} {
		body, kind := test.body, test.contentType
		if kind == "" {
			body, kind = form(test.parts...)
		}
		got, err := w.do(http.MethodPost, "/message", body, headers{"Content-Type": kind, "Authorization": "Bearer " + token})
		w.must(err)
		if p := got.Problem(t); got.Status != test.status || p.Code != test.code || got.Details(t) != test.details {
			t.Errorf("%s: got %d %s, want %d %s %s", test.name, got.Status, got.Body, test.status, test.code, test.details)
		}
		if n := w.kept(); n != before {
			t.Errorf("%s: got %d messages in the object store, want %d as before", test.name, n, before)
		}
	}
	body, contentType := form(picture)
	got, err := w.do(http.MethodPost, "/message", body, headers{"Content-Type": contentType, "Authorization": "Bearer x.y.z"})
	w.must(err)
	if got.Status != http.StatusUnauthorized || w.kept() != before {
		t.Errorf("a wrong token: got %d, want 401", got.Status)
	}
	got, err = w.do(http.MethodPost, "/message", body, headers{"Content-Type": contentType, "Authorization": "Bearer " + token, "Content-Encoding": "gzip"})
	w.must(err)
	if got.Status != http.StatusUnsupportedMediaType {
		t.Errorf("a content coding: got %d, want 415", got.Status)
	}
	if n := len(w.history(token)); n != 3 {
		t.Errorf("got %d messages, want the greetings and the first file", n)
	}
}

// The address of a file is the configured public one.
func TestPublicURL(t *testing.T) {
	t.Parallel()
	w := start(t, func(cfg *widgetapi.Config) { cfg.PublicURL = "https://chat.example.com/widget/" })
	_, d := w.uploaded(w.register(appID, `"email":"a@example.com"`), filePart("a.txt", "", "words"))
	if want := "https://chat.example.com/widget" + d.Path; d.URL != want {
		t.Errorf("got %s, want %s", d.URL, want)
	}
}

// An expired file is not found from that instant on, and the next sweep removes its bytes.
func TestRetention(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	clock := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	w := start(t, func(cfg *widgetapi.Config) {
		cfg.Now, cfg.FileSweep, cfg.FileRetention, cfg.CacheTTL = clock, 20*time.Millisecond, 48*time.Hour, time.Millisecond
		cfg.VisitorTokenTTL = 9000 * time.Hour
	})
	app, err := w.store.Application(t.Context(), appID)
	w.must(err)
	app.FileRetention = time.Hour
	w.must(w.store.PutApplication(t.Context(), app))

	_, short := w.uploaded(w.register(appID, `"email":"a@example.com"`), filePart("a.txt", "", "short"))
	_, long := w.uploaded(w.register(bareApp, `"email":"a@example.com"`), filePart("a.txt", "", "long"))
	if age := w.fetch("GET", short.URL, nil).Header.Get("Cache-Control"); !strings.HasPrefix(age, "private, max-age=3") {
		t.Errorf("got Cache-Control %q, want no longer than the file lives", age)
	}
	ahead.Store(int64(59 * time.Minute))
	if got := w.fetch("GET", short.URL, nil); got.Status != http.StatusOK {
		t.Errorf("just before: got %d, want 200", got.Status)
	}
	before := w.kept()
	ahead.Store(int64(61 * time.Minute))
	if got := w.fetch("GET", short.URL, nil); got.Status != http.StatusNotFound || got.Problem(t).Code != "FILE_NOT_FOUND" {
		t.Errorf("after an hour: got %d %s, want 404", got.Status, got.Body)
	}
	timetest.Until(t, "the bytes of the application's file are removed", func() bool { return w.kept() == before/2 })
	if got := w.fetch("GET", long.URL, nil); got.Status != http.StatusOK || got.Body != "long" {
		t.Errorf("the other application's: got %d, want it kept", got.Status)
	}
	ahead.Store(int64(49 * time.Hour))
	timetest.Until(t, "the bytes of the other file are removed", func() bool { return w.kept() == 0 })
}

// An upload that is repeated with its key is one message and one file, whatever its encoding.
func TestUploadWithAnIdempotencyKey(t *testing.T) {
	t.Parallel()
	w := start(t)
	token := w.register(appID, `"email":"a@example.com"`)
	send := func(key string, parts ...part) httpapitest.Response {
		t.Helper()
		body, contentType := form(parts...) // with a boundary of its own
		got, err := w.do(http.MethodPost, "/message", body, headers{"Content-Type": contentType, "Authorization": "Bearer " + token, "Idempotency-Key": key})
		w.must(err)
		return got
	}
	const key = `"0198b1c6-4c43-7d0c-a7a5-0d2f6f0a4c11"`
	file, caption := filePart("a.png", "image/png", png+strings.Repeat("x", 300<<10)), field("caption", "c")
	first := send(key, file, caption)
	if first.Status != http.StatusCreated {
		t.Fatalf("got %d %s, want 201", first.Status, first.Body)
	}
	kept := w.kept()
	if again := send(key, caption, file); again.Status != http.StatusCreated || again.Body != first.Body || again.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("again: got %d %s, want the first answer %s", again.Status, again.Body, first.Body)
	}
	if other := send(key, file, field("caption", "another")); other.Status != http.StatusUnprocessableEntity {
		t.Errorf("another caption: got %d %s, want 422", other.Status, other.Body)
	}
	if malformed := send(`"never closed`, file); malformed.Status != http.StatusBadRequest {
		t.Errorf("a malformed key: got %d %s, want 400", malformed.Status, malformed.Body)
	}
	if n := w.kept(); n != kept {
		t.Errorf("got %d messages in the object store, want %d: one file", n, kept)
	}
	if n := len(w.history(token)); n != 3 {
		t.Errorf("got %d messages, want the greetings and one file", n)
	}
}
