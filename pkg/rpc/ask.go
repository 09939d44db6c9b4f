package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/pkg/apperr"
)

// Question is a request that one process of a service answers.
type Question struct {
	Subject string
	Body    []byte
	Service string        // that answers; for the error
	Timeout time.Duration // of the whole call
}

// Ask returns the answer to a question. It returns Unavailable if nothing answers in time, or if the answer
// is empty, which says that answering failed. It wraps the error of nats.go.
func Ask[Answer any](ctx context.Context, c *Conn, q Question) (answer Answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, q.Timeout)
	defer cancel()
	m, err := c.nats.RequestWithContext(ctx, q.Subject, q.Body)
	if err != nil {
		return answer, apperr.Unreachable(q.Service, fmt.Errorf("asking on %s: %w", q.Subject, err))
	}
	if len(m.Data) == 0 {
		return answer, apperr.Unreachable(q.Service, errors.New("it failed to answer on "+q.Subject))
	}
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return answer, apperr.Unreachable(q.Service, fmt.Errorf("decoding the answer on %s: %w", q.Subject, err))
	}
	return answer, nil
}

// answerFunc returns the answer to a request, which is sent as JSON. Its errors reach no other process.
type answerFunc func(ctx context.Context, subj string, request []byte) (any, error)

// responder answers requests concurrently, so that one that waits for MongoDB does not delay the others. It
// lives from [Conn.answer] until its stop.
type responder struct {
	answer  answerFunc
	timeout time.Duration   // of one answer
	ctx     context.Context // cancelled by stop

	mu      sync.Mutex // guards stopped, and the start of running calls
	stopped bool
	running sync.WaitGroup
}

// answer answers requests on the subjects of filter until stop is called; stop waits for running calls. Each
// request reaches one process of the group.
func (c *Conn) answer(
	filter, group string, timeout time.Duration, respond answerFunc,
) (stop func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	r := &responder{answer: respond, timeout: timeout, ctx: ctx}
	unsubscribe, err := c.subscribe(filter, group, r.receive)
	if err != nil {
		cancel()
		return nil, err
	}
	return func() {
		unsubscribe()
		r.refuse()
		cancel()
		r.running.Wait()
	}, nil
}

// receive starts the answer to a request.
func (r *responder) receive(m *nats.Msg) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopped {
		r.running.Go(func() { r.respond(m) })
	}
}

// refuse makes receive ignore later requests.
func (r *responder) refuse() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
}

// respond sends the answer, or an empty payload if there is none.
func (r *responder) respond(m *nats.Msg) {
	ctx, cancel := context.WithTimeout(r.ctx, r.timeout)
	defer cancel()
	var payload []byte
	answer, err := r.answer(ctx, m.Subject, m.Data)
	if err == nil {
		payload, _ = json.Marshal(answer) // texts, numbers and times: always encodes
	}
	_ = m.Respond(payload) // the caller retries
}
