package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

// fileFlood is a store of files and those that flood it.
type fileFlood struct {
	*standalone
	client   *http.Client
	store    store.Store
	capacity int64 // of the store of files
	size     int64 // of a file
}

// TestLoadOfFiles lets one address with four applications, and one agent, upload as many files as they can.
// Each stops at its share, and another company's visitor uploads.
func TestLoadOfFiles(t *testing.T) {
	f := &fileFlood{client: &http.Client{Transport: new(http.Transport), Timeout: limit}, capacity: 64 << 20, size: 1 << 20}
	t.Cleanup(f.client.CloseIdleConnections)
	if longForm() {
		f.capacity, f.size = 512<<20, 25<<20
	}
	f.standalone = ownStandalone(t, t.TempDir(), fmt.Sprint("FILE_STORE_MAX_BYTES=", f.capacity), "TRUSTED_PROXIES=127.0.0.1")
	f.store = openStore(t, f.place)

	began := time.Now()
	fromAddress := f.floodFromAddress(t)
	fromAgent := f.floodFromAgent(t)
	t.Logf("%d MiB of one address with four applications and %d MiB of one agent are in a store of %d MiB, after %v",
		fromAddress>>20, fromAgent>>20, f.capacity>>20, time.Since(began).Round(time.Millisecond))
	for origin, stored := range map[string]int64{"the address": fromAddress, "the agent": fromAgent} {
		if stored == 0 || stored > f.capacity/8 {
			t.Errorf("%s: got %d MiB stored, want at most an eighth of %d MiB", origin, stored>>20, f.capacity>>20)
		}
	}
	_, token := f.newVisitor(t, f.newCompany(t))
	if status, answer := f.upload(t.Context(), visitorUpload(f.WidgetBaseURL, token, "198.51.100.1")); status != http.StatusCreated {
		t.Errorf("another company's visitor: got %d %s, want 201", status, answer)
	}
}

// newCompany returns the place of a company with one application.
func (f *fileFlood) newCompany(t *testing.T) place {
	t.Helper()
	p := f.place
	app, _, _ := putCompany(t, f.store)
	p.AppID, p.CompanyID = app.ID, app.CompanyID
	return p
}

// newVisitor returns the chat of a visitor, and the visitor's token.
func (f *fileFlood) newVisitor(t *testing.T, p place) (chat.Chat, string) {
	t.Helper()
	c := openChat(t, f.store, p, time.Now())
	return c, sign(t, p, claims(p, c.ChatUserID))
}

// floodFromAddress returns the bytes that one address stores, with two visitors of four applications at once.
func (f *fileFlood) floodFromAddress(t *testing.T) int64 {
	var accepted atomic.Int64
	var flooding sync.WaitGroup
	for range 4 {
		_, token := f.newVisitor(t, f.newCompany(t))
		for range 2 {
			flooding.Go(func() {
				for accepted.Load()*f.size < f.capacity {
					status, answer := f.upload(t.Context(), visitorUpload(f.WidgetBaseURL, token, "192.0.2.1"))
					if status != http.StatusCreated {
						checkRefusal(t, status, answer)
						return
					}
					accepted.Add(1)
				}
			})
		}
	}
	flooding.Wait()
	return accepted.Load() * f.size
}

// floodFromAgent returns the bytes that one agent stores with twenty files.
func (f *fileFlood) floodFromAgent(t *testing.T) (stored int64) {
	c, _ := f.newVisitor(t, f.newCompany(t))
	agent := account.NewUser(uuid.NewString()+"@example.com", "Ada", account.Agent, c.CompanyID, time.Now())
	check(t, f.store.CreateUser(t.Context(), agent))
	secret, session := account.NewSession(agent.ID, "192.0.2.2", "e2e", time.Now())
	check(t, f.store.CreateSession(t.Context(), session))
	for range 20 {
		status, answer := f.upload(t.Context(), upload{f.PanelURL + "/api/chats/" + c.ID + "/files", []header{
			{"Cookie", "parley-panel=" + secret}, {"X-CSRF-Token", account.CSRFToken(secret)}, {"Idempotency-Key", uuid.NewString()},
		}})
		if status != http.StatusCreated {
			checkRefusal(t, status, answer)
			return stored
		}
		stored += f.size
	}
	return stored
}

// checkRefusal checks the answer to a file of a flood that is not stored.
func checkRefusal(t *testing.T, status int, answer string) {
	t.Helper()
	switch status {
	case http.StatusRequestEntityTooLarge, http.StatusTooManyRequests, http.StatusServiceUnavailable:
	default:
		t.Errorf("a flood's upload: got %d %s, want 413, 429 or 503", status, answer)
	}
}

// upload is where a file goes, and in whose name.
type upload struct {
	url     string
	headers []header
}

func visitorUpload(base, token, address string) upload {
	return upload{base + "/message", []header{bearer(token), {"X-Forwarded-For", address}}}
}

// upload sends a file and returns the answer. Without one, the status is 0.
func (f *fileFlood) upload(ctx context.Context, u upload) (status int, answer string) {
	body, contentType := zeroForm(f.size)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.url, body.content)
	if err != nil {
		return 0, err.Error()
	}
	req.ContentLength = body.size
	req.Header.Set("Content-Type", contentType)
	for _, h := range u.headers {
		req.Header.Set(h.name, h.value)
	}
	got, err := f.client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		return 0, err.Error()
	}
	return got.StatusCode, string(text)
}

// sized is a body of known size.
type sized struct {
	content io.Reader
	size    int64
}

// zeroForm returns a form with a file of that many zeros.
func zeroForm(size int64) (body sized, contentType string) {
	var head bytes.Buffer
	form := multipart.NewWriter(&head)
	_, _ = form.CreateFormFile("file", "zeros.bin") // writing to a buffer does not fail
	end := "\r\n--" + form.Boundary() + "--\r\n"
	body.size = int64(head.Len()) + size + int64(len(end))
	body.content = io.MultiReader(&head, io.LimitReader(zeros{}, size), bytes.NewReader([]byte(end)))
	return body, form.FormDataContentType()
}
