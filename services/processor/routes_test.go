package processor

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/bustest"
)

// A company whose records are slow holds no more than its share of the recorder: another company's are written.
func TestSlowRecordsDelayNoOtherCompany(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, bustest.Start(t).URL())
	routes := recorderRoutes(nil)
	replies := routes[slices.IndexFunc(routes, func(c bus.Consumer) bool { return c.Stream == subject.Replies })]
	slow, quick := uuid.NewString(), uuid.NewString()
	written := make(chan struct{})
	replies.Handle = decoded(func(ctx context.Context, e event.Reply) error {
		if e.CompanyID == quick {
			close(written)
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	})
	replies.HandoverGrace = time.Millisecond // ends the slow handlers with the test
	publish := func(companyID string) {
		e := event.Reply{CompanyID: companyID, AppID: uuid.NewString(), ChatUserID: uuid.NewString()}
		e.ChatID = uuid.NewString()
		e.Message = chat.Message{
			ID: chat.NewID(), CreatedAt: time.Now().UTC(), Type: chat.Text, Data: []byte(`{"text":"a"}`), IsFromSupport: true,
		}
		if err := b.Publish(t.Context(), event.Derived(), e); err != nil {
			t.Fatal(err)
		}
	}
	for range recorders + 1 {
		publish(slow)
	}
	publish(quick)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Consume(ctx, replies) }()
	defer func() {
		stop()
		<-ended
	}()
	select {
	case <-written:
	case <-time.After(20 * time.Second):
		t.Error("the other company's reply is not recorded while the slow ones are")
	}
}

func TestCompanyOfAnEvent(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		`{"companyId":"a","appId":"b"}`:    "a",
		`{"appId":"b", "companyId" : "a"}`: "a", // an external processing layer's
		`{"companyId":"a`:                  "",
		`null`:                             "",
	} {
		if got := byCompany(bus.Delivery{Data: []byte(data)}); got != want {
			t.Errorf("%s: got %q, want %q", data, got, want)
		}
	}
}

// All events that are dispatched or become webhook deliveries name their company, by which they share the workers. It
// is the same for all events of a key: a subject, or the company with a phone number.
func TestEventsHaveATenant(t *testing.T) {
	t.Parallel()
	const company = "c0000000-0000-4000-8000-000000000001"
	tenants := map[string][]func(bus.Delivery) string{}
	for _, route := range append(webhookRoutes(nil), dispatcherRoutes(nil, repeats{})...) {
		if route.Key != nil && route.Durable != durablePushes {
			t.Errorf("%s: got a key, want the subject", route.Durable)
		}
		tenants[route.Stream] = append(tenants[route.Stream], route.Tenant)
	}
	for stream, events := range map[string][]event.Event{
		subject.Inbound: {
			event.VisitorMessageAccepted{CompanyID: company, Message: chat.Message{Data: []byte(`{}`)}},
			event.VisitorRegistered{CompanyID: company},
			event.ChatControlChanged{CompanyID: company}, event.ChatRated{CompanyID: company},
		},
		subject.Status: {event.MessageStatusChanged{CompanyID: company}},
		subject.Sends: {
			event.CompanyMessageAccepted{CompanyID: company, Message: chat.Message{Data: []byte(`{}`)}},
			event.PushAccepted{CompanyID: company},
		},
	} {
		for _, e := range events {
			data, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			for _, tenant := range tenants[stream] {
				if tenant == nil || tenant(bus.Delivery{Data: data}) != company {
					t.Errorf("%s, %T: got another tenant, want the company", stream, e)
				}
			}
		}
	}
}
