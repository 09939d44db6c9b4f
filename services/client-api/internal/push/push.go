// Package push reaches phone numbers through approved templates.
package push

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/store"
)

// Lengths in characters. The lower ones are the specification's, the upper ones ours.
const (
	minSource, maxSource     = 11, 32
	minUsername, maxUsername = 3, 256
)

// mustBePhone is the whole rule for a phone number, whatever part of it is broken; docs/api.md and openapi.json say the same.
const mustBePhone = "must be a phone number of 11 to 32 characters: " + chat.PhoneRule

// Templates finds templates.
type Templates interface {
	Template(ctx context.Context, id string) (chat.MessageTemplate, error)
}

// Histories finds messages that have been written down.
type Histories interface {
	FindMessage(ctx context.Context, id string) (chatID string, m chat.Message, err error)
}

// Recipients finds or makes the visitor of a phone number and the visitor's open chat.
type Recipients interface {
	Register(ctx context.Context, r store.Registration) (store.Registered, error)
}

// Publisher returns after the event is stored for the processing layer.
type Publisher interface {
	Publish(ctx context.Context, e event.Event) error
}

// Order is a push: the recipient, and the template with its values.
type Order struct {
	TemplateID string
	Source     string            // the phone number
	Username   *string           // nil: the recipient's name is not set
	Parameters map[string]string // for the template's placeholders; the template says which there are
}

func (o Order) username() string {
	if o.Username == nil {
		return ""
	}
	return *o.Username
}

// Validate returns everything that is wrong with the order.
func (o Order) Validate() apperr.Fields {
	var f apperr.Fields
	if o.TemplateID == "" {
		f.Add("templateId", "is required")
	} else if _, ok := chat.ParseID(o.TemplateID); !ok {
		f.Add("templateId", "must be a UUID")
	}
	o.validateSource(&f)
	if o.Username != nil {
		switch n := utf8.RuneCountInString(*o.Username); {
		case n < minUsername:
			f.Add("username", "must have at least 3 characters")
		case n > maxUsername:
			f.Add("username", "must have at most 256 characters")
		}
	}
	o.validateParameters(&f)
	return f
}

// validateParameters looks at their size only: which there may be is not known before the template is.
func (o Order) validateParameters(f *apperr.Fields) {
	if len(o.Parameters) > chat.MaxParameters {
		f.Add("parameters", fmt.Sprintf("must have at most %d members", chat.MaxParameters))
		return
	}
	for _, name := range slices.Sorted(maps.Keys(o.Parameters)) {
		switch {
		case name == "" || utf8.RuneCountInString(name) > chat.MaxParameterNameLength:
			f.Add("parameters", fmt.Sprintf("must have names of 1 to %d characters", chat.MaxParameterNameLength))
		case utf8.RuneCountInString(o.Parameters[name]) > chat.MaxParameterLength:
			f.Add("parameters."+name, fmt.Sprintf("must have at most %d characters", chat.MaxParameterLength))
		}
	}
}

func (o Order) validateSource(f *apperr.Fields) {
	n := utf8.RuneCountInString(o.Source)
	if n == 0 {
		f.Add("source", "is required")
		return
	}
	if _, ok := chat.ParsePhone(o.Source); !ok || n < minSource || n > maxSource {
		f.Add("source", mustBePhone)
	}
}

// Service takes orders.
type Service struct {
	cfg Config
}

// Config is what a [Service] needs.
type Config struct {
	Templates  Templates
	Histories  Histories
	Recipients Recipients
	Publisher  Publisher
	Logger     *slog.Logger
	Now        func() time.Time
}

// New returns the service.
func New(cfg Config) *Service { return &Service{cfg: cfg} }

// Pushed is an order that has been accepted.
type Pushed struct {
	MessageID string // of the message that the recipient will get
	ChatID    string // the recipient's chat; empty when it could not be looked up, which keeps nothing from being sent
}

// recipientTimeout is how long the answer waits for the recipient's chat.
const recipientTimeout = 2 * time.Second

// Push accepts a valid order of a company. A template that is
// unknown, another company's or not approved is NotFound, the last with the reason TEMPLATE_NOT_APPROVED; parameters that do not fit
// it are Invalid. The message gets the identity's id and time, and new ones from the zero identity.
func (d *Service) Push(ctx context.Context, companyID string, o Order, identity chat.MessageIdentity) (Pushed, error) {
	if identity.Again {
		chatID, _, err := d.cfg.Histories.FindMessage(ctx, identity.ID)
		if !apperr.Is(err, apperr.NotFound) {
			return Pushed{MessageID: identity.ID, ChatID: chatID}, err
		}
	}
	if identity.ID == "" {
		identity = chat.NewMessageIdentity(d.cfg.Now())
	}
	template, err := d.fitting(ctx, companyID, o)
	if err != nil {
		return Pushed{}, err
	}
	accepted := event.PushAccepted{
		CompanyID:  companyID,
		TemplateID: template.ID,
		MessageID:  identity.ID,
		CreatedAt:  identity.At,
		Source:     o.Source,
		Username:   o.username(),
		Parameters: o.Parameters,
	}
	if err := d.cfg.Publisher.Publish(ctx, accepted); err != nil {
		return Pushed{}, err
	}
	return Pushed{MessageID: accepted.MessageID, ChatID: d.chatOf(ctx, accepted)}, nil
}

// chatOf opens the recipient's chat unless one is open: what the dispatcher does when it comes to the event. Both end with one
// visitor and one chat, in either order (see [store.PushRecipient]). The push is accepted even if this fails.
func (d *Service) chatOf(ctx context.Context, e event.PushAccepted) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recipientTimeout)
	defer cancel()
	phone, _ := chat.ParsePhone(e.Source) // it is one: Validate has seen to that
	r, err := d.cfg.Recipients.Register(ctx, store.PushRecipient(e.CompanyID, phone, e.Username, e.CreatedAt))
	if err != nil {
		d.cfg.Logger.WarnContext(ctx, "the answer to a push lacks the chat", "messageId", e.MessageID, "error", err)
	}
	return r.Chat.ID
}

// Check says what Push would, and sends nothing.
func (d *Service) Check(ctx context.Context, companyID string, o Order) error {
	_, err := d.fitting(ctx, companyID, o)
	return err
}

// fitting returns the order's template if the order's parameters are what it asks for.
func (d *Service) fitting(ctx context.Context, companyID string, o Order) (chat.MessageTemplate, error) {
	template, err := d.approved(ctx, companyID, o.TemplateID)
	if err != nil {
		return template, err
	}
	var wrong apperr.Fields
	_, faults := template.Fill(o.username(), o.Parameters)
	for _, f := range faults {
		wrong.Add(f.Field, f.Message)
	}
	return template, wrong.Err()
}

func (d *Service) approved(ctx context.Context, companyID, templateID string) (chat.MessageTemplate, error) {
	id, ok := chat.ParseID(templateID)
	if !ok {
		return chat.MessageTemplate{}, apperr.TemplateNotFound.New()
	}
	t, err := d.cfg.Templates.Template(ctx, id)
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
