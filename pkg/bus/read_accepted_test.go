package bus_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/timetest"
)

func accepted(companyID, chatID string) event.CompanyMessageAccepted {
	return event.CompanyMessageAccepted{CompanyID: companyID, ChatID: chatID, Message: chat.Message{
		ID: uuid.Must(uuid.NewV7()).String(), CreatedAt: time.Now().UTC().Truncate(time.Millisecond), Type: chat.Text,
		Data: json.RawMessage(`{"text":"hi"}`), IsFromSupport: true,
	}}
}

// More messages than fit in a batch, of two companies: each is found at once, for its company only.
func TestAccepted(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, startEngine(t).nats.URL())
	if _, err := b.Accepted(t.Context(), "acme", accepted("acme", "c").Message.ID); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("got %v from an empty stream, want NotFound", err)
	}
	var messages []event.CompanyMessageAccepted
	for i := range 300 {
		e := accepted("acme", fmt.Sprint("chat", i%3))
		if err := b.Publish(t.Context(), event.Derived(), e); err != nil {
			t.Fatal(err)
		}
		messages = append(messages, e)
	}
	for _, e := range []event.CompanyMessageAccepted{messages[0], messages[150], messages[299]} {
		for _, company := range []string{"acme", "*"} {
			d, err := b.Accepted(t.Context(), company, e.Message.ID)
			if err != nil || d.EventID() != e.Message.ID || d.Subject != e.Subject() || d.Sequence == 0 {
				t.Errorf("got %+v and %v, want the event of %s", d, err, e.Message.ID)
			}
			if !d.EventTime().Equal(e.Message.CreatedAt) {
				t.Errorf("got the time %v, want %v", d.EventTime(), e.Message.CreatedAt)
			}
		}
		if _, err := b.Accepted(t.Context(), "other", e.Message.ID); !apperr.Is(err, apperr.NotFound) {
			t.Errorf("got %v for another company, want NotFound", err)
		}
	}
	push := event.PushAccepted{
		CompanyID: "acme", TemplateID: "t", MessageID: accepted("", "").Message.ID, CreatedAt: time.Now(), Source: "+4915112345678",
	}
	if err := b.Publish(t.Context(), event.Derived(), push); err != nil {
		t.Fatal(err)
	}
	if d, err := b.Accepted(t.Context(), "acme", push.MessageID); err != nil || d.Subject != push.Subject() {
		t.Errorf("got %s and %v, want the push", d.Subject, err)
	}
}

// A lookup in a burst of the company reads a bounded part of it, in small batches, in all its tries together, and
// asks the caller to return. A message at the beginning of the burst is found.
func TestAcceptedIsBounded(t *testing.T) {
	t.Parallel()
	const events = 100
	b := bustest.Open(t, startEngine(t).nats.URL())
	first := accepted("acme", "c")
	large := accepted("acme", "c") // alone larger than a batch
	large.Message.Data = json.RawMessage(`{"text":"` + strings.Repeat("x", 100<<10) + `"}`)
	burst := []event.CompanyMessageAccepted{first, large}
	for len(burst) < events {
		burst = append(burst, accepted("acme", "c"))
	}
	for _, e := range burst {
		if err := b.Publish(t.Context(), event.Derived(), e); err != nil {
			t.Fatal(err)
		}
	}
	unknown := uuid.Must(uuid.NewV7()).String()
	for limit, code := range map[int]apperr.Code{
		events:     apperr.Unavailable, // it gives up at once, or in its second try
		2 * events: apperr.Unavailable,
		6 * events: apperr.NotFound,
	} {
		_, err := b.AcceptedWithin(t.Context(), "acme", unknown, limit)
		var e *apperr.Error
		if !errors.As(err, &e) || e.Code != code || code == apperr.Unavailable && e.RetryAfter == 0 {
			t.Errorf("an unknown id, at most %d events: got %v, want %v", limit, err, code)
		}
	}
	if d, err := b.AcceptedWithin(t.Context(), "acme", large.Message.ID, events); err != nil || d.EventID() != large.Message.ID {
		t.Errorf("got %v, want the large message", err)
	}
}

// A request is retried with its key an hour after the first try failed: the message has the id of the first try.
func TestAcceptedFindsARetriedMessage(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, startEngine(t).nats.URL())
	e := accepted("acme", "c")
	made := time.Now().Add(-time.Hour).UnixMilli()
	e.Message.ID = fmt.Sprintf("%08x-%04x-7000-8000-000000000001", made>>16, made&0xffff)
	if err := b.Publish(t.Context(), event.Derived(), e); err != nil {
		t.Fatal(err)
	}
	if d, err := b.Accepted(t.Context(), "acme", e.Message.ID); err != nil || d.EventID() != e.Message.ID {
		t.Errorf("got %+v and %v, want the message", d, err)
	}
}

func TestAcceptedFindsNothing(t *testing.T) {
	t.Parallel()
	e := startEngine(t)
	b := bustest.Open(t, e.nats.URL())
	there := accepted("acme", "c")
	if err := b.Publish(t.Context(), event.Derived(), there); err != nil {
		t.Fatal(err)
	}
	visitors := event.VisitorMessageAccepted{CompanyID: "acme", AppID: "a", ChatUserID: "u", ChatID: "c", Message: accepted("", "").Message}
	if err := b.Publish(t.Context(), event.Derived(), visitors); err != nil {
		t.Fatal(err)
	}
	for why, id := range map[string]string{
		"an unknown id":               uuid.Must(uuid.NewV7()).String(),
		"an id of another version":    uuid.NewString(),
		"an id of the distant past":   "00000000-0000-7000-8000-000000000000",
		"an id of the distant future": "ffffffff-ffff-7fff-bfff-ffffffffffff",
		"not an id":                   "x",
		"a visitor's message":         visitors.Message.ID,
	} {
		if _, err := b.Accepted(t.Context(), "acme", id); !apperr.Is(err, apperr.NotFound) {
			t.Errorf("%s: got %v, want NotFound", why, err)
		}
	}
	if _, err := b.Accepted(t.Context(), ">", there.Message.ID); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("got %v for a wildcard as the company, want NotFound", err)
	}
	e.nats.Stop()
	timetest.Until(t, "NATS is disconnected", func() bool { return !b.JetStream().Conn().IsConnected() })
	if _, err := b.Accepted(t.Context(), "acme", there.Message.ID); !apperr.Is(err, apperr.Unavailable) {
		t.Errorf("got %v without NATS, want Unavailable", err)
	}
}
