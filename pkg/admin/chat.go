package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/control"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/store"
)

// errChatClosed is returned by operations that require an open chat.
var errChatClosed = apperr.AgentChatClosed.New()

// Draft is an agent's message without an id, a time and a sender.
type Draft struct {
	Type chat.MessageType
	Data json.RawMessage
	// TemplateID and Values are for the type TEMPLATE; the data is rendered from them.
	TemplateID string
	Values     map[string]string
}

// Check validates the draft.
func (d Draft) Check() error {
	var f apperr.Fields
	switch {
	case d.Type == chat.Template:
		if _, ok := chat.ParseID(d.TemplateID); !ok {
			f.Add("templateId", "must be a UUID")
		}
		addFaults(&f, chat.CheckValues(d.Values))
		return f.Err()
	case !d.Type.In(chat.CompanyTypes()):
		f.Add("type", fmt.Sprintf("must be TEMPLATE or one of %v", chat.CompanyTypes()))
		return f.Err()
	}
	addFaults(&f, chat.ValidateData(d.Type, d.Data))
	return f.Err()
}

// Reply sends an agent's message into a chat, and takes the chat over if it has no agent. The message has the id and
// time of identity; repeating an identity does not send a second message. Errors: NotFound, Conflict with the reason
// CHAT_CLOSED or TEMPLATE_NOT_APPROVED, Invalid with the reason CHAT_TOO_OLD for any type except TEMPLATE outside the
// window of a phone chat.
func (s *Service) Reply(
	ctx context.Context,
	by account.User,
	chatID string,
	d Draft,
	identity chat.MessageIdentity,
) (chat.Message, error) {
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
	case c.Windowed() && !c.InWindow(now) && d.Type != chat.Template:
		return chat.Message{}, apperr.ChatTooOld.New()
	}
	d, err = s.fill(ctx, c, d)
	if err != nil {
		return chat.Message{}, err
	}
	if !c.Control.Agent || c.Control.Waiting() {
		c, err = s.TakeOver(ctx, by, c)
		if err != nil {
			return chat.Message{}, err
		}
	}
	m := chat.Message{
		ID:            identity.ID,
		CreatedAt:     identity.At,
		Type:          d.Type,
		Data:          d.Data,
		NameOfSender:  by.DisplayName(),
		IsFromSupport: true,
	}
	return s.Send(ctx, ActorOf(by), c, m, true)
}

// fill renders the data of a template message.
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
	filled, faults := t.Fill(v.GivenName(), d.Values)
	var f apperr.Fields
	addFaults(&f, faults)
	if err := f.Err(); err != nil {
		return d, err
	}
	d.Data, err = json.Marshal(
		map[string]any{"templateId": t.ID, "name": t.Name, "text": filled.Text, "parameters": filled.Values},
	)
	return d, err
}

// Send publishes a message to the visitor on the chat's channel and appends it to the history, so that the sender sees
// it there at once. The returned message has the time at which it entered the chat. If that is not known yet, only the
// recorder appends it. With receipt the sender receives delivery reports.
func (s *Service) Send(
	ctx context.Context, by Actor, c chat.Chat, m chat.Message, receipt bool,
) (chat.Message, error) {
	e, err := event.ToVisitor(ctx, s.store, c, m, receipt)
	if err != nil {
		return m, err
	}
	if err := s.bus.Publish(ctx, event.ForAgent(c.CompanyID, by.UserID), e); err != nil {
		return m, err
	}
	at, err := s.bus.StoredAt(ctx, e)
	if err != nil || at.IsZero() {
		return m, nil //nolint:nilerr // the message is accepted
	}
	m.CreatedAt = chat.EnteredAt(at)
	_ = s.store.AppendMessage(ctx, c.ID, m) // the recorder also does
	return m, nil
}

// LastMessages returns the last messages of a chat, oldest first, and the number of all messages. It returns at
// most limit messages; 0: all.
func (s *Service) LastMessages(
	ctx context.Context, chatID string, limit int,
) (last []chat.Message, count int, err error) {
	for q := (store.HistoryQuery{}); ; {
		messages, more, err := s.store.History(ctx, chatID, q)
		if err != nil {
			return nil, 0, err
		}
		count += len(messages)
		if more {
			q.Before = messages[0].ID
		}
		if limit > 0 {
			messages = messages[max(0, len(messages)-(limit-len(last))):]
		}
		last = slices.Concat(messages, last)
		if !more {
			return last, count, nil
		}
	}
}

// TakeOver hands a chat to an agent and silences the bot. The chat is assigned to the agent unless it is already
// assigned.
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

// HandBack returns a chat to the bot and removes the assignee.
func (s *Service) HandBack(ctx context.Context, by Actor, c chat.Chat) (chat.Chat, error) {
	if !c.Open(s.now()) {
		return c, errChatClosed
	}
	return s.changeControl(ctx, by, "chat.hand-back", c, chat.Control{}, time.Time{})
}

// Assign assigns a chat to a user of its company; an empty id removes the assignee. Operators, who belong to no
// company, assign only themselves: their ids follow from their addresses, so that others could find out who is one.
func (s *Service) Assign(ctx context.Context, by Actor, c chat.Chat, userID string) (chat.Chat, error) {
	if userID != "" {
		u, err := s.store.User(ctx, userID)
		if err != nil && !apperr.Is(err, apperr.NotFound) {
			return c, err
		}
		foreign := u.CompanyID != c.CompanyID && (u.CompanyID != "" || u.ID != by.UserID)
		if err != nil || foreign || !u.Role.May(account.Inbox) || u.Disabled {
			return c, apperr.Fields{{Name: "userId", Message: "must be a user who may use the inbox"}}.Err()
		}
	}
	return s.changeControl(
		ctx, by, "chat.assign", c,
		chat.Control{Agent: c.Control.Agent, Assignee: userID, Handover: c.Control.Handover}, time.Time{},
	)
}

// CloseChat closes a chat permanently. Within a second companies can no longer write into it; the visitor's next
// message opens a new chat.
func (s *Service) CloseChat(ctx context.Context, by Actor, c chat.Chat) (chat.Chat, error) {
	return s.changeControl(ctx, by, "chat.close", c, c.Control, s.now())
}

// changeControl publishes the change and then stores it. After a crash in between, the recorder stores it.
func (s *Service) changeControl(
	ctx context.Context, by Actor, action string, c chat.Chat, to chat.Control, closedAt time.Time,
) (chat.Chat, error) {
	applied := control.Change{EventID: chat.NewID(), To: to, ByUserID: by.UserID, ClosedAt: closedAt}
	if _, err := s.control.Apply(ctx, event.ForAgent(c.CompanyID, by.UserID), c, applied); err != nil {
		return c, err
	}
	if err := s.bus.RPC().Invalidate(ctx, store.CachedChat, c.ID); err != nil {
		return c, err
	}
	after, err := s.store.Chat(ctx, c.ID)
	if err != nil {
		return c, err
	}
	return after, s.audit(ctx, by, change{
		companyID: c.CompanyID,
		action:    action,
		target:    "chat",
		id:        c.ID,
		before:    s.chatFields(c),
		after:     s.chatFields(after),
	})
}

func (s *Service) chatFields(c chat.Chat) fields {
	return fields{"control": control.EventValue(c.Control), "assignee": c.Control.Assignee, "status": c.Status(s.now())}
}
