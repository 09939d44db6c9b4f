package parley

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const idempotencyKey = "Idempotency-Key"

// transport sends the requests of a generated client. It is safe for concurrent use.
type transport struct {
	http            *http.Client
	base            string // the path of the base URL
	header, token   string
	keyed           *http.ServeMux // matches the operations that accept an Idempotency-Key
	attempts        int
	pause, maxPause time.Duration
}

func newTransport(baseURL, header, token string, keyed []string, options []Option) (*transport, error) {
	base, err := url.Parse(baseURL)
	if err != nil {
		return nil, fmt.Errorf("parley: %w", err)
	}
	if base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("parley: the base URL %q must be http(s)://host", baseURL)
	}
	t := &transport{
		http: defaultHTTPClient(), base: strings.TrimRight(base.Path, "/"), header: header, token: token,
		keyed: http.NewServeMux(), attempts: 4, pause: 250 * time.Millisecond, maxPause: 30 * time.Second,
	}
	for _, pattern := range keyed {
		t.keyed.Handle(pattern, http.NotFoundHandler())
	}
	for _, option := range options {
		option(t)
	}
	return t, nil
}

// Do sends a request, retries it if that is safe, and returns the successful response. All attempts of a call have the
// same Idempotency-Key.
func (t *transport) Do(req *http.Request) (*http.Response, error) {
	repeatable, err := t.prepare(req)
	if err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		resp, err := t.attempt(req)
		if err == nil {
			return resp, nil
		}
		pause, ok := t.pauseBefore(attempt, resp)
		if attempt >= t.attempts || !ok || !isRetryable(err, repeatable) || req.Context().Err() != nil {
			return nil, err
		}
		if sleep(req.Context(), pause) != nil {
			return nil, err // the last failure is more informative than the context's error
		}
	}
}

// prepare sets the headers, makes the body readable for each attempt, and reports whether the request is idempotent.
func (t *transport) prepare(req *http.Request) (repeatable bool, err error) {
	if t.token != "" {
		req.Header.Set(t.header, t.token)
	}
	repeatable = req.Method == http.MethodGet
	path := strings.TrimPrefix(req.URL.EscapedPath(), t.base)
	if _, pattern := t.keyed.Handler(&http.Request{Method: req.Method, URL: &url.URL{Path: path}}); pattern != "" {
		repeatable = true
		if req.Header.Get(idempotencyKey) == "" {
			req.Header.Set(idempotencyKey, rand.Text())
		}
	}
	if req.Body == nil || req.GetBody != nil {
		return repeatable, nil
	}
	body, err := io.ReadAll(req.Body)
	_ = req.Body.Close()
	if err != nil {
		return false, fmt.Errorf("parley: reading the body: %w", err)
	}
	req.ContentLength = int64(len(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return repeatable, nil
}

// attempt returns the successful response, or an error and the response, if there is one, with its body closed.
func (t *transport) attempt(req *http.Request) (*http.Response, error) {
	try := req.Clone(req.Context())
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, fmt.Errorf("parley: %w", err)
		}
		try.Body = body
	}
	resp, err := t.http.Do(try)
	if err != nil {
		return nil, fmt.Errorf("parley: %w", err)
	}
	if resp.StatusCode < http.StatusMultipleChoices || resp.StatusCode == http.StatusNotModified {
		return resp, nil
	}
	return resp, errorOf(resp)
}

// isRetryable reports whether a failed attempt may be repeated. 429 and 503 mean that nothing was accepted. Other
// failures of the server or the connection leave that open, so only idempotent requests are retried.
func isRetryable(err error, repeatable bool) bool {
	var answer *Error
	if !errors.As(err, &answer) {
		return repeatable
	}
	switch {
	case answer.StatusCode == http.StatusTooManyRequests, answer.StatusCode == http.StatusServiceUnavailable:
		return true
	case answer.StatusCode >= http.StatusInternalServerError, answer.Code == "IDEMPOTENCY_KEY_IN_USE":
		return repeatable
	}
	return false
}

// pauseBefore returns the pause before the next attempt, at least Retry-After; false if that exceeds the maximum pause.
func (t *transport) pauseBefore(retry int, resp *http.Response) (time.Duration, bool) {
	backoff := min(t.pause<<min(retry-1, 16), t.maxPause)
	pause := backoff/2 + mathrand.N(backoff/2+1)
	if resp == nil {
		return pause, true
	}
	asked := retryAfter(resp.Header, time.Now())
	return max(pause, asked), asked <= t.maxPause
}

// retryAfter parses Retry-After (RFC 9110, section 10.2.3): seconds or a date.
func retryAfter(header http.Header, now time.Time) time.Duration {
	value := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return max(0, at.Sub(now))
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// defaultHTTPClient does not follow redirects: they would send the token to another server.
func defaultHTTPClient() *http.Client {
	return &http.Client{
		Timeout:       30 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
