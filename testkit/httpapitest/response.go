package httpapitest

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-chat/parley/pkg/httpapi"
)

// Response is a response with its whole body.
type Response struct {
	Status int
	Header http.Header
	Body   string
}

// Do sends a request and reads the response.
func Do(client *http.Client, req *http.Request) (Response, error) {
	resp, err := client.Do(req)
	if err != nil {
		return Response{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return Response{Status: resp.StatusCode, Header: resp.Header, Body: string(body)}, err
}

// Into decodes the JSON of the body.
func (r Response) Into(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.Body), v); err != nil {
		t.Fatalf("got %d %s, want JSON: %v", r.Status, r.Body, err)
	}
}

// Problem returns the error in the body.
func (r Response) Problem(t testing.TB) (p httpapi.Problem) {
	t.Helper()
	r.Into(t, &p)
	return p
}

// Details joins the field errors in the body: "name message; name message".
func (r Response) Details(t testing.TB) string {
	t.Helper()
	var all []string
	for _, d := range r.Problem(t).Details {
		all = append(all, d.Name+" "+d.Message)
	}
	return strings.Join(all, "; ")
}

// Unavailable checks for a 503 with Retry-After in seconds.
func (r Response) Unavailable(t testing.TB) {
	t.Helper()
	if r.Status != http.StatusServiceUnavailable || r.Problem(t).Code != "SERVICE_UNAVAILABLE" {
		t.Errorf("got %d %s, want 503", r.Status, r.Body)
	}
	if seconds, err := strconv.Atoi(r.Header.Get("Retry-After")); err != nil || seconds < 1 {
		t.Errorf("got Retry-After %q, want seconds", r.Header.Get("Retry-After"))
	}
}
