package abusetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
)

// Request is a request as sent over the network. net/http's client could not send all of them.
type Request struct {
	Method  string
	Target  string // path and query, escaped
	Header  http.Header
	Body    []byte
	Cut     bool // the connection ends within the body
	Unsized bool // without Content-Length: chunked
}

// ErrCut is the error that a handler reads at the end of a truncated body.
var ErrCut = errors.New("the connection has ended within the body")

// HTTP returns the request as net/http passes it to a handler, or an error if net/http would answer it
// itself: a malformed request line or header never reaches a handler.
func (r Request) HTTP(ctx context.Context) (*http.Request, error) {
	target, err := url.ParseRequestURI(r.Target)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, "http://parley.example/", nil)
	if err != nil {
		return nil, err
	}
	for name, values := range r.Header {
		if !sane(name, values) {
			return nil, fmt.Errorf("header %q: %q", name, values)
		}
	}
	req.URL, req.RequestURI, req.Header = target, r.Target, maps.Clone(r.Header)
	req.RemoteAddr = "192.0.2.1:40000"
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	req.Header.Del("Host")
	req.Body, req.ContentLength = r.body(), int64(len(r.Body))
	if r.Unsized {
		req.ContentLength = -1
	}
	if r.Cut {
		req.ContentLength++
	}
	return req, nil
}

func (r Request) body() io.ReadCloser {
	switch {
	case r.Cut:
		return io.NopCloser(io.MultiReader(bytes.NewReader(r.Body), failing{}))
	case len(r.Body) == 0 && !r.Unsized:
		return http.NoBody
	}
	return io.NopCloser(bytes.NewReader(r.Body))
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, ErrCut }

// sane reports whether net/http accepts a header (RFC 9110, 5.5).
func sane(name string, values []string) bool {
	for _, v := range values {
		if strings.ContainsFunc(v, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
			return false
		}
	}
	return name != "" && !strings.ContainsAny(name, " :\r\n\t\x00")
}

// String returns all that is needed to send the request again.
func (r Request) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", r.Method, clipped(r.Target))
	for name, values := range r.Header {
		for _, v := range values {
			fmt.Fprintf(&b, "\n%s: %s", name, clipped(v))
		}
	}
	fmt.Fprintf(&b, "\n(%d bytes, cut %t, unsized %t) %s", len(r.Body), r.Cut, r.Unsized, clipped(string(r.Body)))
	return b.String()
}

func clipped(s string) string {
	const most = 600
	if len(s) > most {
		return fmt.Sprintf("%q... (%d bytes)", s[:most], len(s))
	}
	return fmt.Sprintf("%q", s)
}
