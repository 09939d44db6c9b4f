package panel_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/services/panel"
	"github.com/parley-chat/parley/testkit/httpapitest"
)

// Errors of uploads that depend on the file and the sender's pace. The document has each of them.
func TestUploadErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited, func(cfg *panel.Config) {
		cfg.QuotaApplication, cfg.UploadTimeout = 1<<20, 2*time.Second
	})
	agent := w.as(w.acme.users[account.Agent])
	const head = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.png\"\r\nContent-Type: image/png\r\n\r\n"
	send := func(body io.Reader) httpapitest.Response {
		r := agent.request(http.MethodPost, "/api/chats/"+w.acme.chat+"/files", "", "Content-Type", "multipart/form-data; boundary=b", "Idempotency-Key", "k")
		r.Body, r.ContentLength = io.NopCloser(body), -1
		if sized, ok := body.(*strings.Reader); ok {
			r.ContentLength = sized.Size()
		}
		got, err := httpapitest.Do(agent.client, r)
		w.must(err)
		return got
	}
	want := func(status int, code string, got httpapitest.Response) {
		t.Helper()
		if got.Status != status || !strings.Contains(got.Body, `"code":"`+code+`"`) {
			t.Errorf("got %d %s, want %d %s", got.Status, got.Body, status, code)
		}
	}
	want(http.StatusBadRequest, "FILE_TYPE_MISMATCH", send(strings.NewReader(head+"words\r\n--b--\r\n")))
	want(http.StatusRequestEntityTooLarge, "FILE_QUOTA_EXCEEDED", send(strings.NewReader(head+strings.Repeat("x", 2<<20)+"\r\n--b--\r\n")))
	stalled, pipe := io.Pipe()
	defer pipe.Close()
	go func() { _, _ = io.WriteString(pipe, "--b\r\nContent-Disposition: form-data; name=\"caption\"\r\n\r\n") }()
	want(http.StatusRequestTimeout, "REQUEST_TIMEOUT", send(stalled))
}
