package httpapitest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/ops"
)

// ListsRoutes fails the test unless the document lists exactly the routes of handler, which wraps an Echo.
func (d *Document) ListsRoutes(handler http.Handler) {
	d.t.Helper()
	documented := map[string]bool{}
	for path, item := range d.spec.Paths.Map() {
		for method := range item.Operations() {
			documented[method+" "+path] = true
		}
	}
	served, parameter := map[string]bool{}, regexp.MustCompile(`:(\w+)`)
	for _, r := range handler.(interface{ Unwrap() http.Handler }).Unwrap().(*echo.Echo).Routes() {
		if r.Method == http.MethodHead || r.Path == "/docs/*" { // HEAD is part of GET, and the assets are part of the page
			continue
		}
		served[r.Method+" "+parameter.ReplaceAllString(r.Path, "{$1}")] = true
	}
	for route := range served {
		if !documented[route] {
			d.t.Errorf("the document does not have %s", route)
		}
	}
	for route := range documented {
		if !served[route] {
			d.t.Errorf("nothing serves %s", route)
		}
	}
}

// IsServed fails the test unless the API at base serves the document at /openapi.json, and at /docs a page
// that shows it and loads nothing from another origin.
func (d *Document) IsServed(client *http.Client, base string) {
	d.t.Helper()
	get := func(path string) (status, contentType, body string) {
		d.t.Helper()
		resp, err := client.Get(base + path)
		if err != nil {
			d.t.Fatal(err)
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		if err != nil {
			d.t.Fatal(err)
		}
		return resp.Status, resp.Header.Get("Content-Type"), string(data)
	}
	const ok = "200 OK"
	var got, want any
	status, _, body := get("/openapi.json")
	if err := json.Unmarshal(d.text, &want); err != nil {
		d.t.Fatalf("reading the OpenAPI document: %v", err)
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil || status != ok || !reflect.DeepEqual(got, want) {
		d.t.Errorf("GET /openapi.json: got %s, %d bytes, %v, want the document", status, len(body), err)
	}
	status, contentType, body := get("/docs")
	if status != ok || !strings.Contains(contentType, "text/html") || !strings.Contains(body, "openapi.json") {
		d.t.Errorf("GET /docs: got %s %s, want a page that shows the document", status, body)
	}
	for _, from := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(body, -1) {
		if !strings.HasPrefix(from[1], "/docs/") {
			d.t.Errorf("GET /docs: got %s loaded, want no other origin", from[1])
		}
		if status, _, _ := get(from[1]); status != ok {
			d.t.Errorf("GET %s: got %s, want %s", from[1], status, ok)
		}
	}
}

// IsReadable fails the test for each fault of [Readable], and unless the document has the version of the build.
func (d *Document) IsReadable() {
	d.t.Helper()
	for _, fault := range Readable(d.t, d.text) {
		d.t.Error(fault)
	}
	if want := strings.TrimPrefix(ops.ReadBuild().Version, "v"); d.spec.Info.Version != want {
		d.t.Errorf("got the version %s, want that of the build, %s", d.spec.Info.Version, want)
	}
}

// RefusesUnreadableBody fails the test unless the API at base answers a malformed chunked body with the
// documented BAD_REQUEST. header is a line that authenticates the request.
func (d *Document) RefusesUnreadableBody(base, path, header string) {
	d.t.Helper()
	req, err := http.NewRequest(http.MethodPost, base+path, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	conn, err := net.Dial("tcp", req.URL.Host)
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: api\r\n%s\r\nContent-Type: application/json\r\n"+
		"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\nno length\r\n", path, header); err != nil {
		d.t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	if err := d.Check(req, resp.StatusCode, resp.Header, body); err != nil || !strings.Contains(string(body), `"BAD_REQUEST"`) {
		d.t.Errorf("got %s with %s, %v, want BAD_REQUEST", resp.Status, body, err)
	}
}

// SharedSchemas fails the test unless the schemas of the same name in two documents are equal, apart from the
// exceptions. It returns how many they are.
func SharedSchemas(t testing.TB, ours, theirs []byte, except ...string) (shared int) {
	t.Helper()
	their := schemasOf(t, theirs)
	for name, schema := range schemasOf(t, ours) {
		if their[name] == nil || slices.Contains(except, name) {
			continue
		}
		shared++
		if !reflect.DeepEqual(schema, their[name]) {
			t.Errorf("schema %s: got %v and %v, want the same", name, schema, their[name])
		}
	}
	return shared
}

func schemasOf(t testing.TB, openapi []byte) map[string]any {
	t.Helper()
	var document struct {
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(openapi, &document); err != nil {
		t.Fatalf("reading the OpenAPI document: %v", err)
	}
	return document.Components.Schemas
}
