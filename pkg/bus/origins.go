package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/proto-events/subject"
)

const (
	originsTimeout = 2 * time.Second
	originsGroup   = "widget-api" // one of them answers
)

// originsAnswer is a Widget API's answer about an application. An empty payload is an error.
type originsAnswer struct {
	Found          bool     `json:"found"`
	AllowedOrigins []string `json:"allowedOrigins"`
}

// AllowedOrigins asks the Widget APIs which origins an application allows; found is false if the application does not exist.
// It returns Unavailable if none of them answers.
func (b *Bus) AllowedOrigins(ctx context.Context, appID string) (origins []string, found bool, err error) {
	if !subject.Valid(appID) {
		return nil, false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, originsTimeout)
	defer cancel()
	m, err := b.conn.RequestWithContext(ctx, subject.OriginsRequest(appID), nil)
	if err != nil {
		return nil, false, apperr.Unreachable("the Widget API", fmt.Errorf("asking for allowed origins: %w", err))
	}
	var answer originsAnswer
	if len(m.Data) == 0 || json.Unmarshal(m.Data, &answer) != nil {
		return nil, false, apperr.Unreachable("the Widget API", errors.New("it did not answer which origins are allowed"))
	}
	return answer.AllowedOrigins, answer.Found, nil
}

// HandleOrigins answers [Bus.AllowedOrigins] with the result of find until stop is called, which waits for running calls of find. An
// error other than NotFound is answered without its text.
func (b *Bus) HandleOrigins(find func(ctx context.Context, appID string) ([]string, error)) (stop func(), err error) {
	a := &responder{answer: func(ctx context.Context, m *nats.Msg) []byte { return answerOrigins(ctx, m.Subject, find) }}
	return a.listen(b, subject.AllOriginQuestions, originsGroup)
}

// responder answers each question beside the others: one that waits for MongoDB must not hold them up.
type responder struct {
	answer func(ctx context.Context, m *nats.Msg) []byte
	ctx    context.Context
	cancel context.CancelFunc

	mu        sync.Mutex
	stopped   bool
	answering sync.WaitGroup
}

// listen answers the questions on the subjects of a filter; one replica of the group answers each.
func (a *responder) listen(b *Bus, filter, group string) (stop func(), err error) {
	a.ctx, a.cancel = context.WithCancel(b.ctx)
	sub, err := b.conn.QueueSubscribe(filter, group, a.take)
	if err != nil {
		a.cancel()
		return nil, fmt.Errorf("listening for questions: %w", err)
	}
	return func() {
		_ = sub.Unsubscribe() // fails only once the connection is closed
		a.stop()
	}, nil
}

func (a *responder) take(m *nats.Msg) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.stopped {
		a.answering.Go(func() { _ = m.Respond(a.answer(a.ctx, m)) }) // the caller retries
	}
}

func (a *responder) stop() {
	a.mu.Lock()
	a.stopped = true
	a.mu.Unlock()
	a.cancel()
	a.answering.Wait()
}

func answerOrigins(ctx context.Context, subj string, find func(context.Context, string) ([]string, error)) []byte {
	ctx, cancel := context.WithTimeout(ctx, originsTimeout)
	defer cancel()
	origins, err := find(ctx, strings.TrimPrefix(subj, subject.OriginsRequest("")))
	if err != nil && !apperr.Is(err, apperr.NotFound) {
		return nil
	}
	answer, _ := json.Marshal(originsAnswer{Found: err == nil, AllowedOrigins: origins}) // strings: always encodes
	return answer
}
