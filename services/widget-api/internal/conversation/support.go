package conversation

import (
	"context"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/services/widget-api/internal/registration"
)

// Controls hands a chat to the agents; see pkg/control.
type Controls interface {
	HandOver(ctx context.Context, a event.Account, c chat.Chat, h chat.Handover, eventID string) (chat.Chat, error)
	Requeue(ctx context.Context, a event.Account, c chat.Chat, h chat.Handover, eventID string) (chat.Chat, error)
}

// Visitors stores visitors' profiles.
type Visitors interface {
	Register(ctx context.Context, r store.Registration) (store.Registered, error)
}

// State is a visitor's latest chat and how the application's agents serve it.
type State struct {
	Chat         chat.Chat
	Support      chat.Support
	AgentsKnown  bool // AgentsOnline is known
	AgentsOnline bool // an agent of the company has the panel open
}

func (s *Service) stateOf(ctx context.Context, c chat.Chat, app chat.Application) State {
	online, known := s.cfg.Agents.Online(ctx, app.CompanyID)
	return State{Chat: c, Support: app.Support, AgentsKnown: known, AgentsOnline: online}
}

// State returns the visitor's latest chat, which may be closed. Errors: Unauthenticated if the visitor does
// not exist, NotFound if the visitor has had no chat or the application does not exist.
func (s *Service) State(ctx context.Context, who credential.VisitorClaims) (State, error) {
	visitor, app, err := s.visitorAndApplication(ctx, who)
	if err != nil {
		return State{}, asNoChat(err)
	}
	latest, err := s.cfg.Chats.Chats(ctx, store.ChatFilter{ChatUserID: visitor.ID}, store.Page{Limit: 1})
	if err == nil && len(latest) == 0 {
		err = apperr.ChatNotFound.New()
	}
	if err != nil {
		return State{}, err
	}
	return s.stateOf(ctx, latest[0], app), nil
}

// HandOver hands the visitor's open chat to the agents; repeating it changes nothing. Errors: Conflict with
// the reason HANDOVER_NOT_OFFERED if the application does not offer it, NotFound without an open chat,
// TooMany, and those of [Service.State].
func (s *Service) HandOver(ctx context.Context, who credential.VisitorClaims, payer event.Account) (State, error) {
	state, err := s.State(ctx, who)
	switch {
	case err != nil:
		return state, err
	case !state.Chat.Open(s.now()):
		return state, apperr.ChatNotFound.New()
	case !state.Chat.Control.Agent && !state.Support.HandoverButton:
		return state, errHandoverNotOffered
	}
	// The id derives from the state before, so that concurrent requests are one event.
	before := state.Chat.Control.ChangedAt
	id := "handover-" + state.Chat.ID + "-" + strconv.FormatInt(before.UnixMilli(), 36)
	state.Chat, err = s.cfg.Controls.HandOver(ctx, payer, state.Chat, chat.Handover{By: chat.ByVisitor}, id)
	return state, err
}

var errHandoverNotOffered = apperr.HandoverNotOffered.New()

// OfflineMessage is a message that a visitor leaves while the agents are offline.
type OfflineMessage struct {
	Text  string
	Email string // for the agents' reply
}

// Validate returns all errors of the message.
func (m OfflineMessage) Validate() apperr.Fields {
	var f apperr.Fields
	switch {
	case strings.TrimSpace(m.Text) == "":
		f.Add("message", "is required")
	case utf8.RuneCountInString(m.Text) > chat.MaxTextLength:
		f.Add("message", "must have at most "+strconv.Itoa(chat.MaxTextLength)+" characters")
	}
	switch {
	case m.Email == "":
		f.Add("email", "is required")
	case !registration.ValidEmail(m.Email):
		f.Add("email", "must be a valid e-mail address")
	}
	return f
}

// data returns the data of the text message that agents get.
func (m OfflineMessage) data() []byte {
	data := chat.AppendString([]byte(`{"text":`), m.Text)
	data = append(data, `,"email":`...)
	data = chat.AppendString(data, m.Email)
	return append(data, '}')
}

// LeaveMessage accepts a valid offline message and returns its record. It opens a chat when none is open and
// hands it to the agents before it adds the message. A visitor without an e-mail address gets this one.
// Errors: Conflict with the reason HANDOVER_NOT_OFFERED if the chat is the bot's and the application offers
// no handover, and those of [Service.Write].
func (s *Service) LeaveMessage(
	ctx context.Context,
	who credential.VisitorClaims,
	payer event.Account,
	left OfflineMessage,
	identity chat.MessageIdentity,
) (chat.Message, error) {
	visitor, app, err := s.visitorAndApplication(ctx, who)
	if err != nil {
		return chat.Message{}, err
	}
	if identity.ID == "" {
		identity = chat.NewMessageIdentity(s.cfg.Now())
	}
	m := chat.Message{
		ID:           identity.ID,
		CreatedAt:    identity.At,
		Type:         chat.Text,
		Data:         left.data(),
		NameOfSender: visitor.Name(),
	}
	chatID, sent, err := idempotency.SentBefore(ctx, s.cfg.Chats, identity)
	if err != nil {
		return chat.Message{}, err
	}
	if sent {
		return m, s.publishAndRecord(ctx, payer, visitor, chatID, m)
	}
	payer, c, err := s.chargeAndOpen(ctx, payer, visitor, app, identity.At, len(left.Text)+eventBytes)
	if err != nil {
		return chat.Message{}, err
	}
	if !c.Control.Agent && !app.Support.HandoverButton {
		return chat.Message{}, errHandoverNotOffered
	}
	if visitor.Email == "" {
		if err := s.addEmail(ctx, visitor, left.Email); err != nil {
			return chat.Message{}, err
		}
	}
	// The handover precedes the message, so that no bot answers it.
	h := chat.Handover{By: chat.ByOfflineForm, Note: left.Email}
	handoverPayer := payer
	handoverPayer.Prepaid = 0 // the handover is another event than the message, which alone is paid for
	if _, err := s.cfg.Controls.Requeue(ctx, handoverPayer, c, h, "offline-"+identity.ID); err != nil {
		return chat.Message{}, err
	}
	if err := s.publishAndRecord(ctx, payer, visitor, c.ID, m); err != nil {
		return chat.Message{}, err
	}
	return m, nil
}

// addEmail adds an e-mail address to the visitor's profile.
func (s *Service) addEmail(ctx context.Context, visitor chat.Visitor, email string) error {
	profile := chat.Visitor{ID: visitor.ID, CompanyID: visitor.CompanyID, AppID: visitor.AppID, Email: email}
	if _, err := s.cfg.Visitors.Register(ctx, store.Registration{Visitor: profile}); err != nil {
		return err
	}
	s.cfg.Changed(ctx, visitor.ID)
	return nil
}

// Rate publishes and stores the visitor's rating of a closed chat; a later rating replaces an earlier one.
// Errors: NotFound if the chat is not this visitor's, Conflict with the reason RATING_NOT_OFFERED, CHAT_OPEN,
// or RATING_ENDED after the rating period (see [chat.Chat.RateableUntil]), TooMany.
func (s *Service) Rate(
	ctx context.Context,
	who credential.VisitorClaims,
	payer event.Account,
	chatID string,
	r chat.Rating,
) (State, error) {
	visitor, app, err := s.visitorAndApplication(ctx, who)
	if err != nil {
		return State{}, asNoChat(err)
	}
	c, err := s.chatOfVisitor(ctx, visitor, chatID)
	now := s.now()
	switch {
	case err != nil:
		return State{}, err
	case !app.Support.Rating:
		return State{}, apperr.RatingNotOffered.New()
	case c.Open(now):
		return State{}, apperr.ChatOpen.New()
	case !c.Rateable(now):
		return State{}, apperr.RatingEnded.New()
	}
	// The event comes first, so that the recorder completes a rating after a crash.
	r.At = store.UTC(now)
	err = s.cfg.Publisher.Publish(ctx, payer, event.ChatRated{
		CompanyID:  c.CompanyID,
		AppID:      c.AppID,
		ChatUserID: c.ChatUserID,
		ChatID:     c.ID,
		Score:      r.Score,
		Comment:    r.Comment,
		RatedAt:    r.At,
	})
	if err != nil {
		return State{}, err
	}
	rated, err := s.cfg.Chats.ChangeChat(ctx, c.ID, store.ChatChange{Rating: r})
	if err != nil {
		return State{}, err
	}
	return s.stateOf(ctx, rated, app), nil
}
