// Package parley is the Go client of Parley: the Client API for a company's systems and the Widget API for visitors.
//
// The packages clientapi and widgetapi are generated from the OpenAPI documents; each operation is a method that ends
// in WithResponse. This package creates their clients: requests carry the token, failed attempts are retried if that is
// safe, and an unsuccessful response is an [*Error]. Package webhook verifies webhooks.
package parley

import (
	"net/http"
	"time"

	"github.com/parley-chat/parley/clients/go/clientapi"
	"github.com/parley-chat/parley/clients/go/widgetapi"
)

// Option configures how a client sends requests.
type Option func(*transport)

// WithHTTPClient sends requests with c. The default is a client with a timeout of 30 seconds per attempt.
func WithHTTPClient(c *http.Client) Option { return func(t *transport) { t.http = c } }

// WithRetry sets the maximum number of attempts of a call, including the first one, the first pause, which doubles
// after each attempt, and the longest pause: a longer Retry-After ends the call with the error. The default is 4
// attempts, 250 ms and 30 s. One attempt disables retries.
func WithRetry(attempts int, pause, maxPause time.Duration) Option {
	return func(t *transport) { t.attempts, t.pause, t.maxPause = attempts, pause, maxPause }
}

// NewClient returns a client of the Client API at baseURL. The token is a company's access token.
func NewClient(baseURL, token string, options ...Option) (*clientapi.ClientWithResponses, error) {
	t, err := newTransport(baseURL, "x-access-token", token, clientKeyed, options)
	if err != nil {
		return nil, err
	}
	return clientapi.NewClientWithResponses(baseURL, clientapi.WithHTTPClient(t))
}

// NewWidget returns a client of the Widget API at baseURL. The token is the visitor's, from POST /register; without one
// only registration, settings, files and keys are available.
func NewWidget(baseURL, token string, options ...Option) (*widgetapi.ClientWithResponses, error) {
	if token != "" {
		token = "Bearer " + token
	}
	t, err := newTransport(baseURL, "Authorization", token, widgetKeyed, options)
	if err != nil {
		return nil, err
	}
	return widgetapi.NewClientWithResponses(baseURL, widgetapi.WithHTTPClient(t))
}
