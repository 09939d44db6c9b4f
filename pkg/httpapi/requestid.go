package httpapi

import (
	"context"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/slot"
	"github.com/parley-chat/parley/pkg/tracing"
)

// requestScope is the context of one request: one allocation holds all its values.
type requestScope struct {
	context.Context
	origin  event.Origin
	span    *tracing.Span
	header  [1]string // the value of X-Request-Id in the response
	maxBody int64

	smallBodyTime time.Duration

	memory       *Memory // nil: no bound
	owner        Owner
	body, answer *slot.Slot // what the request holds; nil: nothing
	bodyRead     bool       // see ReadBody
}

// release gives back what the request holds.
func (s *requestScope) release() {
	s.body.Release()
	s.answer.Release()
}

type scopeKey struct{}

// Value implements [context.Context].
func (s *requestScope) Value(key any) any {
	switch key.(type) {
	case scopeKey:
		return s
	case event.OriginKey:
		return &s.origin
	}
	return s.Context.Value(key)
}

func scopeOf(ctx context.Context) *requestScope {
	s, _ := ctx.Value(scopeKey{}).(*requestScope)
	return s
}

// requestIDOf returns the caller's X-Request-Id if it is valid, so that a request can be followed across systems, and a
// new one otherwise.
func requestIDOf(h http.Header) string {
	if v := h["X-Request-Id"]; len(v) == 1 && event.ValidRequestID(v[0]) {
		return v[0]
	}
	return newRequestID()
}

// newRequestID returns a random UUID (version 4). It need not be secret, so the runtime's fast generator is sufficient.
func newRequestID() string {
	var raw [16]byte
	hi, lo := rand.Uint64(), rand.Uint64()
	for i := range 8 {
		raw[i], raw[8+i] = byte(hi>>(8*i)), byte(lo>>(8*i))
	}
	raw[6] = raw[6]&0x0f | 0x40
	raw[8] = raw[8]&0x3f | 0x80
	var text [36]byte
	hex.Encode(text[:8], raw[:4])
	hex.Encode(text[9:13], raw[4:6])
	hex.Encode(text[14:18], raw[6:8])
	hex.Encode(text[19:23], raw[8:10])
	hex.Encode(text[24:], raw[10:])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return string(text[:])
}
