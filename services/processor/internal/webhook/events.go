package webhook

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/webhook"
)

// VisitorMessage delivers message.received, file.received if the message is a file, and chat.opened if it
// opened its chat. at is when the stream stored the event.
func (s *Service) VisitorMessage(ctx context.Context, e event.VisitorMessageAccepted, at time.Time) error {
	hooks, err := s.cfg.Cache.Webhooks(ctx, e.CompanyID)
	if err != nil || len(hooks.Endpoints) == 0 {
		return err
	}
	events, err := s.openedBy(ctx, e)
	if err != nil {
		return err
	}
	data := webhook.MessageReceived{
		CompanyID:  e.CompanyID,
		AppID:      e.AppID,
		ChatID:     e.ChatID,
		ChatUserID: e.ChatUserID,
		Message:    webhook.MessageOf(e.Message),
	}
	received := webhook.Event{
		Type:      webhook.TypeMessageReceived,
		Timestamp: chat.Time(e.Message.CreatedAt),
		Data:      data,
		Key:       e.Message.ID,
		ChatID:    e.ChatID,
	}
	events = append(events, received)
	if e.Message.Type.IsFile() {
		received.Type = webhook.TypeFileReceived
		received.Data = webhook.FileReceived(data)
		events = append(events, received)
	}
	return s.deliverAll(ctx, e.CompanyID, events, at)
}

// openedBy returns chat.opened if the message opened its chat: then both have the same time. The chat's id
// identifies the event, so that a registration that opened the chat at that time yields the same event.
func (s *Service) openedBy(ctx context.Context, e event.VisitorMessageAccepted) ([]webhook.Event, error) {
	c, err := s.cfg.Cache.Chat(ctx, e.ChatID)
	switch {
	case apperr.Is(err, apperr.NotFound): // erased in the meantime
		return nil, nil
	case err != nil:
		return nil, err
	case !c.CreatedAt.Equal(store.UTC(e.Message.CreatedAt)):
		return nil, nil
	}
	return []webhook.Event{opened(e.CompanyID, e.AppID, e.ChatID, e.ChatUserID, c.CreatedAt)}, nil
}

func opened(companyID, appID, chatID, chatUserID string, at time.Time) webhook.Event {
	return webhook.Event{
		Type: webhook.TypeChatOpened, Timestamp: chat.Time(at), Key: chatID, ChatID: chatID,
		Data: webhook.ChatOpened{
			CompanyID:  companyID,
			AppID:      appID,
			ChatID:     chatID,
			ChatUserID: chatUserID,
			OpenedAt:   chat.Time(at),
		},
	}
}

// deliverAll delivers the webhook events of one bus event, in order.
func (s *Service) deliverAll(ctx context.Context, companyID string, events []webhook.Event, at time.Time) error {
	for n, ev := range events {
		if err := s.deliver(ctx, companyID, ev, at.Add(time.Duration(n)), ""); err != nil {
			return err
		}
	}
	return nil
}

// VisitorRegistered delivers visitor.registered, or visitor.updated for a known visitor, and chat.opened if
// it opened a chat.
func (s *Service) VisitorRegistered(ctx context.Context, e event.VisitorRegistered, at time.Time) error {
	registered := webhook.Event{
		Type: webhook.TypeVisitorUpdated, Timestamp: chat.Time(e.RegisteredAt), Key: e.ID, ChatID: e.ChatID,
		Data: webhook.Visitor{
			CompanyID:  e.CompanyID,
			AppID:      e.AppID,
			ChatID:     e.ChatID,
			ChatUserID: e.ChatUserID,
			Profile:    webhook.Profile(e.Profile),
			VerifiedBy: e.VerifiedBy,
		},
	}
	if e.VisitorCreated {
		registered.Type = webhook.TypeVisitorRegistered
		registered.Key = e.ChatUserID
	}
	events := []webhook.Event{registered}
	if e.ChatOpened {
		events = append(events, opened(e.CompanyID, e.AppID, e.ChatID, e.ChatUserID, e.RegisteredAt))
	}
	return s.deliverAll(ctx, e.CompanyID, events, at)
}

// ControlChanged delivers chat.closed if the chat was closed.
func (s *Service) ControlChanged(ctx context.Context, e event.ChatControlChanged, at time.Time) error {
	if e.ClosedAt.IsZero() {
		return nil
	}
	return s.deliver(ctx, e.CompanyID, webhook.Event{
		Type: webhook.TypeChatClosed, Timestamp: chat.Time(e.ClosedAt), Key: e.ChatID, ChatID: e.ChatID,
		Data: webhook.ChatClosed{
			CompanyID:  e.CompanyID,
			AppID:      e.AppID,
			ChatID:     e.ChatID,
			ChatUserID: e.ChatUserID,
			ClosedAt:   chat.Time(e.ClosedAt),
			ByUserID:   e.ByUserID,
		},
	}, at, "")
}

// ChatRated delivers chat.rated. A changed rating is a new event.
func (s *Service) ChatRated(ctx context.Context, e event.ChatRated, at time.Time) error {
	return s.deliver(ctx, e.CompanyID, webhook.Event{
		Type: webhook.TypeChatRated, Timestamp: chat.Time(e.RatedAt), Key: e.EventID(), ChatID: e.ChatID,
		Data: webhook.ChatRated{
			CompanyID:  e.CompanyID,
			AppID:      e.AppID,
			ChatID:     e.ChatID,
			ChatUserID: e.ChatUserID,
			Score:      e.Score,
			Comment:    e.Comment,
			RatedAt:    chat.Time(e.RatedAt),
		},
	}, at, "")
}

// MessageStatusChanged delivers message.status. A status only goes up: after a message was reported as read, its
// delivery is not, to another device or because that report came late. The events of a message are handled in their
// order.
func (s *Service) MessageStatusChanged(ctx context.Context, e event.MessageStatusChanged, at time.Time) error {
	hooks, err := s.cfg.Cache.Webhooks(ctx, e.CompanyID)
	if err != nil || len(hooks.Endpoints) == 0 {
		return err
	}
	if e.Status == chat.StatusDelivered {
		if known, err := s.reportedRead(ctx, hooks.Endpoints, e); err != nil || known {
			return err
		}
	}
	return s.deliver(ctx, e.CompanyID, webhook.Event{
		Type: webhook.TypeMessageStatus, Timestamp: chat.Time(e.At), Key: e.EventID(), ChatID: e.ChatID,
		Data: webhook.MessageStatus{
			CompanyID:  e.CompanyID,
			ChatID:     e.ChatID,
			MessageID:  e.MessageID,
			Status:     e.Status,
			OccurredAt: chat.Time(e.At),
			Reason:     e.Reason,
		},
	}, at, "")
}

// reportedRead reports whether an endpoint has, or will get, the event that the message was read.
func (s *Service) reportedRead(
	ctx context.Context, endpoints []webhook.Endpoint, e event.MessageStatusChanged,
) (bool, error) {
	e.Status = chat.StatusRead
	read := webhook.Event{Type: webhook.TypeMessageStatus, Key: e.EventID()}
	for _, to := range endpoints {
		if !to.Wants(read.Type) {
			continue
		}
		_, err := s.cfg.Store.WebhookDelivery(ctx, webhook.DeliveryID(to.ID, read))
		if !apperr.Is(err, apperr.NotFound) {
			return err == nil, err
		}
	}
	return false, nil
}
