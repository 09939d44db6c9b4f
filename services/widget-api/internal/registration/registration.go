// Package registration registers visitors. registration.go is the order of the steps: it stores the visitor and
// opens the chat. form.go validates the form; identity.go checks the proof of the company's server, a JWT or a
// hash, and finds whose identity the form claims.
package registration

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/services/widget-api/internal/application"
)

// Applications finds the application of a widget.
type Applications interface {
	FindWidget(ctx context.Context, id string) (chat.Application, error)
}

// Visitors stores visitors and their chats.
type Visitors interface {
	Visitor(ctx context.Context, chatUserID string) (chat.Visitor, error)
	Register(ctx context.Context, r store.Registration) (store.Registered, error)
}

// Signer signs visitors' tokens.
type Signer interface {
	Sign(claims credential.VisitorClaims) (string, error)
}

// Tokens checks visitors' tokens.
type Tokens interface {
	Verify(ctx context.Context, token string) (credential.VisitorClaims, error)
}

// Config holds the dependencies of a [Service].
type Config struct {
	Applications Applications
	Visitors     Visitors
	Publisher    event.MeteredPublisher
	Signer       Signer
	Tokens       Tokens
	Changed      func(ctx context.Context, chatUserID string) // called when a visitor's profile may have changed
	TokenTTL     time.Duration
	Now          func() time.Time
}

// registrationBytes approximates a registration's event with a profile.
const registrationBytes = 2 << 10

// Service registers visitors.
type Service struct {
	cfg   Config
	rules rulesCache
}

// New returns the service.
func New(cfg Config) *Service { return &Service{cfg: cfg} }

// Register creates or updates the visitor of a valid form, opens a chat with the application's greetings
// unless one is open, and returns a token once the event is published. The event and the greetings are
// charged after the validation and before the first write. All writes are idempotent, so a retry after an
// error completes them; only in the mode session a retry without a token may create another visitor.
//
// Errors: NotFound without such an application with a widget; Invalid with the reason ORIGIN_NOT_ALLOWED,
// MISSING_REQUIRED_FIELDS or IDENTITY_NOT_VERIFIED; TooMany if a budget is used up.
func (s *Service) Register(ctx context.Context, f Form) (token string, err error) {
	app, err := s.cfg.Applications.FindWidget(ctx, f.AppID)
	if err != nil {
		return "", err
	}
	if err := application.CheckOrigin(app, f.Origin); err != nil {
		return "", err
	}
	rules, err := s.rules.of(app)
	if err != nil {
		return "", err
	}
	// before the claims of a token fill the form: they do not count as the visitor's answers
	if names := f.missing(rules.RequiredFields); len(names) > 0 {
		return "", missingFields(names)
	}
	now := s.cfg.Now().UTC().Truncate(time.Millisecond)
	f, proved, err := f.prove(app, now)
	if err != nil {
		return "", err
	}
	greetings := greetingsOf(app, rules, f.Language, now)
	payer, err := s.charge(ctx, app, f.Address, greetings)
	if err != nil {
		return "", err
	}
	by, err := s.criteriaOf(ctx, app, f, proved)
	if err != nil {
		return "", err
	}
	// From here on, records change. The event comes last: a visitor that is stored without an event gets no token, so
	// the browser registers again, which publishes one.
	registered, err := s.cfg.Visitors.Register(ctx, store.Registration{
		Visitor: chat.Visitor{
			ID:         by.visitorID,
			CompanyID:  app.CompanyID,
			AppID:      app.ID,
			FirstName:  f.FirstName,
			LastName:   f.LastName,
			Email:      valueOf(f.Email),
			Phone:      valueOf(f.Phone),
			UserID:     valueOf(f.UserID),
			VerifiedBy: provedBy(proved),
		},
		Identities:  by.identities,
		OnlyUnowned: by.onlyUnowned,
		Chat: &store.NewChat{
			Channel:    chat.ChannelWidget,
			Now:        now,
			Greetings:  greetings,
			AgentsOnly: app.Support.AgentsOnly,
		},
	})
	if err != nil {
		return "", err
	}
	if !registered.Created { // no cache has a visitor that is new
		s.cfg.Changed(ctx, registered.Visitor.ID)
	}
	token, err = s.sign(registered.Visitor, now)
	if err != nil {
		return "", err
	}
	if err := s.publish(ctx, payer, registered, now); err != nil {
		return "", err
	}
	return token, nil
}

func greetingsOf(app chat.Application, rules chat.WidgetRules, language string, now time.Time) []chat.Message {
	var greetings []chat.Message
	for _, g := range rules.GreetingMessages {
		text := g.In(language)
		if text == "" {
			continue
		}
		greetings = append(greetings, chat.Message{
			ID:            chat.NewID(),
			CreatedAt:     now,
			Type:          chat.Text,
			Data:          append(chat.AppendString([]byte(`{"text":`), text), '}'),
			NameOfSender:  app.BotName,
			IsFromSupport: true,
		})
	}
	return greetings
}

func (s *Service) sign(v chat.Visitor, now time.Time) (string, error) {
	return s.cfg.Signer.Sign(credential.VisitorClaims{
		ChatUserID: v.ID,
		AppID:      v.AppID,
		CompanyID:  v.CompanyID,
		TokenID:    uuid.NewString(),
		IssuedAt:   credential.IssueTime(now, v.TokensValidFrom),
		ExpiresAt:  now.Add(s.cfg.TokenTTL),
	})
}

// charge charges a registration and the greetings that a new chat stores. Its visitor is not known yet.
func (s *Service) charge(
	ctx context.Context,
	app chat.Application,
	address string,
	greetings []chat.Message,
) (event.Account, error) {
	bytes := registrationBytes
	for _, g := range greetings {
		bytes += len(g.Data)
	}
	return s.cfg.Publisher.Charge(ctx, event.ForVisitor(app.CompanyID, app.ID, "", address), bytes)
}

func (s *Service) publish(ctx context.Context, payer event.Account, r store.Registered, now time.Time) error {
	v := r.Visitor
	return s.cfg.Publisher.Publish(ctx, payer, event.VisitorRegistered{
		ID:           uuid.NewString(),
		CompanyID:    v.CompanyID,
		AppID:        v.AppID,
		ChatUserID:   v.ID,
		ChatID:       r.Chat.ID,
		ChatOpened:   r.Opened,
		RegisteredAt: now,
		Profile: event.VisitorProfile{
			FirstName: v.FirstName,
			LastName:  v.LastName,
			Email:     v.Email,
			Phone:     v.Phone,
			UserID:    v.UserID,
		},
		VerifiedBy:     v.VerifiedBy,
		VisitorCreated: r.Created,
	})
}

func missingFields(names []string) error {
	var f apperr.Fields
	for _, name := range names {
		f.Add(name, "is required")
	}
	e := apperr.MissingRequiredFields.WithMessage("Missing required fields: " + strings.Join(names, ", "))
	e.Fields = f
	return e
}

func valueOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
