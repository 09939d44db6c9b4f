package idempotency

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/parley-chat/parley/pkg/apperr"
)

// Answer is the response to a request.
type Answer struct {
	Status   int
	Body     []byte // JSON
	Replayed bool   // response to an earlier request with the same key; set by the Executor, also for stored errors
}

// storedAnswer is the stored form of an outcome: a success, or an error, which is rendered again with the
// request id of the retry.
type storedAnswer struct {
	Status int            `json:"status,omitempty"`
	Body   []byte         `json:"body,omitempty"`
	Code   apperr.Code    `json:"code,omitempty"`
	Reason string         `json:"reason,omitempty"`
	Text   string         `json:"message,omitempty"`
	Fields []apperr.Field `json:"fields,omitempty"`
}

// encode returns the stored form of an outcome; ok is false for an outcome that is not stored.
func encode(answer Answer, err error) (stored string, ok bool) {
	k := storedAnswer{Status: answer.Status, Body: answer.Body}
	if err != nil {
		e, ok := errors.AsType[*apperr.Error](err)
		if !ok || !final(e.Code) {
			return "", false
		}
		k = storedAnswer{Code: e.Code, Reason: e.Reason, Text: e.Message, Fields: e.Fields}
	}
	text, err := json.Marshal(k)
	return string(text), err == nil
}

// final reports whether an error is a definite outcome of the request, rather than a failure to complete it.
func final(code apperr.Code) bool { return code == apperr.Invalid || code == apperr.NotFound }

// replay decodes a stored outcome.
func replay(text string) (Answer, error) {
	var k storedAnswer
	if err := json.Unmarshal([]byte(text), &k); err != nil {
		return Answer{}, fmt.Errorf("decoding a stored answer: %w", err)
	}
	answer := Answer{Status: k.Status, Body: k.Body, Replayed: true}
	if k.Code == "" {
		return answer, nil
	}
	return answer, &apperr.Error{Code: k.Code, Reason: k.Reason, Message: k.Text, Fields: k.Fields}
}
