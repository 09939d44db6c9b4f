package widgetapi_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/config"
	widgetapi "github.com/parley-chat/parley/services/widget-api"
	"github.com/parley-chat/parley/testkit/httpapitest"
	"github.com/parley-chat/parley/testkit/nettest"
	"github.com/parley-chat/parley/testkit/opstest"
	"github.com/parley-chat/parley/testkit/timetest"
)

// stream is a form that is sent in pieces.
type stream struct {
	t    *testing.T
	pipe *io.PipeWriter
	done chan httpapitest.Response
	err  chan error
}

// begin starts an upload without sending anything.
func (w *world) begin(ctx context.Context, token, contentType string) *stream {
	w.t.Helper()
	body, pipe := io.Pipe()
	s := &stream{t: w.t, pipe: pipe, done: make(chan httpapitest.Response, 1), err: make(chan error, 1)}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.base+"/message", body)
	w.must(err)
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("Authorization", "Bearer "+token)
	go func() {
		got, err := httpapitest.Do(w.http, req)
		_ = body.CloseWithError(io.ErrClosedPipe) // unblocks the sender
		if err != nil {
			s.err <- err
			return
		}
		s.done <- got
	}()
	return s
}

func (s *stream) send(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.pipe, text); err != nil {
		s.t.Fatalf("sending: %v", err)
	}
}

// keepMoving sends more of the file until stop is called, fast enough to keep its slot while others wait.
func (s *stream) keepMoving() (stop func()) {
	stopping, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_, _ = io.WriteString(s.pipe, strings.Repeat("y", 2<<10)) // a failure shows in the answer
			case <-stopping:
				return
			}
		}
	}()
	return func() { close(stopping); <-stopped }
}

func (s *stream) answer() httpapitest.Response {
	s.t.Helper()
	select {
	case a := <-s.done:
		return a
	case err := <-s.err:
		s.t.Fatalf("got no answer: %v", err)
	case <-time.After(timetest.Limit):
		s.t.Fatal("got no answer in time")
	}
	return httpapitest.Response{}
}

// halves returns a form with a file of several chunks, in two pieces.
func halves() (first, second, contentType string) {
	body, contentType := form(filePart("a.txt", "", strings.Repeat("x", 700<<10)), field("caption", "c"))
	return body[:400<<10], body[400<<10:], contentType
}

// A visitor who disconnects during an upload leaves nothing in the store.
func TestUploadCutOffByTheClient(t *testing.T) {
	t.Parallel()
	w := start(t)
	token := w.register(appID, `"email":"a@example.com"`)
	first, _, contentType := halves()
	ctx, cancel := context.WithCancel(t.Context())
	s := w.begin(ctx, token, contentType)
	s.send(first)
	timetest.Until(t, "chunks are stored", func() bool { return w.kept() > 1 })
	cancel()
	_ = s.pipe.Close()
	if err := <-s.err; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the client disconnected", err)
	}
	timetest.Until(t, "nothing is left", func() bool { return w.kept() == 0 })
	if n := len(w.history(token)); n != 2 {
		t.Errorf("got %d messages, want the greetings", n)
	}
}

// A stream that refuses the message stores no file either.
func TestUploadIntoAFullStream(t *testing.T) {
	t.Parallel()
	w := start(t)
	token := w.register(appID, `"email":"a@example.com"`)
	js := w.jetStream()
	inbound, err := js.Stream(t.Context(), "INBOUND")
	w.must(err)
	cfg := inbound.CachedInfo().Config
	cfg.MaxBytes = 1
	_, err = js.UpdateStream(t.Context(), cfg)
	w.must(err)
	got := w.upload(token, filePart("a.txt", "", strings.Repeat("x", 300<<10)))
	if got.Status != http.StatusServiceUnavailable || got.Problem(t).Code != "STREAM_FULL" {
		t.Errorf("got %d %s, want 503 STREAM_FULL", got.Status, got.Body)
	}
	w.keptNothing("a full stream")
}

func (w *world) jetStream() jetstream.JetStream {
	w.t.Helper()
	nc, err := nats.Connect(w.engines.NATSURL)
	w.must(err)
	w.t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	w.must(err)
	return js
}

func TestFileStoreIsFull(t *testing.T) {
	t.Parallel()
	w := start(t)
	token := w.register(appID, `"email":"a@example.com"`)
	js := w.jetStream()
	files, err := js.Stream(t.Context(), bus.FilesStream)
	w.must(err)
	cfg := files.CachedInfo().Config
	cfg.MaxMsgs = 2 // a chunk and the metadata
	_, err = js.UpdateStream(t.Context(), cfg)
	w.must(err)
	got := w.upload(token, filePart("a.txt", "", strings.Repeat("x", 2<<20)))
	if got.Status != http.StatusServiceUnavailable || got.Problem(t).Code != "FILE_STORE_FULL" || got.Header.Get("Retry-After") != "30" {
		t.Errorf("got %d %v %s, want 503 FILE_STORE_FULL", got.Status, got.Header, got.Body)
	}
	w.keptNothing("a full store")
	if got := w.post("/message", token, hello); got.Status != http.StatusCreated {
		t.Errorf("a text: got %d %s, want it accepted", got.Status, got.Body)
	}
	w.uploaded(token, filePart("a.txt", "", "words"))
}

// NATS stops during an upload: nothing can be cleaned up then; a sweep does it after the restart.
func TestNATSOutageDuringAnUpload(t *testing.T) {
	t.Parallel()
	w := start(t)
	token := w.register(appID, `"email":"a@example.com"`)
	first, second, contentType := halves()
	s := w.begin(t.Context(), token, contentType)
	s.send(first)
	timetest.Until(t, "chunks are stored", func() bool { return w.kept() > 1 })
	w.engines.NATS.Stop()
	go func() { _, _ = io.WriteString(s.pipe, second); _ = s.pipe.Close() }()
	s.answer().Unavailable(t)
	w.get("/files/zzzzzzz-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA/a.txt", "").Unavailable(t)
	w.engines.RestartNATS()
	opstest.AwaitUp(t, w.ops)
	_, d := w.uploaded(token, filePart("a.txt", "", "words"))
	left := w.kept()
	if left < 3 {
		t.Fatalf("got %d messages in the object store, want the remains beside the file: the test proves nothing", left)
	}
	w.stop()
	w.run(func(cfg *widgetapi.Config) { // two hours later
		cfg.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	})
	timetest.Until(t, "the remains are removed", func() bool { return w.kept() == 2 })
	if got := w.fetch(http.MethodGet, d.URL, nil); got.Body != "words" {
		t.Errorf("the whole file: got %d %s, want it kept", got.Status, got.Body)
	}
}

// keepUploading begins an upload that keeps its slot until finish is called, which completes it.
func (w *world) keepUploading(t *testing.T, token string) (finish func()) {
	t.Helper()
	first, second, contentType := halves()
	s := w.begin(t.Context(), token, contentType)
	s.send(first)
	timetest.Until(t, "chunks are stored", func() bool { return w.kept() > 1 })
	stop := s.keepMoving()
	return func() {
		stop()
		s.send(second)
		_ = s.pipe.Close()
		if got := s.answer(); got.Status != http.StatusCreated {
			t.Errorf("the upload that kept its slot: got %d %s, want it accepted", got.Status, got.Body)
		}
	}
}

// Upload slots are limited: an upload beyond them gets Retry-After, and texts are still accepted.
func TestConcurrentUploadsAreLimited(t *testing.T) {
	t.Parallel()
	w := start(t, func(cfg *widgetapi.Config) { cfg.MaxUploads = 1 })
	token := w.register(appID, `"email":"a@example.com"`)
	finish := w.keepUploading(t, token)
	got := w.upload(token, filePart("a.txt", "", "words"))
	if got.Status != http.StatusServiceUnavailable || got.Problem(t).Code != "TOO_MANY_UPLOADS" || got.Header.Get("Retry-After") != "5" {
		t.Errorf("got %d %s, want 503 TOO_MANY_UPLOADS", got.Status, got.Body)
	}
	if got := w.post("/message", token, hello); got.Status != http.StatusCreated {
		t.Errorf("a text: got %d %s, want it accepted", got.Status, got.Body)
	}
	finish()
	w.uploaded(token, filePart("a.txt", "", "words"))
}

// A visitor has a share of the upload slots; the uploads of others continue.
func TestSharesOfConcurrentUploads(t *testing.T) {
	t.Parallel()
	w := start(t, func(c *widgetapi.Config) { c.MaxUploadsVisitor = 1 })
	token := w.register(appID, `"email":"a@example.com"`)
	finish := w.keepUploading(t, token)
	got := w.upload(token, filePart("a.txt", "", "words"))
	if got.Status != http.StatusTooManyRequests || got.Problem(t).Code != "TOO_MANY_UPLOADS" || got.Header.Get("Retry-After") == "" {
		t.Errorf("the same visitor: got %d %s, want 429 TOO_MANY_UPLOADS", got.Status, got.Body)
	}
	w.uploaded(w.register(appID, `"email":"b@example.com"`), filePart("a.txt", "", "words"))
	finish()
	w.uploaded(token, filePart("a.txt", "", "words"))
}

// A full quota has its own error code, leaves nothing of the file, and affects its visitor or application only.
func TestFileQuotas(t *testing.T) {
	t.Parallel()
	w := start(t, func(cfg *widgetapi.Config) { cfg.QuotaVisitor, cfg.QuotaApplication = 300<<10, 500<<10 })
	one, two := w.register(appID, `"email":"a@example.com"`), w.register(appID, `"email":"b@example.com"`)
	other := w.register(otherApp, `"email":"a@example.com"`)
	large := filePart("a.txt", "", strings.Repeat("x", 200<<10))
	w.uploaded(one, large)
	before := w.kept()
	full := func(who, token string) {
		t.Helper()
		got := w.upload(token, large)
		if got.Status != http.StatusRequestEntityTooLarge || got.Problem(t).Code != "FILE_QUOTA_EXCEEDED" {
			t.Errorf("%s: got %d %s, want 413 FILE_QUOTA_EXCEEDED", who, got.Status, got.Body)
		}
	}
	full("the visitor's second", one)
	if n := w.kept(); n != before {
		t.Errorf("got %d messages in the object store, want %d as before", n, before)
	}
	w.uploaded(one, filePart("b.txt", "", "small"))
	w.uploaded(two, large)
	full("the application's third", w.register(appID, `"email":"c@example.com"`))
	w.uploaded(other, large)
	if got := w.post("/message", one, hello); got.Status != http.StatusCreated {
		t.Errorf("a text: got %d %s, want 201", got.Status, got.Body)
	}
	w.stop() // the sums are in the store
	w.run(func(cfg *widgetapi.Config) { cfg.QuotaVisitor, cfg.QuotaApplication = 300<<10, 500<<10 })
	full("after a restart", one)
}

// The server does not wait for a client that stops sending.
func TestSlowUploadIsCutOff(t *testing.T) {
	t.Parallel()
	w := start(t, func(cfg *widgetapi.Config) { cfg.UploadTimeout = 50 * time.Millisecond })
	token := w.register(appID, `"email":"a@example.com"`)
	first, _, contentType := halves()
	s := w.begin(t.Context(), token, contentType)
	go func() { _, _ = io.WriteString(s.pipe, first) }() // and nothing after it
	got := s.answer()
	if got.Status != http.StatusRequestTimeout || got.Problem(t).Code != "REQUEST_TIMEOUT" {
		t.Errorf("got %d %s, want 408", got.Status, got.Body)
	}
	_ = s.pipe.Close()
	w.keptNothing("a slow upload")
}

// The same with S3: configuration selects the store, and visitors see no difference.
func TestFilesInS3(t *testing.T) {
	t.Parallel()
	backend := s3mem.New()
	if err := backend.CreateBucket("parley"); err != nil {
		t.Fatal(err)
	}
	ln := nettest.Listen(t)
	server := &http.Server{Handler: gofakes3.New(backend).Server()}
	go func() { _ = server.Serve(ln) }()
	t.Cleanup(func() { _ = server.Close() })
	w := start(t, func(cfg *widgetapi.Config) {
		cfg.FileStore, cfg.S3Endpoint, cfg.S3Region, cfg.S3Bucket = config.FileStoreS3, "http://"+ln.Addr().String(), "us-east-1", "parley"
		cfg.S3AccessKeyID, cfg.S3SecretAccessKey = "key", "secret"
	})
	token := w.register(appID, `"email":"a@example.com"`)
	content := png + strings.Repeat("0123456789", 600_000) // more than one part
	r, d := w.uploaded(token, filePart("صورة.png", "image/png", content), field("caption", "c"))
	if r.Type != "IMAGE" || d.Size != len(content) || d.FileName != "صورة.png" {
		t.Errorf("got %s %s, want the picture", r.Type, r.Data)
	}
	got := w.fetch(http.MethodGet, d.URL, nil)
	if got.Status != http.StatusOK || got.Body != content || got.Header.Get("Content-Type") != "image/png" {
		t.Errorf("got %d %v and %d bytes, want the content", got.Status, got.Header, len(got.Body))
	}
	if ranged := w.fetch(http.MethodGet, d.URL, headers{"Range": "bytes=5999990-6000009"}); ranged.Status != 206 || ranged.Body != content[5999990:6000010] {
		t.Errorf("a range: got %d %q, want 20 bytes", ranged.Status, ranged.Body)
	}
	if known := w.fetch(http.MethodGet, d.URL, headers{"If-None-Match": got.Header.Get("ETag")}); known.Status != http.StatusNotModified {
		t.Errorf("a known file: got %d, want 304", known.Status)
	}
	if refused := w.upload(token, filePart("a.png", "image/png", content), filePart("b.png", "image/png", png)); refused.Status != 400 {
		t.Errorf("two files: got %d, want 400", refused.Status)
	}
	objects, err := backend.ListBucket("parley", &gofakes3.Prefix{}, gofakes3.ListBucketPage{})
	if err != nil || len(objects.Contents) != 1 {
		t.Errorf("got %+v, %v, want only the accepted file", objects, err)
	}
}
