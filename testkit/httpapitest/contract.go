// Package httpapitest validates real responses against an API's OpenAPI document, in the tests of the
// services and in the end-to-end tests.
package httpapitest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/parley-chat/parley/pkg/httpapi"
)

// Document is an OpenAPI document that validates responses. It is safe for concurrent use.
type Document struct {
	t       testing.TB
	text    []byte
	spec    *openapi3.T
	router  routers.Router
	ignored []string

	mu   sync.Mutex
	seen map[string]bool
}

// Contract reads an OpenAPI document; an invalid one fails the test at once. Later errors fail t without
// ending it. Paths below the ignored prefixes need not be in the document, nor /docs, /openapi.json and
// /socket.io/.
func Contract(t testing.TB, openapi []byte, ignored ...string) *Document {
	t.Helper()
	spec, err := load(openapi)
	if err != nil {
		t.Fatalf("%v", err)
	}
	router, err := gorillamux.NewRouter(spec)
	if err != nil {
		t.Fatalf("reading the paths of the OpenAPI document: %v", err)
	}
	return &Document{
		t: t, text: openapi, spec: spec, router: router, seen: map[string]bool{},
		ignored: append(ignored, "/docs", "/openapi.json", "/socket.io/"),
	}
}

// Spec returns the parsed document, which must not be modified.
func (d *Document) Spec() *openapi3.T { return d.spec }

// loaded caches the valid documents of the process by their text: validating one takes longer than most tests.
var loaded struct {
	sync.Mutex
	specs map[string]*openapi3.T
}

// only2020 finds keywords that only the validator for JSON Schema 2020-12 supports. That validator compiles
// the schema for each response; without these keywords the validator for 3.0 checks the same, including null
// among the types, a hundred times faster.
var only2020 = regexp.MustCompile(`"(const|prefixItems|contains|patternProperties|dependentSchemas|dependentRequired|propertyNames|` +
	`unevaluatedItems|unevaluatedProperties|exclusiveMinimum|exclusiveMaximum|if|then|else|\$defs|contentSchema)"\s*:`)

// load returns a valid document, which must not be modified.
func load(openapi []byte) (*openapi3.T, error) {
	loaded.Lock()
	defer loaded.Unlock()
	if spec := loaded.specs[string(openapi)]; spec != nil {
		return spec, nil
	}
	spec, err := openapi3.NewLoader().LoadFromData(openapi)
	if err != nil {
		return nil, fmt.Errorf("reading the OpenAPI document: %w", err)
	}
	if err := cmp.Or(spec.Validate(context.Background(), openapi3.EnableSchemaPatternValidation()), checkExamples(spec)); err != nil {
		return nil, fmt.Errorf("the OpenAPI document is not valid: %w", err)
	}
	spec.Servers = nil // a test's server has another address
	if !only2020.Match(openapi) {
		spec.OpenAPI = "3.0.3"
	}
	if loaded.specs == nil {
		loaded.specs = map[string]*openapi3.T{}
	}
	loaded.specs[string(openapi)] = spec
	return spec, nil
}

// checkExamples validates the examples of the components' schemas, which kin-openapi does only for the
// example keyword of 3.0.
func checkExamples(spec *openapi3.T) error {
	if spec.Components == nil {
		return nil
	}
	for name, component := range spec.Components.Schemas {
		err := component.WalkSubtree(func(path string, ref *openapi3.SchemaRef) error {
			for _, example := range ref.Value.Examples {
				if err := ref.Value.VisitJSON(example, openapi3.EnableJSONSchema2020()); err != nil {
					return fmt.Errorf("example of %s: %w", path, err)
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("schema %s: %w", name, err)
		}
	}
	return nil
}

// Transport returns a RoundTripper that checks every exchange: an undocumented operation, status, header or
// body fails the test, and so does an error without the common error body. A nil next is
// http.DefaultTransport.
func (d *Document) Transport(next http.RoundTripper) http.RoundTripper {
	if next == nil {
		next = http.DefaultTransport
	}
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if err != nil || resp.StatusCode == http.StatusSwitchingProtocols || d.isIgnored(req.URL.Path) {
			return resp, err
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		resp.Body = io.NopCloser(bytes.NewReader(body))
		if err != nil {
			return nil, fmt.Errorf("reading an answer: %w", err)
		}
		if err := d.Check(req, resp.StatusCode, resp.Header, body); err != nil {
			d.t.Errorf("%s %s: %v", req.Method, req.URL.Path, err)
		}
		return resp, nil
	})
}

// Client returns a client that checks every exchange, like [Document.Transport]. It serves until the test ends.
func (d *Document) Client() *http.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	d.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: d.Transport(transport)}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func (d *Document) isIgnored(path string) bool {
	return slices.ContainsFunc(d.ignored, func(prefix string) bool { return strings.HasPrefix(path, prefix) })
}

// Check returns the error of a response, or nil.
func (d *Document) Check(req *http.Request, status int, header http.Header, body []byte) error {
	if status >= http.StatusBadRequest && req.Method != http.MethodHead {
		if err := CheckProblem(status, header, body); err != nil {
			return err
		}
	}
	operation := req.Clone(req.Context())
	switch req.Method {
	case http.MethodOptions:
		return nil // browsers define preflights, not the document
	case http.MethodHead:
		operation.Method = http.MethodGet
	}
	route, params, err := d.router.FindRoute(operation)
	switch {
	case err != nil && isRefusal(status):
		return nil // an undocumented request must be refused
	case err != nil:
		return fmt.Errorf("answered with %d, but the document says: %w", status, err)
	}
	d.note(route, status)
	if err := d.validate(&openapi3filter.RequestValidationInput{Request: req, PathParams: params, Route: route}, status, header, body); err != nil {
		return err
	}
	if status >= http.StatusBadRequest && req.Method != http.MethodHead {
		return d.checkCode(route, status, body)
	}
	return nil
}

// isRefusal reports whether a status refuses a request that no operation takes: a protection may do so before
// the router.
func isRefusal(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusTooManyRequests: // PATCH /api/webhooks/retention reaches /api/webhooks/{id} and its limits
		return true
	}
	return false
}

// checkCode checks an error's code against the examples of the document: callers branch on codes, so each has
// an example.
func (d *Document) checkCode(route *routers.Route, status int, body []byte) error {
	var p httpapi.Problem
	if err := json.Unmarshal(body, &p); err != nil {
		return err
	}
	response := route.Operation.Responses.Status(status)
	if response == nil {
		return nil // the document has a default
	}
	if !slices.Contains(codesOf(response.Value), p.Code) {
		return fmt.Errorf("answered with %d %s, but the document shows no such code for this status", status, p.Code)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen[strconv.Itoa(status)+" "+p.Code] = true
	return nil
}

// codesOf lists the error codes in the examples of a response.
func codesOf(response *openapi3.Response) (codes []string) {
	media := response.Content.Get("application/json")
	if media == nil {
		return nil
	}
	for _, example := range media.Examples {
		codes = append(codes, codeOf(example.Value.Value))
	}
	return append(codes, codeOf(media.Example))
}

func codeOf(example any) string {
	members, _ := example.(map[string]any)
	code, _ := members["code"].(string)
	return code
}

func (d *Document) validate(input *openapi3filter.RequestValidationInput, status int, header http.Header, body []byte) error {
	answer := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: status, Header: header,
		Options: &openapi3filter.Options{
			IncludeResponseStatus: true, MultiError: true,
			ExcludeResponseBody: header.Get("Content-Type") == "text/event-stream", // not one value
		},
	}
	if err := openapi3filter.ValidateResponse(context.Background(), answer.SetBodyBytes(body)); err != nil {
		return fmt.Errorf("answered with %d %s, but the document says: %w", status, body, err)
	}
	return nil
}

// CheckProblem checks the conventions that all errors of all APIs share.
func CheckProblem(status int, header http.Header, body []byte) error {
	var p httpapi.Problem
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&p); err != nil {
		return fmt.Errorf("error body: got %q: %w", body, err)
	}
	switch {
	case header.Get("Content-Type") != "application/json":
		return fmt.Errorf("error body: got Content-Type %q, want application/json", header.Get("Content-Type"))
	case p.StatusCode != status:
		return fmt.Errorf("error body: got statusCode %d, want the status %d", p.StatusCode, status)
	case p.Code == "" || p.Message == "":
		return fmt.Errorf("error body: got %s, want a code and a message", body)
	case p.RequestID == "" || p.RequestID != header.Get("X-Request-Id"):
		return fmt.Errorf("error body: got requestId %q, want the X-Request-Id %q", p.RequestID, header.Get("X-Request-Id"))
	case (status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable) && header.Get("Retry-After") == "":
		return fmt.Errorf("status %d: got no Retry-After, want one", status)
	case status == http.StatusMethodNotAllowed && header.Get("Allow") == "":
		return errors.New("status 405: got no Allow, want one")
	}
	return nil
}

func (d *Document) note(route *routers.Route, status int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen[exchange(route.Method, route.Path, strconv.Itoa(status))] = true
}

func exchange(method, path, status string) string { return method + " " + path + " " + status }

// UnseenCodes lists the error codes of the document's examples that no response has had yet, sorted, such as
// "400 CHAT_TOO_OLD". Operations share examples, so not every operation needs every error.
func (d *Document) UnseenCodes() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var unseen []string
	for _, item := range d.spec.Paths.Map() {
		for _, operation := range item.Operations() {
			for status, response := range operation.Responses.Map() {
				for _, code := range codesOf(response.Value) {
					if e := status + " " + code; code != "" && !d.seen[e] {
						unseen = append(unseen, e)
					}
				}
			}
		}
	}
	slices.Sort(unseen)
	return slices.Compact(unseen)
}

// Unseen lists the operations and statuses of the document that have not occurred yet, sorted, such as "POST
// /message/send 404", so that a suite can prove that all documented ones occur. It leaves out internal
// errors, and the paths that need no document.
func (d *Document) Unseen() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var unseen []string
	for path, item := range d.spec.Paths.Map() {
		for method, operation := range item.Operations() {
			for status := range operation.Responses.Map() {
				if e := exchange(method, path, status); !d.seen[e] && status != "500" && !d.isIgnored(path) {
					unseen = append(unseen, e)
				}
			}
		}
	}
	slices.Sort(unseen)
	return unseen
}
