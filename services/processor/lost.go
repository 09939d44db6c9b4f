package processor

// What a processor does about lost messages: at its start it notices streams that have lost some since the last stop of
// everything, and publishes visitors' messages again that INBOUND has lost. A consumer that the loss has set back gets
// events again that it handled long ago, and so do those of the messages that are published again: [repeats] keeps their
// effects from being repeated.

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/streammark"
	"github.com/parley-chat/parley/proto-events/subject"
)

const (
	// maxRepublished bounds the messages of visitors that are published again.
	maxRepublished = 10_000
	// storedLater bounds how long after its creation a message is stored in the stream: the timeout of a publish, and
	// the skew of the clocks.
	storedLater = 10 * time.Second
	// repeatAge is the age from which an event may have been handled although its consumer does not know: well below
	// the window in which the stream drops a repeated answer.
	repeatAge = time.Minute
)

// settleLosses notices what the streams have lost since their marks were written, and publishes the visitors' messages
// of INBOUND again. It returns when NATS and the store have answered.
func (s *Service) settleLosses(ctx context.Context, r resources, marks *streammark.Keeper) error {
	losses, err := marks.Await(ctx)
	if err != nil {
		return err
	}
	for _, l := range losses {
		if l.Stream == subject.Inbound {
			if err := s.republish(ctx, r, l); err != nil {
				return err
			}
		}
		if err := marks.Settle(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// republish publishes the visitors' messages that are in the store and that INBOUND has lost, with their ids: then the
// bot answers them. The bot ignores messages older than the window, so they are left out.
func (s *Service) republish(ctx context.Context, r resources, l bus.LostTail) error {
	since := l.Noticed.Add(-chat.Window)
	last, err := r.bus.Get(ctx, subject.Inbound, l.From-1)
	if err != nil && !apperr.Is(err, apperr.NotFound) {
		return err
	}
	if err == nil && last.Time.After(since) {
		since = last.Time
	}
	lost := lostMessages{store: r.store, since: since.Add(-storedLater), now: l.Noticed}
	lost.present, err = presentMessages(ctx, r.bus, lost.since)
	if err != nil {
		return err
	}
	published := 0
	err = lost.each(ctx, func(e event.VisitorMessageAccepted) error {
		published++
		return r.bus.Publish(ctx, event.Derived(), e)
	})
	if err != nil {
		return err
	}
	s.cfg.Logger.WarnContext(
		ctx, "published visitors' messages again that INBOUND had lost",
		"messages", published, "since", since, "complete", published < maxRepublished,
	)
	return nil
}

// presentMessages returns the ids of the visitors' messages that INBOUND has stored since a time.
func presentMessages(ctx context.Context, b *bus.Bus, since time.Time) (map[string]bool, error) {
	present := make(map[string]bool)
	stored := bus.Range{
		Stream: subject.Inbound, Filters: []string{subject.AllVisitorMessages}, Since: since, HeadersOnly: true,
	}
	for d, err := range b.Read(ctx, stored) {
		if err != nil {
			return nil, err
		}
		present[d.EventID()] = true
	}
	return present, nil
}

// lostMessages finds the visitors' messages in the store that INBOUND does not have.
type lostMessages struct {
	store   store.Store
	since   time.Time
	now     time.Time
	present map[string]bool // ids of the messages that INBOUND has
	found   int
}

// each calls publish for at most maxRepublished messages, those of a chat from the oldest.
func (l *lostMessages) each(ctx context.Context, publish func(event.VisitorMessageAccepted) error) error {
	for after := ""; ; {
		companies, err := l.store.Companies(ctx, store.Page{After: after, Limit: store.MaxPage})
		if err != nil {
			return err
		}
		for _, c := range companies {
			if err := l.ofCompany(ctx, c.ID, publish); err != nil {
				return err
			}
		}
		if len(companies) < store.MaxPage {
			return nil
		}
		after = companies[len(companies)-1].ID
	}
}

// ofCompany reads the chats of a company, the last activity first.
func (l *lostMessages) ofCompany(
	ctx context.Context, companyID string, publish func(event.VisitorMessageAccepted) error,
) error {
	var after *store.InboxCursor
	for {
		filter := store.InboxFilter{CompanyID: companyID, Now: l.now}
		entries, next, err := l.store.Inbox(ctx, filter, store.InboxPage{After: after})
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if entry.Chat.WindowStartedAt.Before(l.since) || l.found >= maxRepublished {
				return nil
			}
			if err := l.ofChat(ctx, entry.Chat, publish); err != nil {
				return err
			}
		}
		if next == nil {
			return nil
		}
		after = next
	}
}

// ofChat publishes the lost messages among the last ones of a chat, at most a page.
func (l *lostMessages) ofChat(
	ctx context.Context, c chat.Chat, publish func(event.VisitorMessageAccepted) error,
) error {
	messages, _, err := l.store.History(ctx, c.ID, store.HistoryQuery{})
	if err != nil {
		return err
	}
	for _, m := range messages {
		if m.IsFromSupport || m.CreatedAt.Before(l.since) || l.present[m.ID] || l.found >= maxRepublished {
			continue
		}
		l.found++
		err := publish(event.VisitorMessageAccepted{
			CompanyID: c.CompanyID, AppID: c.AppID, ChatUserID: c.ChatUserID, ChatID: c.ID, Message: m,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// messages looks up stored messages.
type messages interface {
	FindMessage(ctx context.Context, id string) (chatID string, m chat.Message, err error)
}

// repeats finds events that were handled although their consumers do not know it.
type repeats struct {
	stored   messages
	lastLoss func() time.Time // when a stream was last noticed to have lost messages; zero: not in the last day
	now      func() time.Time

	// found is called with the message of an event that is skipped, and the event's time; nil: nothing is left to do.
	found func(ctx context.Context, chatID string, m chat.Message, at time.Time) error
}

// lastLoss returns the [repeats] function of a bus. [streammark.Keeper.Await] has read the records before a consumer
// starts, and a later loss ends the process.
func lastLoss(b *bus.Bus) func() time.Time {
	return func() time.Time {
		var last time.Time
		for _, l := range b.LostTails() {
			if l.Noticed.After(last) {
				last = l.Noticed
			}
		}
		return last
	}
}

// before makes a handler skip an event whose effect, the message with the id that answerID derives from the event's, is
// already stored. It looks only for the first delivery of an event that is older than [repeatAge] or from before the
// last loss, after which events are published again: an event that its consumer retries has failed before it was
// handled, and one that an operator replays was given up.
func (r repeats) before(answerID func(eventID string) string, h handler) handler {
	return func(ctx context.Context, d bus.Delivery) error {
		_, replayed := d.Header[bus.HeaderReplayFor]
		if d.Attempt > 1 || replayed || !r.possible(d.EventTime()) {
			return h(ctx, d)
		}
		chatID, m, err := r.stored.FindMessage(ctx, answerID(d.EventID()))
		if apperr.Is(err, apperr.NotFound) {
			return h(ctx, d)
		}
		if err != nil || r.found == nil {
			return err
		}
		return r.found(ctx, chatID, m, d.EventTime())
	}
}

// possible reports whether an event of that time may have been handled before.
func (r repeats) possible(at time.Time) bool {
	return r.now().Sub(at) >= repeatAge || at.Before(r.lastLoss())
}

// sameID is the message that the dispatcher publishes for an event.
func sameID(eventID string) string { return eventID }

// firstAnswer is the first message with which the bot answers a visitor's.
func firstAnswer(eventID string) string { return chat.AnswerID(eventID, 0) }
