package webhook

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/parley-chat/parley/pkg/webhook"
	"github.com/parley-chat/parley/services/processor/internal/guard"
	"github.com/parley-chat/parley/services/processor/internal/retryafter"
)

const (
	// maxAnswer bounds how much of an answer is read, maxExcerpt how much of it is stored.
	maxAnswer  = 64 << 10
	maxExcerpt = 1 << 10
	maxError   = 300
	userAgent  = "Parley-Webhooks/1.0"
)

// result is the result of an attempt.
type result struct {
	attempt    webhook.Attempt
	retryAfter time.Duration // the endpoint's Retry-After; zero: none
	noAnswer   bool          // timeout, or no connection
}

func (r result) succeeded() bool { return r.attempt.StatusCode >= 200 && r.attempt.StatusCode < 300 }

// gone reports whether the endpoint answered 410 Gone: it wants no further deliveries.
func (r result) gone() bool { return r.attempt.StatusCode == http.StatusGone }

// overloaded reports whether the endpoint, or a proxy before it, is overloaded.
func (r result) overloaded() bool {
	switch r.attempt.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusGatewayTimeout:
		return true
	}
	return r.retryAfter > 0
}

// call makes one request and returns its result.
func (s *Service) call(ctx context.Context, e webhook.Endpoint, d webhook.Delivery) result {
	at := s.cfg.Now()
	r := result{attempt: webhook.Attempt{At: at, URL: e.URL}}
	request, err := newRequest(ctx, e, d, at)
	if err != nil {
		r.attempt.Error = err.Error()
		return r
	}
	began := time.Now()
	response, err := s.client.Do(request)
	if err == nil {
		defer response.Body.Close()
		r.attempt.StatusCode = response.StatusCode
		r.retryAfter = retryafter.Parse(response.Header, at, maxRetryAfter)
		r.attempt.Answer = excerpt(response.Body)
	} else {
		reason := guard.Reason(err)
		r.attempt.Error = printable(reason[:min(len(reason), maxError)])
		r.noAnswer = true
	}
	r.attempt.Duration = time.Since(began)
	return r
}

func newRequest(ctx context.Context, e webhook.Endpoint, d webhook.Delivery, at time.Time) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL, strings.NewReader(d.Body))
	if err != nil {
		return nil, errors.New("the URL cannot be requested")
	}
	for name, value := range e.Headers {
		request.Header.Set(name, value)
	}
	// After the headers of the company, which cannot replace these.
	request.Header.Set("User-Agent", userAgent)
	if err := webhook.SetHeaders(request.Header, e.Secrets, d.ID, at, []byte(d.Body)); err != nil {
		return nil, err
	}
	return request, nil
}

// excerpt reads an answer, so that its connection can be reused, and returns its beginning as text.
func excerpt(body io.Reader) string {
	head, err := io.ReadAll(io.LimitReader(body, maxExcerpt))
	if err == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(body, maxAnswer)) // a longer answer closes the connection
	}
	return printable(string(head))
}

func printable(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\uFFFD")
}
