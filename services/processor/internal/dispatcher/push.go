package dispatcher

import (
	"context"
	"fmt"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/store"
)

// Push sends a template to a phone number: it renders the template, finds or creates the recipient and their
// chat within the company, and publishes the message for the phone channel.
func (d *Dispatcher) Push(ctx context.Context, e event.PushAccepted) error {
	template, err := d.template(ctx, e)
	if err != nil {
		return err
	}
	phone, ok := chat.ParsePhone(e.Source)
	if !ok {
		return apperr.New(apperr.Invalid, "INVALID_PHONE", "The source is not a phone number")
	}
	company, err := d.recipients.Company(ctx, e.CompanyID)
	if err != nil {
		return err
	}
	m, err := templateMessage(e, template, company.Name)
	if err != nil {
		return err
	}
	recipient, err := d.recipient(ctx, e, phone)
	if err != nil {
		return err
	}
	return d.publisher.Publish(ctx, event.Derived(), event.ToConnector(recipient.Chat, recipient.Visitor, m))
}

// template looks the event's template up again: it may have been withdrawn since the acceptance.
func (d *Dispatcher) template(ctx context.Context, e event.PushAccepted) (chat.MessageTemplate, error) {
	t, err := d.directory.Template(ctx, e.TemplateID)
	switch {
	case err != nil:
		return chat.MessageTemplate{}, err
	case t.CompanyID != e.CompanyID:
		return chat.MessageTemplate{}, apperr.New(
			apperr.Invalid,
			"FOREIGN_TEMPLATE",
			"The template belongs to another company",
		)
	case t.Status != chat.TemplateApproved:
		return chat.MessageTemplate{}, apperr.New(
			apperr.Invalid,
			"TEMPLATE_NOT_APPROVED",
			"The template is not approved",
		)
	}
	return t, nil
}

// recipient finds or creates the visitor with this number and the visitor's open chat. Two concurrent pushes
// to one number end with one visitor and one chat.
func (d *Dispatcher) recipient(ctx context.Context, e event.PushAccepted, phone string) (store.Registered, error) {
	r, err := d.recipients.Register(ctx, store.PushRecipient(e.CompanyID, phone, e.Username, e.CreatedAt))
	if err != nil {
		return store.Registered{}, fmt.Errorf("finding the recipient: %w", err)
	}
	return r, nil
}

// templateMessage renders the template. It may have changed since the push was validated: a message with an
// unset placeholder is not sent.
func templateMessage(e event.PushAccepted, t chat.MessageTemplate, sender string) (chat.Message, error) {
	filled, faults := t.Fill(e.Username, e.Parameters)
	if len(faults) > 0 {
		return chat.Message{}, apperr.New(apperr.Invalid, "TEMPLATE_CHANGED",
			"The template has changed: "+faults[0].Field+" "+faults[0].Message)
	}
	return chat.Message{
		ID:            e.MessageID,
		CreatedAt:     e.CreatedAt,
		Type:          chat.Template,
		Data:          t.Data(filled),
		NameOfSender:  sender,
		IsFromSupport: true,
	}, nil
}
