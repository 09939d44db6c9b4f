package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"slices"
	"time"

	"github.com/parley-chat/parley/pkg/admin/view"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

// exportedMessages and exportedBytes bound the messages that an export holds at a time.
const exportedMessages, exportedBytes = 100, 1 << 20

// exportedChat is a chat without its history.
type exportedChat struct {
	ID        string       `json:"id"`
	Channel   chat.Channel `json:"channel"`
	CreatedAt time.Time    `json:"createdAt"`
	ClosedAt  *time.Time   `json:"closedAt,omitempty"`
}

// ExportVisitor writes all stored data of a visitor as one JSON object, chats and messages newest first. It
// reads and writes page by page, so that its memory does not depend on the length of the histories. After an
// error w has an incomplete object.
func (s *Service) ExportVisitor(ctx context.Context, by Actor, v chat.Visitor, w io.Writer) error {
	exported := change{companyID: v.CompanyID, action: "visitor.export", target: "visitor", id: v.ID}
	if err := s.audit(ctx, by, exported); err != nil {
		return err
	}
	out := &jsonWriter{w: w}
	out.text(`{"exportedAt":`)
	out.value(store.UTC(s.now()))
	out.text(`,"visitor":`)
	out.value(view.ProfileOf(v))
	out.text(`,"chats":[`)
	first := true
	for c, err := range s.chatsOf(ctx, v) {
		if err != nil {
			return err
		}
		out.separate(&first)
		if err := s.exportChat(ctx, c, out); err != nil {
			return err
		}
	}
	out.text(`],"fileIds":[`)
	first = true
	for id, err := range s.filesOf(ctx, v) {
		if err != nil {
			return err
		}
		out.separate(&first)
		out.value(id)
	}
	out.text("]}\n")
	return out.err
}

// exportChat writes a chat with its history.
func (s *Service) exportChat(ctx context.Context, c chat.Chat, out *jsonWriter) error {
	e := exportedChat{ID: c.ID, Channel: c.Channel, CreatedAt: c.CreatedAt}
	if !c.ClosedAt.IsZero() {
		e.ClosedAt = &c.ClosedAt
	}
	out.open(e)
	out.text(`,"messages":[`)
	first := true
	for q := (store.HistoryQuery{Limit: exportedMessages, MaxBytes: exportedBytes}); ; {
		messages, more, err := s.store.History(ctx, c.ID, q)
		if err != nil {
			return err
		}
		for _, m := range slices.Backward(messages) {
			out.separate(&first)
			out.bytes(m.AppendJSON(nil))
		}
		if out.err != nil || !more {
			break
		}
		q.Before = messages[0].ID
	}
	out.text("]}")
	return out.err
}

// jsonWriter writes the parts of a JSON text. After an error it writes nothing.
type jsonWriter struct {
	w   io.Writer
	err error
}

func (j *jsonWriter) bytes(part []byte) {
	if j.err == nil {
		_, j.err = j.w.Write(part)
	}
}

func (j *jsonWriter) text(part string) { j.bytes([]byte(part)) }

// encode returns the JSON of a value; nil after an error.
func (j *jsonWriter) encode(v any) []byte {
	text, err := json.Marshal(v)
	if j.err == nil {
		j.err = err
	}
	return text
}

func (j *jsonWriter) value(v any) { j.bytes(j.encode(v)) }

// open writes an object without its end: other members follow.
func (j *jsonWriter) open(v any) { j.bytes(bytes.TrimSuffix(j.encode(v), []byte("}"))) }

// separate writes the comma before all elements of an array but the first.
func (j *jsonWriter) separate(first *bool) {
	if !*first {
		j.text(",")
	}
	*first = false
}
