package rpc

import (
	"context"
	"strings"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/proto-events/subject"
)

const (
	originsTimeout = 2 * time.Second
	widgetGroup    = "widget-api" // queue group of the Widget APIs
	widgetAPI      = "the Widget API"
)

// origins is the answer to a request for allowed origins.
type origins struct {
	Found          bool     `json:"found"`
	AllowedOrigins []string `json:"allowedOrigins"`
}

// AllowedOrigins requests the allowed origins of an application from a Widget API; found is false if the
// application does not exist. It returns Unavailable if none responds.
func (c *Conn) AllowedOrigins(ctx context.Context, appID string) (allowed []string, found bool, err error) {
	if !subject.Valid(appID) {
		return nil, false, nil
	}
	answer, err := Ask[origins](ctx, c, Question{
		Subject: subject.OriginsRequest(appID),
		Service: widgetAPI,
		Timeout: originsTimeout,
	})
	return answer.AllowedOrigins, answer.Found, err
}

// HandleOrigins responds to [Conn.AllowedOrigins] with the result of find until stop is called; stop waits
// for running calls. Callers receive errors other than NotFound without their text.
func (c *Conn) HandleOrigins(find func(ctx context.Context, appID string) ([]string, error)) (stop func(), err error) {
	answer := func(ctx context.Context, subj string, _ []byte) (any, error) {
		allowed, err := find(ctx, strings.TrimPrefix(subj, subject.OriginsRequest("")))
		if apperr.Is(err, apperr.NotFound) {
			return origins{}, nil
		}
		return origins{Found: true, AllowedOrigins: allowed}, err
	}
	return c.answer(subject.AllOriginRequests, widgetGroup, originsTimeout, answer)
}
