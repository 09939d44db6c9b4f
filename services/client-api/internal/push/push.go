// Package push sends approved templates to phone numbers.
package push

import (
	"context"
	"log/slog"
	"time"
	"unicode/utf8"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/pkg/store"
)

// Lengths in characters. The minimums come from the specification, the maximums are ours.
const (
	minSource, maxSource     = 11, 32
	minUsername, maxUsername = 3, 256
)

// mustBePhone is the complete rule for phone numbers, whichever part is violated; docs/api.md and
// openapi.json repeat it.
const mustBePhone = "must be a phone number of 11 to 32 characters: " + chat.PhoneRule

// Templates finds templates.
type Templates interface {
	Template(ctx context.Context, id string) (chat.MessageTemplate, error)
}

// Recipients finds or creates the visitor of a phone number and the visitor's open chat.
type Recipients interface {
	Register(ctx context.Context, r store.Registration) (store.Registered, error)
}

// eventBytes approximates the event of the recipient's message without its data.
const eventBytes = 512

// Request is a push request: the recipient, and the template with its values.
type Request struct {
	TemplateID string
	Source     string            // the phone number
	Username   *string           // nil: the recipient's name stays as it is
	Parameters map[string]string // values of the template's placeholders
}

func (r Request) username() string {
	if r.Username == nil {
		return ""
	}
	return *r.Username
}

// Validate returns all errors of the request.
func (r Request) Validate() apperr.Fields {
	var f apperr.Fields
	if r.TemplateID == "" {
		f.Add("templateId", "is required")
	} else if _, ok := chat.ParseID(r.TemplateID); !ok {
		f.Add("templateId", "must be a UUID")
	}
	r.validateSource(&f)
	if r.Username != nil {
		switch n := utf8.RuneCountInString(*r.Username); {
		case n < minUsername:
			f.Add("username", "must have at least 3 characters: leave out a shorter name")
		case n > maxUsername:
			f.Add("username", "must have at most 256 characters")
		}
	}
	for _, fault := range chat.CheckValues(r.Parameters) {
		f.Add(fault.Field, fault.Message)
	}
	return f
}

func (r Request) validateSource(f *apperr.Fields) {
	n := utf8.RuneCountInString(r.Source)
	if n == 0 {
		f.Add("source", "is required")
		return
	}
	if _, ok := chat.ParsePhone(r.Source); !ok || n < minSource || n > maxSource {
		f.Add("source", mustBePhone)
	}
}

// Service accepts push requests.
type Service struct {
	cfg Config
}

// Config holds the dependencies of a [Service].
type Config struct {
	Templates  Templates
	Messages   idempotency.Messages
	Recipients Recipients
	Publisher  event.MeteredPublisher
	// ReachesPhones reports whether something takes the messages of a company to phone numbers.
	ReachesPhones func(companyID string) bool
	Logger        *slog.Logger
	Now           func() time.Time
}

// New returns the service.
func New(cfg Config) *Service { return &Service{cfg: cfg} }

// Accepted is an accepted push.
type Accepted struct {
	MessageID string // of the message that the recipient gets
	ChatID    string // the recipient's chat; empty if the look-up failed, which does not stop the push
}

// recipientTimeout bounds how long the answer waits for the recipient's chat.
const recipientTimeout = 2 * time.Second

// Push accepts a valid request of a company. Errors: NotFound for a template that is unknown, another
// company's or not approved (the last with the reason TEMPLATE_NOT_APPROVED), Invalid for parameters that do
// not fit it, [apperr.ChannelNotConnected]. The message gets the identity's id and time, or new ones if the identity is zero.
//
// The company pays for the message that its recipient gets: the event of the request names a template of up
// to 4096 characters, and may be much smaller. permit allows the push; it is not asked for one that an earlier
// attempt has sent.
func (s *Service) Push(
	ctx context.Context,
	companyID string,
	r Request,
	identity chat.MessageIdentity,
	permit idempotency.Permit,
) (Accepted, error) {
	chatID, sent, err := idempotency.SentBefore(ctx, s.cfg.Messages, identity)
	if err != nil {
		return Accepted{}, err
	}
	if sent {
		return Accepted{MessageID: identity.ID, ChatID: chatID}, nil
	}
	if identity.ID == "" {
		identity = chat.NewMessageIdentity(s.cfg.Now())
	}
	template, filled, err := s.validTemplate(ctx, companyID, r)
	if err != nil {
		return Accepted{}, err
	}
	giveBack, err := permit()
	if err != nil {
		return Accepted{}, err
	}
	accepted := event.PushAccepted{
		CompanyID:  companyID,
		TemplateID: template.ID,
		MessageID:  identity.ID,
		CreatedAt:  identity.At,
		Source:     r.Source,
		Username:   r.username(),
		Parameters: r.Parameters,
	}
	if err := s.publish(ctx, accepted, len(template.Data(filled))+eventBytes); err != nil {
		giveBack()
		return Accepted{}, err
	}
	return Accepted{MessageID: accepted.MessageID, ChatID: s.openRecipientChat(ctx, accepted)}, nil
}

// publish publishes a push, for which its company pays that many bytes.
func (s *Service) publish(ctx context.Context, accepted event.PushAccepted, bytes int) error {
	payer, err := s.cfg.Publisher.Charge(ctx, event.ForCompany(accepted.CompanyID), bytes)
	if err != nil {
		return err
	}
	return s.cfg.Publisher.Publish(ctx, payer, accepted)
}

// openRecipientChat creates the recipient and opens its chat unless one is open, and returns the chat's id. The
// dispatcher does the same when it handles the event; here it happens only so that the answer can name the
// chat. In either order, both end with one visitor and one chat (see [store.PushRecipient]). The push is
// accepted even if this fails.
func (s *Service) openRecipientChat(ctx context.Context, e event.PushAccepted) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recipientTimeout)
	defer cancel()
	phone, _ := chat.ParsePhone(e.Source) // Validate has checked it
	recipient, err := s.cfg.Recipients.Register(ctx, store.PushRecipient(e.CompanyID, phone, e.Username, e.CreatedAt))
	if err != nil {
		s.cfg.Logger.WarnContext(
			ctx, "looking up the chat of a push failed, the answer omits it", "messageId", e.MessageID,
			"error", err,
		)
	}
	return recipient.Chat.ID
}

// Check validates like Push and sends nothing.
func (s *Service) Check(ctx context.Context, companyID string, r Request) error {
	_, _, err := s.validTemplate(ctx, companyID, r)
	return err
}

// validTemplate returns the template and what the parameters make of it, if they fit it.
func (s *Service) validTemplate(
	ctx context.Context,
	companyID string,
	r Request,
) (chat.MessageTemplate, chat.Filled, error) {
	template, err := s.approved(ctx, companyID, r.TemplateID)
	if err != nil {
		return template, chat.Filled{}, err
	}
	var wrong apperr.Fields
	filled, faults := template.Fill(r.username(), r.Parameters)
	for _, f := range faults {
		wrong.Add(f.Field, f.Message)
	}
	if len(wrong) == 0 && !s.cfg.ReachesPhones(companyID) {
		return template, filled, apperr.ChannelNotConnected.New()
	}
	return template, filled, wrong.Err()
}

func (s *Service) approved(ctx context.Context, companyID, templateID string) (chat.MessageTemplate, error) {
	id, ok := chat.ParseID(templateID)
	if !ok {
		return chat.MessageTemplate{}, apperr.TemplateNotFound.New()
	}
	t, err := s.cfg.Templates.Template(ctx, id)
	switch {
	case apperr.Is(err, apperr.NotFound):
		return t, apperr.TemplateNotFound.New()
	case err != nil:
		return t, err
	case t.CompanyID != companyID:
		return t, apperr.TemplateNotFound.New()
	case t.Status != chat.TemplateApproved:
		return t, apperr.TemplateNotApproved.New()
	}
	return t, nil
}
