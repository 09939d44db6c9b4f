package httpapitest

import (
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"regexp"
	"strings"

	"github.com/labstack/echo/v4"
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

// IsServed fails the test unless the API at base serves the document at /openapi.json, and at /docs a page that shows it and loads
// nothing from another origin.
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
