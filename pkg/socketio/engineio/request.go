package engineio

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Request is what a session remembers of the request that opened it, in a compact form: maps are built
// only when asked for.
type Request struct {
	// RemoteAddr is the network address that sent the request.
	RemoteAddr string
	// Time is when the request arrived.
	Time time.Time

	query string
	lines string // "Name: value\n" for each header line that is kept
}

// maxKeptHeader bounds the value of a header that is kept by its name. A longer one is cut, so that it cannot be
// taken for one that was not sent.
const maxKeptHeader = 2 << 10

// newRequest keeps what opts name.
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
	return strings.Clone(b.String()) // without the builder's spare room
}

// Query returns the query parameters.
func (r *Request) Query() url.Values {
	q, _ := url.ParseQuery(r.query) // malformed pairs are left out
	return q
}

// Header returns the header lines that were kept.
func (r *Request) Header() http.Header {
	h := make(http.Header)
	for line := range strings.Lines(r.lines) {
		if name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); ok {
			h.Add(name, value)
		}
	}
	return h
}
