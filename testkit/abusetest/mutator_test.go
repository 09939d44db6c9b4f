package abusetest_test

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/parley-chat/parley/testkit/abusetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const document = `{
  "openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "security": [{"Key": []}],
  "components": {"securitySchemes": {"Key": {"type": "apiKey", "in": "header", "name": "x-key"}, "Token": {"type": "http", "scheme": "bearer"},
    "Session": {"type": "apiKey", "in": "cookie", "name": "session"}, "CSRF": {"type": "apiKey", "in": "header", "name": "x-csrf"}}},
  "paths": {
    "/things/{id}": {"get": {"security": [{"Token": []}], "responses": {"200": {"description": "it"}}, "parameters": [
      {"name": "id", "in": "path", "required": true, "schema": {"type": "string"}, "example": "example-id"},
      {"name": "limit", "in": "query", "schema": {"type": "integer"}}, {"name": "Range", "in": "header", "schema": {"type": "string"}}]}},
    "/things": {"post": {"responses": {"200": {"description": "it"}}, "requestBody": {"content": {
      "application/json": {"schema": {"type": "object"}, "examples": {"one": {"value": {"id": "example-id", "list": [1, "two", {"three": null}]}}}},
      "multipart/form-data": {"schema": {"type": "object", "properties": {"file": {"type": "string", "contentMediaType": "application/octet-stream"}}},
        "examples": {"one": {"value": {"file": "bytes", "caption": "c"}}}}}}}},
    "/session": {"delete": {"security": [{"Session": [], "CSRF": []}], "responses": {"204": {"description": "ended"}}}},
    "/open": {"get": {"security": [], "responses": {"200": {"description": "it"}}}}
  }
}`

func operations(t *testing.T) map[string]abusetest.Operation {
	t.Helper()
	all, err := abusetest.Operations([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]abusetest.Operation{}
	for _, o := range all {
		byName[o.String()] = o
	}
	if len(all) != 4 || len(byName) != 4 {
		t.Fatalf("got %v, want the four operations of the document", all)
	}
	return byName
}

func config(seed uint64) abusetest.Config {
	return abusetest.Config{
		Seed: seed, Tokens: []string{"good-token"}, Ghosts: []string{"ghost-token"}, Foreign: []string{"foreign-token"},
		Live: map[string]string{"example-id": "live-id"}, Paths: map[string][]string{"/things/{id}": {"/things/live-path"}}, LiveOneIn: 4,
		Derived: map[string]func(string) string{"CSRF": func(token string) string { return "of " + token }},
	}
}

func TestTheSameSeedMakesTheSameRequests(t *testing.T) {
	t.Parallel()
	requests := func(seed uint64) (all []string) {
		m := abusetest.New(config(seed))
		for _, name := range []string{"GET /things/{id}", "POST /things", "GET /open"} {
			for range 300 {
				r := m.Next(operations(t)[name])
				all = append(all, fmt.Sprint(r.Method, r.Target, r.Header, string(r.Body), r.Cut, r.Unsized)) // maps are printed in order
			}
		}
		return all
	}
	first, again, other := requests(1), requests(1), requests(2)
	different := 0
	for i := range first {
		if first[i] != again[i] {
			t.Fatalf("got %s, want %s again", again[i], first[i])
		}
		if first[i] != other[i] {
			different++
		}
	}
	if different < len(first)/2 {
		t.Errorf("got %d of %d requests that another seed makes otherwise, want most", different, len(first))
	}
}

// Every part of a request is mutated, and most requests still reach a handler.
func TestEverythingIsBent(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for name, o := range operations(t) {
		m := abusetest.New(config(3))
		for range 4000 {
			r := m.Next(o)
			req, err := r.HTTP(t.Context())
			if err != nil {
				seen["refused by net/http"]++
				continue
			}
			seen["handled"]++
			note(seen, name, req)
		}
	}
	for _, what := range []string{
		"GET /things/{id}: live path", "GET /things/{id}: example path", "GET /things/{id}: good token", "GET /things/{id}: ghost token", "GET /things/{id}: foreign token",
		"DELETE /session: good session", "DELETE /session: another CSRF token", "DELETE /session: no session",
		"GET /things/{id}: no token", "GET /things/{id}: query", "GET /things/{id}: Range", "POST /things: other method", "POST /things: live body", "POST /things: example body",
		"POST /things: form", "POST /things: JSON", "POST /things: no media type", "POST /things: cut", "POST /things: unsized", "POST /things: empty", "POST /things: large", "GET /open: other path",
	} {
		if seen[what] == 0 {
			t.Errorf("%s: got none in 4000 requests, want some", what)
		}
	}
	if seen["handled"] < 20*seen["refused by net/http"] {
		t.Errorf("got %d requests for the handler and %d that net/http refuses, want few of those", seen["handled"], seen["refused by net/http"])
	}
}

func note(seen map[string]int, name string, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	mediaType, _, _ := mime.ParseMediaType(req.Header.Get("Content-Type"))
	token := req.Header.Get("X-Key") + strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
	session, csrf := req.Header.Get("Cookie"), req.Header.Get("X-Csrf")
	for what, is := range map[string]bool{
		"good session": session == "session=good-token" && csrf == "of good-token", "no session": session == "session=",
		"another CSRF token": session == "session=good-token" && csrf != "of good-token",
		"live path":          req.URL.Path == "/things/live-path", "example path": req.URL.Path == "/things/example-id", "other path": !strings.HasPrefix(req.URL.Path, "/open"),
		"good token": token == "good-token", "ghost token": token == "ghost-token", "foreign token": token == "foreign-token", "no token": token == "",
		"query": req.URL.RawQuery != "", "Range": req.Header.Get("Range") != "", "other method": req.Method != http.MethodPost,
		"live body": strings.Contains(string(body), "live-id"), "example body": strings.Contains(string(body), "example-id"),
		"form": mediaType == "multipart/form-data", "JSON": mediaType == "application/json", "no media type": req.Header.Get("Content-Type") == "",
		"cut": errors.Is(err, abusetest.ErrCut), "unsized": req.ContentLength == -1, "empty": len(body) == 0, "large": len(body) >= 1<<20,
	} {
		if is {
			seen[name+": "+what]++
		}
	}
}

func TestWhatNetHTTPWouldRefuse(t *testing.T) {
	t.Parallel()
	for what, r := range map[string]abusetest.Request{
		"an escape": {Method: "GET", Target: "/%zz"}, "a method": {Method: "G T", Target: "/"}, "a header": {Method: "GET", Target: "/", Header: http.Header{"X": {"a\x00b"}}},
	} {
		if _, err := r.HTTP(t.Context()); err == nil {
			t.Errorf("%s: got a request, want an error", what)
		}
	}
}
