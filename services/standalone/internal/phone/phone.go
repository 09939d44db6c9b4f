// Package phone is the phone of the demo: a channel connector that delivers the messages of the demo company to a page,
// instead of to a network of phones. phone.go takes the messages and reports their status, as docs/channel-connector.md
// asks of any connector; page.go shows them.
package phone

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/service"
	"github.com/parley-chat/parley/proto-events/subject"
)

// shown bounds the messages that the page has, the newest ones. They are gone when the process ends.
const shown = 200

// Phone shows the messages of one company to phone numbers.
type Phone struct {
	base      service.Base
	companyID string

	ended   chan struct{} // closed when Run returns
	hasRead chan struct{} // gets a value when toReport is no longer empty

	mu       sync.Mutex
	taken    int           // messages since the start
	messages []message     // oldest first
	changed  chan struct{} // closed with the next message
	toReport []message     // that were read
}

// message is a message as the page shows it.
type message struct {
	ID     string    `json:"id"`
	Number int       `json:"number"` // since the start, from 1 on
	Phone  string    `json:"phone"`
	Name   string    `json:"name,omitempty"` // of the recipient
	Sender string    `json:"sender"`
	Text   string    `json:"text"`
	At     time.Time `json:"at"`

	chatID string
	isRead bool
}

// New returns the phone of a company's messages. Run may be called once.
func New(base service.Base, companyID string) *Phone {
	return &Phone{
		base: base, companyID: companyID,
		ended: make(chan struct{}), hasRead: make(chan struct{}, 1), changed: make(chan struct{}),
	}
}

// Run takes messages until ctx is done.
func (p *Phone) Run(ctx context.Context) error {
	defer close(p.ended)
	return service.Run(ctx, "demo-phone", p.base, p.open)
}

func (p *Phone) open(process *service.Process) (service.Work, error) {
	b, err := process.Bus(nil, subject.Outbound, subject.Status)
	if err != nil {
		return nil, err
	}
	now := process.Now()
	process.Background(func(ctx context.Context) error { p.reportReads(ctx, b, now); return nil })
	return func(ctx context.Context) error {
		return b.Consume(ctx, bus.Consumer{
			Stream:  subject.Outbound,
			Durable: "demo-phone",
			Filters: []string{subject.OutboundMessage(string(chat.ChannelPhone), p.companyID)},
			Order:   bus.ByStream,
			Handle: func(ctx context.Context, d bus.Delivery) error {
				e, err := event.DecodeStored[event.OutboundMessage](d.Subject, d.Data, d.Time)
				if err != nil {
					return fmt.Errorf("reading a message: %w", err)
				}
				return p.deliver(ctx, b, e, now())
			},
		})
	}, nil
}

// deliver shows a message and reports that it has arrived.
func (p *Phone) deliver(ctx context.Context, to event.Publisher, e event.OutboundMessage, at time.Time) error {
	m := message{
		ID:     e.Message.ID,
		Phone:  e.Recipient.Phone,
		Name:   e.Recipient.Name,
		Sender: e.Message.NameOfSender,
		Text:   chat.TextOf(e.Message.Data),
		At:     e.Message.CreatedAt,
		chatID: e.ChatID,
	}
	if err := p.report(ctx, to, m, chat.StatusDelivered, at); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken++
	m.Number = p.taken
	p.messages = append(p.messages, m)
	p.messages = p.messages[max(0, len(p.messages)-shown):]
	close(p.changed)
	p.changed = make(chan struct{})
	return nil
}

// show returns the messages from a number on, which count as read then, and what is closed when there are more.
func (p *Phone) show(number int) ([]message, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	messages := []message{}
	for i := range p.messages {
		m := &p.messages[i]
		if m.Number < number {
			continue
		}
		if !m.isRead {
			m.isRead = true
			p.toReport = append(p.toReport, *m)
		}
		messages = append(messages, *m)
	}
	if len(p.toReport) > 0 {
		select {
		case p.hasRead <- struct{}{}:
		default: // it is noted already
		}
	}
	return messages, p.changed
}

// reportReads reports what the page has shown, until ctx is done.
func (p *Phone) reportReads(ctx context.Context, to event.Publisher, now func() time.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.hasRead:
		}
		p.mu.Lock()
		messages := p.toReport
		p.toReport = nil
		p.mu.Unlock()
		for _, m := range messages {
			if err := p.report(ctx, to, m, chat.StatusRead, now()); err != nil {
				p.base.Logger.WarnContext(ctx, "reporting that a message was read", "messageId", m.ID, "error", err)
			}
		}
	}
}

func (p *Phone) report(ctx context.Context, to event.Publisher, m message, status string, at time.Time) error {
	return to.Publish(ctx, event.Derived(), event.MessageStatusChanged{
		CompanyID: p.companyID, ChatID: m.chatID, MessageID: m.ID, Status: status, At: at.UTC().Truncate(time.Millisecond),
	})
}
