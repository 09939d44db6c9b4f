package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/control"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/store"
)

// errChatClosed is returned for what needs an open chat.
var errChatClosed = apperr.AgentChatClosed.New()

// Draft is a message of an agent before it has an id, a time and a sender.
type Draft struct {
	Type chat.MessageType
	Data json.RawMessage
	// TemplateID and Values are for the type TEMPLATE, whose data follows from them.
	TemplateID string
	Values     map[string]string
}

// Check returns what is wrong with the draft.
func (d Draft) Check() error {
	var f apperr.Fields
	switch {
	case d.Type == chat.Template:
		if _, ok := chat.ParseID(d.TemplateID); !ok {
			f.Add("templateId", "must be a UUID")
		}
		return f.Err()
	case !d.Type.In(chat.CompanyTypes()):
		f.Add("type", fmt.Sprintf("must be TEMPLATE or one of %v", chat.CompanyTypes()))
		return f.Err()
	}
	for _, fault := range chat.ValidateData(d.Type, d.Data) {
		f.Add(fault.Field, fault.Message)
	}
	return f.Err()
}

// Reply sends an agent's message into a chat, and takes the chat over if no agent has it. The message has the id and time of identity; a
// repeated identity sends nothing twice. Errors: NotFound, Conflict with the reason CHAT_CLOSED or TEMPLATE_NOT_APPROVED, Invalid
// with the reason CHAT_TOO_OLD for anything but a template outside of the window.
func (s *Service) Reply(ctx context.Context, by account.User, chatID string, d Draft, identity chat.MessageIdentity) (chat.Message, error) {
	if identity.Again {
		if at, m, err := s.store.FindMessage(ctx, identity.ID); err == nil && at == chatID {
			return m, nil
		} else if err != nil && !apperr.Is(err, apperr.NotFound) {
			return m, err
		}
	}
	c, err := s.store.Chat(ctx, chatID)
	if err != nil {
		return chat.Message{}, err
	}
	now := s.now()
	switch {
	case !c.Open(now):
		return chat.Message{}, errChatClosed
	case !c.InWindow(now) && d.Type != chat.Template:
		return chat.Message{}, apperr.ChatTooOld.New()
	}
	if d, err = s.fill(ctx, c, d); err != nil {
		return chat.Message{}, err
	}
	if !c.Control.Agent || c.Control.Waiting() {
		if c, err = s.TakeOver(ctx, by, c); err != nil {
			return chat.Message{}, err
		}
	}
	m := chat.Message{ID: identity.ID, CreatedAt: identity.At, Type: d.Type, Data: d.Data, NameOfSender: by.DisplayName(), IsFromSupport: true}
	return m, s.Send(ctx, c, m, true)
}

// fill makes the data of a template's message.
func (s *Service) fill(ctx context.Context, c chat.Chat, d Draft) (Draft, error) {
	if d.Type != chat.Template {
		return d, nil
	}
	id, _ := chat.ParseID(d.TemplateID)
	t, err := s.store.Template(ctx, id)
	switch {
	case err == nil && t.CompanyID != c.CompanyID:
		return d, apperr.TemplateNotFound.New()
	case err != nil:
		return d, err
	case t.Status != chat.TemplateApproved:
		return d, apperr.UnapprovedTemplate.New()
	}
	v, err := s.store.Visitor(ctx, c.ChatUserID)
	if err != nil && !apperr.Is(err, apperr.NotFound) {
		return d, err
	}
	username := ""
	if v.FirstName != "" || v.LastName != "" {
		username = v.Name()
	}
	filled, faults := t.Fill(username, d.Values)
	var f apperr.Fields
	for _, fault := range faults {
		f.Add(fault.Field, fault.Message)
	}
	if err := f.Err(); err != nil {
		return d, err
	}
	d.Data, err = json.Marshal(map[string]any{"templateId": t.ID, "name": t.Name, "text": t.Render(filled), "parameters": filled})
	return d, err
}

// Send publishes a message for the visitor on the channel of the chat and writes it into the history. With a receipt the sender hears
// what becomes of it.
func (s *Service) Send(ctx context.Context, c chat.Chat, m chat.Message, receipt bool) error {
	e, err := s.addressed(ctx, c, m, receipt)
	if err != nil {
		return err
	}
	if err := s.bus.Publish(ctx, e); err != nil {
		return err
	}
	_ = s.store.AppendMessage(ctx, c.ID, m) // so that its sender sees it at once; the recorder writes what is missing
	return nil
}

// addressed is the message as the event of the chat's channel.
func (s *Service) addressed(ctx context.Context, c chat.Chat, m chat.Message, receipt bool) (event.Event, error) {
	if c.Channel == chat.ChannelWidget {
		return event.Reply{CompanyID: c.CompanyID, AppID: c.AppID, ChatUserID: c.ChatUserID, ChatID: c.ID, Message: m, Receipt: receipt}, nil
	}
	v, err := s.store.Visitor(ctx, c.ChatUserID)
	if err != nil {
		return nil, err
	}
	recipient := event.Recipient{Phone: v.Phone}
	if v.FirstName != "" || v.LastName != "" {
		recipient.Name = v.Name()
	}
	return event.OutboundMessage{CompanyID: c.CompanyID, Channel: c.Channel, ChatID: c.ID, ChatUserID: c.ChatUserID, Recipient: recipient, Message: m}, nil
}

// TakeOver gives a chat to an agent: the bot is silent. It is assigned to the agent unless it is assigned to another one.
func (s *Service) TakeOver(ctx context.Context, by account.User, c chat.Chat) (chat.Chat, error) {
	if !c.Open(s.now()) {
		return c, errChatClosed
	}
	to := chat.Control{Agent: true, Assignee: c.Control.Assignee, Handover: c.Control.Handover}
	if to.Assignee == "" || !c.Control.Agent {
		to.Assignee = by.ID
	}
	return s.changeControl(ctx, ActorOf(by), "chat.take-over", c, to, time.Time{})
}

// HandBack gives a chat to the bot, and to no agent.
func (s *Service) HandBack(ctx context.Context, by Actor, c chat.Chat) (chat.Chat, error) {
	if !c.Open(s.now()) {
		return c, errChatClosed
	}
	return s.changeControl(ctx, by, "chat.hand-back", c, chat.Control{}, time.Time{})
}

// Assign assigns a chat to a user; an empty id removes the assignee.
func (s *Service) Assign(ctx context.Context, by Actor, c chat.Chat, userID string) (chat.Chat, error) {
	if userID != "" {
		u, err := s.store.User(ctx, userID)
		if err != nil && !apperr.Is(err, apperr.NotFound) {
			return c, err
		}
		if err != nil || u.CompanyID != "" && u.CompanyID != c.CompanyID || !u.Role.May(account.Inbox) || u.Disabled {
			return c, apperr.Fields{{Name: "userId", Message: "must be a user who may use the inbox"}}.Err()
		}
	}
	return s.changeControl(ctx, by, "chat.assign", c, chat.Control{Agent: c.Control.Agent, Assignee: userID, Handover: c.Control.Handover}, time.Time{})
}

// CloseChat closes a chat for good. Companies cannot write into it any more, within a second; the visitor's next message opens another
// one.
func (s *Service) CloseChat(ctx context.Context, by Actor, c chat.Chat) (chat.Chat, error) {
	return s.changeControl(ctx, by, "chat.close", c, c.Control, s.now())
}

// changeControl publishes the change and then stores it. After a crash in between the recorder stores it.
func (s *Service) changeControl(
	ctx context.Context, by Actor, action string, c chat.Chat, to chat.Control, closedAt time.Time,
) (chat.Chat, error) {
	if _, err := s.control.Apply(ctx, c, control.Change{EventID: chat.NewID(), To: to, ByUserID: by.UserID, ClosedAt: closedAt}); err != nil {
		return c, err
	}
	if !closedAt.IsZero() {
		if err := s.store.CloseChat(ctx, c.ID, closedAt); err != nil {
			return c, err
		}
	}
	if err := s.bus.Invalidate(ctx, store.CachedChat, c.ID); err != nil {
		return c, err
	}
	after, err := s.store.Chat(ctx, c.ID)
	if err != nil {
		return c, err
	}
	return after, s.audit(ctx, by, change{
		companyID: c.CompanyID, action: action, target: "chat", id: c.ID, before: s.chatFields(c), after: s.chatFields(after),
	})
}

func (s *Service) chatFields(c chat.Chat) fields {
	return fields{"control": control.Word(c.Control), "assignee": c.Control.Assignee, "status": c.Status(s.now())}
}
