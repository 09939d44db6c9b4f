// Package parley is the Go client of Parley: the Client API for a company's systems and the Widget API for visitors.
//
// The packages clientapi and widgetapi are generated from the OpenAPI documents; each operation is a method that ends in WithResponse. This
// package makes their clients: requests carry the token, failed attempts are repeated where that is safe, and an answer that is not
// a success is an [*Error]. Package webhook verifies webhooks.
package parley

import (
	"net/http"
	"time"

	"github.com/parley-chat/parley/clients/go/clientapi"
	"github.com/parley-chat/parley/clients/go/widgetapi"
)

// Option changes how a client sends its requests.
type Option func(*transport)

// WithHTTPClient sends requests with c. The default is a client that gives an attempt 30 seconds.
func WithHTTPClient(c *http.Client) Option { return func(t *transport) { t.http = c } }

// WithRetry sets the attempts of a call, the first one included, the first pause, which doubles after each attempt, and the longest pause: a longer
// Retry-After ends the call with the error. The default is 4 attempts, 250 ms and 30 s. One attempt means no retries.
func WithRetry(attempts int, pause, maxPause time.Duration) Option {
	return func(t *transport) { t.attempts, t.pause, t.maxPause = attempts, pause, maxPause }
}

// NewClient returns a client of the Client API at baseURL. The token is one of the company.
func NewClient(baseURL, token string, options ...Option) (*clientapi.ClientWithResponses, error) {
	t, err := newTransport(baseURL, "x-access-token", token, clientKeyed, options)
	if err != nil {
		return nil, err
	}
	return clientapi.NewClientWithResponses(baseURL, clientapi.WithHTTPClient(t))
}

// NewWidget returns a client of the Widget API at baseURL. The token is the visitor's, from POST /register; without one only register, the settings, files and
// keys can be asked for.
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
