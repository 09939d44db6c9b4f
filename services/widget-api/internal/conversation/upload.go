package conversation

import (
	"context"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/attachment"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/file"
)

// Files stores the file of one upload; see [attachment.Upload].
type Files interface {
	Keep(ctx context.Context, app chat.Application, in attachment.Incoming) (file.Kept, error)
	Discard(ctx context.Context, k file.Kept)
}

// Form is an upload that is still arriving.
type Form interface {
	// File reads up to the file and returns it; its content is still arriving.
	File() (attachment.Incoming, error)
	// Rest reads the form's remainder after the file and returns the caption.
	Rest() (caption string, err error)
}

// Upload is a stored file without a message yet: [Service.Write] creates the message, [Service.Discard]
// removes the file.
type Upload struct {
	Payer   event.Account // has paid for the message
	Draft   Draft
	Caption string
	File    file.Kept

	files Files
}

// fileMessageBytes approximates the message of a file, which is charged before the file is read.
const fileMessageBytes = 3 << 10

// Receive stores the file of a form. base is the public address of this API. It looks up the visitor and
// charges the message before it reads the file. Errors: Unauthenticated if the visitor does not exist,
// NotFound if the application does not, TooMany if a budget is used up, and those of the form. After an error
// nothing is stored.
func (s *Service) Receive(
	ctx context.Context,
	who credential.VisitorClaims,
	payer event.Account,
	files Files,
	form Form,
	base string,
) (Upload, error) {
	_, app, err := s.visitorAndApplication(ctx, who)
	if err != nil {
		return Upload{}, err
	}
	payer, err = s.cfg.Publisher.Charge(ctx, payer, fileMessageBytes)
	if err != nil {
		return Upload{}, err
	}
	incoming, err := form.File()
	if err != nil {
		return Upload{}, err
	}
	kept, err := files.Keep(ctx, app, incoming)
	if err != nil {
		return Upload{}, err
	}
	u := Upload{Payer: payer, File: kept, files: files}
	u.Caption, err = form.Rest()
	if err == nil {
		u.Draft.Type = kept.Kind.Type
		u.Draft.Data, err = kept.Data(base, u.Caption)
	}
	if err == nil && len(u.Draft.Data) > chat.MaxVisitorData {
		err = apperr.Fields{{Name: "caption", Message: "must be shorter: data " + tooMuchData}}.Err()
	}
	if err != nil {
		s.Discard(ctx, u)
		return Upload{}, err
	}
	return u, nil
}

// Discard removes the file of an upload without a message.
func (s *Service) Discard(ctx context.Context, u Upload) { u.files.Discard(ctx, u.File) }
