package engineio

// What a session keeps of the request that opened it. Sessions live for hours, so it is one string, not
// maps.

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Request is the stored part of the request that opened a session, in a compact form: maps are built
// on demand.
type Request struct {
	// RemoteAddr is the network address that sent the request.
	RemoteAddr string
	// Time is when the request arrived.
	Time time.Time

	query string
	lines string // "Name: value\n" for each kept header line
}

// maxKeptHeader is the maximum length of a header value selected by KeepHeaders. A longer one is truncated,
// not dropped, so that it does not appear to be missing.
const maxKeptHeader = 2 << 10

// newRequest stores the parts of r that opts select.
func newRequest(r *http.Request, opts *Options) Request {
	query := ""
	if !opts.DropQuery {
		query = strings.Clone(r.URL.RawQuery)
	}
	return Request{
		RemoteAddr: r.RemoteAddr,
		Time:       time.Now(),
		query:      query,
		lines:      headerLines(r.Header, opts.KeepHeaders),
	}
}

// headerLines returns the headers to keep, one line each.
func headerLines(h http.Header, keep []string) string {
	var b strings.Builder
	for name, values := range h {
		if keep != nil && !slices.ContainsFunc(keep, func(k string) bool { return strings.EqualFold(k, name) }) {
			continue
		}
		for _, v := range values {
			if keep != nil && len(v) > maxKeptHeader {
				v = v[:maxKeptHeader]
			}
			b.WriteString(name)
			b.WriteString(": ")
			b.WriteString(v)
			b.WriteByte('\n')
		}
	}
	return strings.Clone(b.String()) // without the builder's spare capacity
}

// Query returns the query parameters.
func (r *Request) Query() url.Values {
	q, _ := url.ParseQuery(r.query) // skips malformed pairs
	return q
}

// Header returns the kept headers.
func (r *Request) Header() http.Header {
	h := make(http.Header)
	for line := range strings.Lines(r.lines) {
		if name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); ok {
			h.Add(name, value)
		}
	}
	return h
}
