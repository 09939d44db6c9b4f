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

// Send sends a request without the headers that are empty, and reads the response.
func Send(client *http.Client, method, url, body string, header map[string]string) (Response, error) {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return Response{}, err
	}
	for name, value := range header {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	return Do(client, req)
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

// Outcome returns the status, with the code of an error: "404 CHAT_NOT_FOUND".
func (r Response) Outcome(t testing.TB) string {
	t.Helper()
	if r.Status < http.StatusBadRequest {
		return strconv.Itoa(r.Status)
	}
	return strconv.Itoa(r.Status) + " " + r.Problem(t).Code
}

// IsProblem checks for an error with this status, code and [Response.Details]. An empty message stands for any.
func (r Response) IsProblem(t testing.TB, status int, code, message, details string) {
	t.Helper()
	p := r.Problem(t)
	if r.Status != status || p.StatusCode != status || p.Code != code {
		t.Errorf("got %d %s, want %d %s", r.Status, r.Body, status, code)
	}
	if message != "" && p.Message != message {
		t.Errorf("got the message %q, want %q", p.Message, message)
	}
	if got := r.Details(t); got != details {
		t.Errorf("got the details %q, want %q", got, details)
	}
	if p.RequestID == "" || p.RequestID != r.Header.Get("X-Request-Id") {
		t.Errorf("got the request id %q, want that of the header, %q", p.RequestID, r.Header.Get("X-Request-Id"))
	}
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
