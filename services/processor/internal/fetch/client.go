package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/services/processor/internal/guard"
	"github.com/parley-chat/parley/services/processor/internal/retryafter"
)

const (
	// requestTimeout bounds one request with its body.
	requestTimeout = 30 * time.Second
	// maxRedirects is how often the address of a document may be redirected.
	maxRedirects = 3
	// longestRetryAfter bounds what a server may ask for.
	longestRetryAfter = 24 * time.Hour
)

// failure is why a fetch got no text.
type failure struct {
	code, message string
	retryAfter    time.Duration
}

// Error implements error.
func (f *failure) Error() string { return f.message }

func fail(code, message string) *failure { return &failure{code: code, message: message} }

// answer is what the server has for a document.
type answer struct {
	unchanged bool // the text is the one that the document has
	page
	etag, modified string
}

// client makes requests. It is safe for concurrent use.
type client struct {
	http   *http.Client
	robots *robots
	turns  *turns
	now    func() time.Time
}

func newClient(allow []netip.Prefix, pause time.Duration, now func() time.Time) *client {
	return &client{
		http:   guard.NewClient(allow, requestTimeout),
		robots: newRobots(),
		turns:  newTurns(pause),
		now:    now,
	}
}

// fetch returns what the address of a document has. Its error is a *failure, unless ctx is done.
func (c *client) fetch(ctx context.Context, d knowledge.Document) (answer, error) {
	address, err := url.Parse(d.Address)
	if err != nil {
		return answer{}, fail(knowledge.FetchNoAnswer, "The address is not a URL")
	}
	first := address
	for range maxRedirects + 1 {
		if err := c.allowed(ctx, address); err != nil {
			return answer{}, err
		}
		r, err := c.send(ctx, address, conditions(d.Source))
		if err != nil {
			return answer{}, err
		}
		next := redirection(r)
		if next == nil {
			return c.read(ctx, r, address)
		}
		r.Body.Close()
		if !isSameSite(first, next) {
			return answer{}, fail(knowledge.FetchRedirected, "The server redirects to another site: "+site(next))
		}
		address = next
	}
	message := fmt.Sprintf("The server redirects more than %d times", maxRedirects)
	return answer{}, fail(knowledge.FetchRedirected, message)
}

// conditions asks for the text only if it is another one than the document has.
func conditions(s knowledge.Source) http.Header {
	h := http.Header{}
	if s.ETag != "" {
		h.Set("If-None-Match", s.ETag)
	}
	if s.Modified != "" {
		h.Set("If-Modified-Since", s.Modified)
	}
	return h
}

// send sends a request when it is the host's turn. Its error is a *failure, unless ctx is done.
func (c *client) send(ctx context.Context, address *url.URL, header http.Header) (*http.Response, error) {
	if err := c.turns.wait(ctx, address.Host); err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, fail(knowledge.FetchNoAnswer, "The address is not a URL")
	}
	for name, values := range header {
		r.Header[name] = values
	}
	r.Header.Set("User-Agent", userAgent)
	r.Header.Set("Accept", accepted)
	answered, err := c.http.Do(r)
	if err == nil {
		return answered, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, noAnswer(err)
}

// noAnswer is the failure of a request, or of a body that broke off.
func noAnswer(err error) *failure {
	if guard.Refused(err) {
		return fail(knowledge.FetchNotAllowed, "Parley may not connect to this address: "+guard.Reason(err))
	}
	return fail(knowledge.FetchNoAnswer, "The server did not answer: "+guard.Reason(err))
}

func isNotAllowed(err error) bool {
	f, ok := errors.AsType[*failure](err)
	return ok && f.code == knowledge.FetchNotAllowed
}

// redirection returns where an answer redirects to, or nil.
func redirection(r *http.Response) *url.URL {
	switch r.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		next, err := r.Location()
		if err == nil && (next.Scheme == "http" || next.Scheme == "https") {
			return next
		}
	}
	return nil
}

// isSameSite reports whether a redirect stays at the site of a document: the same host, with or without www, with the
// same port, or from http to https at their own ports.
func isSameSite(from, to *url.URL) bool {
	bare := func(u *url.URL) string { return strings.TrimPrefix(strings.ToLower(u.Hostname()), "www.") }
	if bare(from) != bare(to) {
		return false
	}
	if from.Scheme == to.Scheme {
		return port(from) == port(to)
	}
	return from.Scheme == "http" && port(from) == "80" && port(to) == "443"
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

// site is how a failure names the host of a redirect.
func site(u *url.URL) string { return u.Scheme + "://" + net.JoinHostPort(u.Hostname(), port(u)) }

// read reads an answer that is no redirect.
func (c *client) read(ctx context.Context, r *http.Response, address *url.URL) (answer, error) {
	defer r.Body.Close()
	a := answer{etag: r.Header.Get("ETag"), modified: r.Header.Get("Last-Modified")}
	switch r.StatusCode {
	case http.StatusOK:
	case http.StatusNotModified:
		a.unchanged = true
		return a, nil
	default:
		status := strings.TrimSpace(fmt.Sprint(r.StatusCode, " ", http.StatusText(r.StatusCode)))
		f := fail(knowledge.FetchRefused, "The server answered "+status)
		f.retryAfter = retryafter.Parse(r.Header, c.now(), longestRetryAfter)
		return answer{}, f
	}
	kind, err := kindOf(r.Header, address)
	if err != nil {
		return answer{}, err
	}
	body, err := readAtMost(r.Body, kind.maxBytes+1)
	if err != nil {
		return answer{}, noAnswer(err)
	}
	a.page, err = kind.page(ctx, body)
	return a, err
}

// readAtMost reads a body up to a length.
func readAtMost(body io.Reader, length int) ([]byte, error) {
	return io.ReadAll(io.LimitReader(body, int64(length)))
}
