package processor

import (
	"bytes"
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
	// recorders is the number of concurrent writes to the history. Concurrent writes share a commit of up to
	// 256, while as many get ready.
	recorders = 512
	// dispatchers is the number of messages or pushes that are dispatched concurrently.
	dispatchers = 128
	// fanouts is the number of events that are turned into webhook deliveries concurrently.
	fanouts = 256
)

// recorderRoutes: the history needs no order, so all replicas share each consumer and every message is its own key. The
// bound of the writes at once is shared between companies, so that one whose writes are slow does not delay the others.
func recorderRoutes(r *recorder.Recorder) []bus.Consumer {
	routes := []bus.Consumer{
		{
			Stream: subject.Inbound, Durable: durableRecorder, Filters: []string{subject.AllVisitorMessages},
			Handle: decoded(r.VisitorMessage),
		},
		{
			Stream: subject.Inbound, Durable: durableControls, Filters: []string{subject.AllControls},
			Handle: withID(r.ControlChanged),
		},
		{
			Stream: subject.Inbound, Durable: durableRatings, Filters: []string{subject.AllRatings},
			Handle: decoded(r.ChatRated),
		},
		{Stream: subject.Replies, Durable: durableRecorder, Handle: decoded(r.Reply)},
		{Stream: subject.Outbound, Durable: durableRecorder, Handle: decoded(r.Outbound)},
		{Stream: subject.Status, Durable: durableRecorder, Handle: decoded(r.StatusChanged)},
		{
			Stream: subject.Dead, Durable: durableRecorder, Handle: deadLettered(r.Abandon),
			Filters: []string{ // not DEAD's own, or a failing dead letter would be redelivered for ever
				subject.DeadLetter(subject.Sends, durableDispatcher), subject.DeadLetter(subject.Sends, durablePushes),
				subject.DeadLetter(subject.Replies, "*"), subject.DeadLetter(subject.Outbound, "*"),
			},
		},
	}
	for i := range routes {
		routes[i].Order = bus.Unordered
		routes[i].Key = byMessage
		routes[i].Tenant = byCompany
		routes[i].Concurrency = recorders
	}
	return routes
}

// dispatcherRoutes: messages stay in order per chat, which is their subject, and all replicas share them.
// Pushes stay in order per phone number. Their subject names the template, and one template goes to many
// numbers, so one replica at a time reads them. Companies share the handlers and what waits for them.
func dispatcherRoutes(d *dispatcher.Dispatcher, again repeats) []bus.Consumer {
	return []bus.Consumer{
		{
			Stream: subject.Sends, Durable: durableDispatcher, Filters: []string{subject.AllCompanyMessages},
			Handle:      again.before(sameID, decoded(d.CompanyMessage)),
			Concurrency: dispatchers, Tenant: byCompany,
		},
		{
			Stream: subject.Sends, Durable: durablePushes, Filters: []string{subject.AllPushes},
			Handle:      again.before(sameID, decoded(d.Push)),
			Concurrency: dispatchers, Tenant: byCompany, Order: bus.ByStream, Key: byPhone,
		},
	}
}

// botHandover is how long an answer may still take when another process takes its visitor over. Until then the
// visitors of the same partition wait.
const botHandover = 10 * time.Second

// botRoutes: a visitor's messages are answered in order. The bound of the answers at once is shared between companies,
// and what a company gets between its applications, so that one whose answers are slow or many does not delay the
// others. The visitors of messages that wait in excess get the failure text.
func botRoutes(b *bot.Bot, again repeats, concurrency int, replicas *bus.Replicas) []bus.Consumer {
	return []bus.Consumer{{
		Stream: subject.Inbound, Durable: durableBot, Filters: []string{subject.AllVisitorMessages},
		Handle: again.before(firstAnswer, replayedOr(b.Replay, b.VisitorMessage)), GaveUp: unanswered(b),
		Concurrency: concurrency, Tenant: byCompany, Part: byApplication, ShedLoad: true, HandoverGrace: botHandover,
		Replicas: replicas,
	}}
}

// byApplication returns the application of a visitor's message.
func byApplication(d bus.Delivery) string {
	appID, _ := subject.AppOf(d.Subject)
	return appID
}

// replayedOr passes a visitor's message that an operator has replayed to one function, and others to another.
func replayedOr(replay, handle func(context.Context, event.VisitorMessageAccepted) error) handler {
	onReplay, first := decoded(replay), decoded(handle)
	return func(ctx context.Context, d bus.Delivery) error {
		if _, replayed := d.Header[bus.HeaderReplayFor]; replayed {
			return onReplay(ctx, d)
		}
		return first(ctx, d)
	}
}

// unanswered passes a message that is given up to the bot. A malformed one has no visitor.
func unanswered(b *bot.Bot) handler {
	return func(ctx context.Context, d bus.Delivery) error {
		e, err := event.Decode[event.VisitorMessageAccepted](d.Subject, d.Data)
		if err != nil {
			return nil //nolint:nilerr // the dead letter has the error
		}
		_, again := d.Header[bus.HeaderReplayFor]
		return b.GaveUp(ctx, e, again)
	}
}

// webhookRoutes: the events of a subject, which are those of a kind and a visitor or chat, become deliveries in order.
// After the insertion a delivery no longer concerns the bus. Companies share the events at once, so that one with many endpoints does not
// keep the store busy for all.
func webhookRoutes(w *webhook.Service) []bus.Consumer {
	return []bus.Consumer{
		{
			Stream: subject.Inbound, Durable: durableWebhooks, Concurrency: fanouts, Tenant: byCompany,
			Handle: bySubject(map[string]handler{
				subject.AllVisitorMessages: withTime(w.VisitorMessage),
				subject.AllRegistrations:   withTime(w.VisitorRegistered),
				subject.AllControls:        withTime(w.ControlChanged),
				subject.AllRatings:         withTime(w.ChatRated),
			}),
		},
		{
			Stream: subject.Status, Durable: durableWebhooks, Concurrency: fanouts, Tenant: byCompany,
			Handle: withTime(w.MessageStatusChanged),
		},
	}
}

// handler is the bus's callback.
type handler = func(context.Context, bus.Delivery) error

// decoded makes a handler of a function that takes the decoded event. It gives up a malformed one. The bus does the
// retries, DEAD, the metrics and the log. withID and withTime are for functions that also take something of the
// delivery.
func decoded[E event.Event, P event.Checked[E]](handle func(context.Context, E) error) handler {
	return func(ctx context.Context, d bus.Delivery) error {
		e, err := event.DecodeStored[E, P](d.Subject, d.Data, d.Time)
		if err != nil {
			return err
		}
		return handle(ctx, e)
	}
}

// withID also passes the event's id, from which the handler derives the ids of what it publishes.
func withID[E event.Event, P event.Checked[E]](handle func(context.Context, E, string) error) handler {
	return func(ctx context.Context, d bus.Delivery) error {
		e, err := event.DecodeStored[E, P](d.Subject, d.Data, d.Time)
		if err != nil {
			return err
		}
		return handle(ctx, e, d.ID)
	}
}

// withTime also passes the time at which the stream stored the event.
func withTime[E event.Event, P event.Checked[E]](handle func(context.Context, E, time.Time) error) handler {
	return func(ctx context.Context, d bus.Delivery) error {
		e, err := event.DecodeStored[E, P](d.Subject, d.Data, d.Time)
		if err != nil {
			return err
		}
		return handle(ctx, e, d.Time)
	}
}

// bySubject selects the handler by the kind of the subject and ignores other kinds.
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

// deadLettered handles the dead letters of companies' messages and ignores all others.
func deadLettered(handle func(context.Context, recorder.Abandoned) error) handler {
	return func(ctx context.Context, d bus.Delivery) error {
		deadLetter := bus.ReadDeadLetter(d)
		id, isID := chat.ParseID(deadLetter.EventID)
		if deadLetter.Sender == "" || !isID {
			return nil
		}
		return handle(ctx, recorder.Abandoned{
			CompanyID:  deadLetter.Sender,
			MessageID:  id,
			AcceptedAt: d.EventTime(),
			At:         deadLetter.Time,
			Reason:     deadLetter.Message,
		})
	}
}

// byCompany returns the company of an event; "" if it is malformed, which the handler reports.
func byCompany(d bus.Delivery) string {
	rest, first := bytes.CutPrefix(d.Data, []byte(`{"companyId":"`)) // as Parley's own services encode it
	if id, _, closed := bytes.Cut(rest, []byte(`"`)); first && closed && subject.Valid(string(id)) {
		return string(id)
	}
	var of struct {
		CompanyID string `json:"companyId"`
	}
	if json.Unmarshal(d.Data, &of) != nil {
		return ""
	}
	return of.CompanyID
}

func byMessage(d bus.Delivery) string { return d.ID }

func byPhone(d bus.Delivery) string {
	var push struct {
		CompanyID string `json:"companyId"`
		Source    string `json:"source"`
	}
	if json.Unmarshal(d.Data, &push) != nil {
		return d.ID // the handler reports the error
	}
	phone, _ := chat.ParsePhone(push.Source)
	return push.CompanyID + " " + strings.TrimPrefix(phone, "+")
}
