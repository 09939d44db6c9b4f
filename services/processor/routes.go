package processor

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/services/processor/internal/bot"
	"github.com/parley-chat/parley/services/processor/internal/dispatcher"
	"github.com/parley-chat/parley/services/processor/internal/recorder"
	"github.com/parley-chat/parley/services/processor/internal/webhook"
)

// Names of the durable consumers on the server. A new name starts at the stream's beginning.
const (
	durableRecorder   = "recorder"
	durableControls   = "recorder-control"
	durableRatings    = "recorder-ratings"
	durableDispatcher = "dispatcher"
	durablePushes     = "dispatcher-pushes"
	durableBot        = "bot"
	durableWebhooks   = "webhooks"
)

const (
	// recorders is how many events are written to the history at once. Writes that come together share a commit of up to 256, and as
	// many get ready meanwhile.
	recorders = 512
	// dispatchers is how many messages or pushes are brought to their channel at once.
	dispatchers = 128
	// fanouts is how many events are turned into webhook deliveries at once.
	fanouts = 256
)

// recorderRoutes: the history needs no order, so that all replicas share each consumer and every message is a key of its own.
func recorderRoutes(r *recorder.Recorder) []bus.Consumer {
	routes := []bus.Consumer{
		{
			Stream: subject.Inbound, Durable: durableRecorder, Filters: []string{subject.AllVisitorMessages},
			Handle: decoded(r.VisitorMessage),
		},
		{
			Stream: subject.Inbound, Durable: durableControls, Filters: []string{subject.AllControls},
			Handle: controlChanged(r),
		},
		{
			Stream: subject.Inbound, Durable: durableRatings, Filters: []string{subject.AllRatings},
			Handle: decoded(r.ChatRated),
		},
		{Stream: subject.Replies, Durable: durableRecorder, Handle: decoded(r.Reply)},
		{Stream: subject.Outbound, Durable: durableRecorder, Handle: decoded(r.Outbound)},
		{Stream: subject.Status, Durable: durableRecorder, Handle: decoded(r.StatusChanged)},
		{
			Stream: subject.Dead, Durable: durableRecorder, Handle: givenUp(r.GivenUp),
			Filters: []string{ // not DEAD's own, or what fails here would come back for ever
				subject.DeadLetter(subject.Sends, durableDispatcher), subject.DeadLetter(subject.Sends, durablePushes),
				subject.DeadLetter(subject.Replies, "*"), subject.DeadLetter(subject.Outbound, "*"),
			},
		},
	}
	for i := range routes {
		routes[i].Order, routes[i].Key, routes[i].Concurrency = bus.Unordered, byMessage, recorders
	}
	return routes
}

// dispatcherRoutes: messages stay in order per chat, which is their subject, and all replicas bring them. Pushes stay in order per
// phone number. Their subject names the template, and one template goes to many numbers, so one replica at a time reads them.
func dispatcherRoutes(d *dispatcher.Dispatcher) []bus.Consumer {
	return []bus.Consumer{
		{
			Stream: subject.Sends, Durable: durableDispatcher, Filters: []string{subject.AllCompanyMessages},
			Handle: decoded(d.CompanyMessage), Concurrency: dispatchers,
		},
		{
			Stream: subject.Sends, Durable: durablePushes, Filters: []string{subject.AllPushes},
			Handle: decoded(d.Push), Concurrency: dispatchers, Order: bus.ByStream, Key: byPhone,
		},
	}
}

// controlChanged also passes the event's id, from which that of a notice follows.
func controlChanged(r *recorder.Recorder) handler {
	return func(ctx context.Context, d bus.Delivery) error {
		return decoded(func(ctx context.Context, e event.ChatControlChanged) error { return r.ControlChanged(ctx, e, d.ID) })(ctx, d)
	}
}

// botRoutes: a visitor's messages are answered in the order in which they were written.
func botRoutes(b *bot.Bot, concurrency int) []bus.Consumer {
	return []bus.Consumer{{
		Stream: subject.Inbound, Durable: durableBot, Filters: []string{subject.AllVisitorMessages},
		Handle: decoded(b.VisitorMessage), GaveUp: unanswered(b), Concurrency: concurrency,
	}}
}

// unanswered passes a message that is given up to the bot. A malformed one has no visitor.
func unanswered(b *bot.Bot) handler {
	return func(ctx context.Context, d bus.Delivery) error {
		e, err := event.Decode[event.VisitorMessageAccepted](d.Subject, d.Data)
		if err != nil {
			return nil //nolint:nilerr // the dead letter says what is wrong with it
		}
		_, again := d.Header[bus.HeaderReplayFor]
		return b.GaveUp(ctx, e, again)
	}
}

// webhookRoutes: the events of a visitor, and of a chat, become deliveries in their order. What comes after a delivery's insertion is not
// the bus's.
func webhookRoutes(w *webhook.Service) []bus.Consumer {
	return []bus.Consumer{
		{
			Stream: subject.Inbound, Durable: durableWebhooks, Concurrency: fanouts,
			Handle: bySubject(map[string]handler{
				subject.AllVisitorMessages: timed(w.VisitorMessage), subject.AllRegistrations: timed(w.VisitorRegistered),
				subject.AllControls: timed(w.ControlChanged), subject.AllRatings: timed(w.ChatRated),
			}),
		},
		{Stream: subject.Status, Durable: durableWebhooks, Concurrency: fanouts, Handle: timed(w.MessageStatusChanged)},
	}
}

// handler is what the bus calls.
type handler = func(context.Context, bus.Delivery) error

// decoded is what stands before every handler: it reads the event and gives up what is malformed. Retries, DEAD, metrics and
// the log are the bus's.
func decoded[E event.Event, P event.Checked[E]](handle func(context.Context, E) error) handler {
	return func(ctx context.Context, d bus.Delivery) error {
		e, err := event.Decode[E, P](d.Subject, d.Data)
		if err != nil {
			return err
		}
		return handle(ctx, e)
	}
}

// timed is decoded for a handler that also takes when the stream took the event.
func timed[E event.Event, P event.Checked[E]](handle func(context.Context, E, time.Time) error) handler {
	return func(ctx context.Context, d bus.Delivery) error {
		return decoded[E, P](func(ctx context.Context, e E) error { return handle(ctx, e, d.Time) })(ctx, d)
	}
}

// bySubject chooses the handler by the kind of the subject; a delivery of another kind is passed over.
func bySubject(handlers map[string]handler) handler {
	return func(ctx context.Context, d bus.Delivery) error {
		for filter, handle := range handlers {
			if strings.HasPrefix(d.Subject, strings.TrimSuffix(filter, ">")) {
				return handle(ctx, d)
			}
		}
		return nil
	}
}

// givenUp reads the letters about messages of companies, and passes over all others.
func givenUp(handle func(context.Context, recorder.Loss) error) handler {
	return func(ctx context.Context, d bus.Delivery) error {
		letter := bus.ReadDeadLetter(d)
		companyID, ok := senderOf(letter)
		id, isID := chat.ParseID(letter.EventID)
		if !ok || !isID {
			return nil
		}
		return handle(ctx, recorder.Loss{
			CompanyID: companyID, MessageID: id, AcceptedAt: d.EventTime(), At: letter.Time, Reason: letter.Message,
		})
	}
}

// senderOf returns the company that sent the message of a letter. A reply's subject does not name it, and most replies are no
// company's.
func senderOf(l bus.DeadLetter) (companyID string, ok bool) {
	if companyID, ok = subject.CompanyOf(l.Subject); ok {
		return companyID, true
	}
	var reply struct {
		CompanyID string `json:"companyId"`
		Receipt   bool   `json:"receipt"`
	}
	if l.Stream != subject.Replies || json.Unmarshal(l.Data, &reply) != nil {
		return "", false
	}
	return reply.CompanyID, reply.Receipt && subject.Valid(reply.CompanyID)
}

func byMessage(d bus.Delivery) string { return d.ID }

func byPhone(d bus.Delivery) string {
	var push struct {
		CompanyID string `json:"companyId"`
		Source    string `json:"source"`
	}
	if json.Unmarshal(d.Data, &push) != nil {
		return d.ID // the handler will say what is wrong with it
	}
	phone, _ := chat.ParsePhone(push.Source)
	return push.CompanyID + " " + strings.TrimPrefix(phone, "+")
}
