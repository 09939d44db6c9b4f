package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/services/standalone/internal/seed"
	"github.com/parley-chat/parley/testkit/httpapitest"
)

// place has the addresses of a running Parley.
type place struct {
	seed.Demo
	OpsURL     string
	SiteURL    string   // the page of another origin that embeds the widget
	SocketURLs []string // the gateways
	KeysFile   string   // the visitor keys, to sign invalid tokens
	Secrets    string   // the key file of the secrets in the store
	MongoDB    string   // the URI of the store; empty: SQLite
	Database   string   // on MongoDB
}

// store returns the settings of the store.
func (p place) store() config.Store {
	if p.MongoDB != "" {
		return config.Store{MongoDBURI: p.MongoDB, MongoDBDatabase: p.Database}
	}
	return config.Store{SQLitePath: p.SQLitePath}
}

// standalone is a running standalone with its data folder.
type standalone struct {
	place
	*child
	dir   string
	howTo []string // its printed instructions
}

var (
	opsLine  = regexp.MustCompile(`(http://\S+)/readyz`)
	siteLine = regexp.MustCompile(`(http://\S+)/ \(another origin`)
)

// startStandalone starts the program on free ports with the data in dir, and returns when it reports that it is ready.
func startStandalone(program, dir string, env ...string) (*standalone, error) {
	for try := 1; ; try++ {
		s, err := tryStandalone(program, dir, env)
		if err == nil || try == 3 || !strings.Contains(err.Error(), "is in use;") {
			return s, err
		}
	}
}

func tryStandalone(program, dir string, env []string) (*standalone, error) {
	c, err := spawn("standalone", append([]string{
		"PARLEY_CLIENT_ADDR=127.0.0.1:0", "PARLEY_WIDGET_ADDR=127.0.0.1:0", "PARLEY_OPS_ADDR=127.0.0.1:0", "PARLEY_NATS_ADDR=127.0.0.1:0",
		"PARLEY_SITE_ADDR=127.0.0.1:0", "PARLEY_PANEL_ADDR=127.0.0.1:0",
		"PARLEY_DATA_DIR=" + dir, "WEBHOOK_ALLOW_CIDRS=127.0.0.0/8", // the tests receive webhooks on loopback addresses
	}, env...), program)
	if err != nil {
		return nil, err
	}
	lines, err := c.await("Ctrl-C")
	if err != nil {
		_ = c.kill() // it has ended, or hangs
		return nil, err
	}
	s := &standalone{child: c, dir: dir, howTo: lines}
	if s.Demo, err = readDemo(dir); err != nil {
		_ = c.kill()
		return nil, err
	}
	s.OpsURL = opsLine.FindStringSubmatch(strings.Join(lines, "\n"))[1]
	s.SiteURL = siteLine.FindStringSubmatch(strings.Join(lines, "\n"))[1]
	s.SocketURLs = []string{s.WidgetBaseURL}
	s.KeysFile = filepath.Join(dir, "visitor-keys.json")
	s.Secrets = filepath.Join(dir, "secrets-key.json")
	return s, nil
}

func readDemo(dir string) (d seed.Demo, err error) {
	data, err := os.ReadFile(filepath.Join(dir, "demo.json"))
	if err != nil {
		return d, err
	}
	return d, json.Unmarshal(data, &d)
}

// ownStandalone starts one for this test only, with further variables of its environment.
func ownStandalone(t testing.TB, dir string, env ...string) *standalone {
	t.Helper()
	s, err := startStandalone(program(t, "standalone"), dir, env...)
	if err != nil {
		t.Fatal(err)
	}
	s.stopAtEnd(t)
	return s
}

var common = sync.OnceValues(func() (*standalone, error) {
	programs, err := bin()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "parley-e2e")
	if err != nil {
		return nil, err
	}
	closeLater(func() { os.RemoveAll(dir) })
	s, err := startStandalone(filepath.Join(programs, "standalone"), dir)
	if err != nil {
		return nil, err
	}
	closeLater(func() {
		if code, err := s.stop(); err != nil || code != 0 {
			panic(fmt.Sprintf("the common standalone stopped with code %d, %v:\n%s", code, err, s.stderr))
		}
	})
	return s, nil
})

// commonStandalone returns the standalone that tests share. They must not stop it.
func commonStandalone(t testing.TB) *standalone {
	t.Helper()
	s, err := common()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// api is an HTTP client of one API that validates every response against the API's document.
type api struct {
	base   string
	client *http.Client
}

func (p place) clientAPI(t testing.TB) *api { return newAPI(t, p.ClientBaseURL) }
func (p place) widgetAPI(t testing.TB) *api { return newAPI(t, p.WidgetBaseURL) }

func newAPI(t testing.TB, base string) *api {
	t.Helper()
	// Its own transport closes its connections with the test; few connections suffice.
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	plain := &http.Client{Transport: transport, Timeout: limit}
	answer, err := plain.Get(base + "/openapi.json")
	if err != nil {
		t.Fatalf("reading the document: %v", err)
	}
	defer answer.Body.Close()
	document, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("reading the document: got %s, %v", answer.Status, err)
	}
	checked := httpapitest.Contract(t, document).Transport(transport)
	return &api{base: base, client: &http.Client{Transport: checked, Timeout: limit}}
}

// header is one header of a request.
type header struct{ name, value string }

func bearer(token string) header      { return header{"Authorization", "Bearer " + token} }
func accessToken(token string) header { return header{"x-access-token", token} }

// try sends a request; body is JSON text, or a value to encode, or nil.
func (a *api) try(method, path string, body any, headers ...header) (httpapitest.Response, error) {
	r, err := http.NewRequest(method, a.base+path, encoded(body))
	if err != nil {
		return httpapitest.Response{}, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		if h.value == "" {
			r.Header.Del(h.name)
			continue
		}
		r.Header.Set(h.name, h.value)
	}
	return httpapitest.Do(a.client, r)
}

func encoded(body any) io.Reader {
	switch b := body.(type) {
	case nil:
		return nil
	case string:
		return strings.NewReader(b)
	}
	data, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return bytes.NewReader(data)
}

// call is try for a request that must get a response.
func (a *api) call(t testing.TB, method, path string, body any, headers ...header) httpapitest.Response {
	t.Helper()
	got, err := a.try(method, path, body, headers...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return got
}

// want decodes a success into T.
func want[T any](t testing.TB, status int, got httpapitest.Response) (v T) {
	t.Helper()
	if got.Status != status {
		t.Fatalf("got %d %s, want %d", got.Status, got.Body, status)
	}
	got.Into(t, &v)
	return v
}

// wantError checks the status of an error and returns its body; the transport of api has checked the common parts.
func wantError(t testing.TB, status int, got httpapitest.Response) httpapi.Problem {
	t.Helper()
	if got.Status != status {
		t.Errorf("got %d %s, want %d", got.Status, got.Body, status)
		return httpapi.Problem{}
	}
	return got.Problem(t)
}
