// Package form reads a form with a file (RFC 7578) as it arrives, at the rate that its sender must keep, and
// paces answers in the same way. The APIs and the panel share it, so that their uploads have the same bounds.
package form

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/attachment"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/file"
	"github.com/parley-chat/parley/pkg/slot"
)

// maxAround bounds the bytes of a form apart from its file: boundaries, headers, the caption.
const maxAround = 256 << 10

const mediaTypeForm = "multipart/form-data"

// Limits bounds a form.
type Limits struct {
	MaxBytes int64         // of the file
	Timeout  time.Duration // of the upload
}

// Form reads a multipart/form-data body (RFC 7578) as it arrives, once, from start to end: one part named
// file, which is a file, and optionally one named caption, before or after it. Other parts are ignored. It
// implements conversation.Form.
type Form struct {
	parts   *multipart.Reader
	body    *body
	maxFile int64
	maxSize int64 // of the file, as far as known from the headers

	caption  string
	captions int
}

// Open rejects what it can without reading the body.
func Open(c echo.Context, limits Limits, held *slot.Slot) (*Form, error) {
	req := c.Request()
	mediaType, params, err := mime.ParseMediaType(req.Header.Get(echo.HeaderContentType))
	coding := req.Header.Get(echo.HeaderContentEncoding)
	switch {
	case err == nil && mediaType != mediaTypeForm || len(req.Header.Values(echo.HeaderContentType)) > 1:
		return nil, apperr.UnsupportedMediaType.WithMessage(
			"Content-Type must be application/json or multipart/form-data.",
		)
	case coding != "" && !strings.EqualFold(coding, "identity"):
		return nil, apperr.UnsupportedMediaType.WithMessage("Content-Encoding is not supported.")
	case err != nil || params["boundary"] == "":
		return nil, malformedForm(errors.New("no boundary"))
	case req.ContentLength > limits.MaxBytes+maxAround:
		return nil, fileTooLarge(limits.MaxBytes)
	}
	f := newForm(req.Body, NewPace(c, limits.Timeout, held, ForReading), params["boundary"], limits.MaxBytes)
	if req.ContentLength >= 0 {
		f.maxSize = min(req.ContentLength, limits.MaxBytes)
	}
	return f, nil
}

func newForm(from io.Reader, p *Pace, boundary string, maxFile int64) *Form {
	b := &body{from: from, pace: p, left: maxAround}
	return &Form{parts: multipart.NewReader(b, boundary), body: b, maxFile: maxFile, maxSize: maxFile}
}

// File implements conversation.Form.
func (f *Form) File() (attachment.Incoming, error) {
	part, err := f.untilFile()
	if err != nil {
		return attachment.Incoming{}, err
	}
	if part == nil {
		faults := f.captionFaults()
		faults.Add("file", "is required")
		return attachment.Incoming{}, faults.Err()
	}
	return attachment.Incoming{
		Name: part.FileName(), DeclaredType: part.Header.Get(echo.HeaderContentType),
		MaxSize: f.maxSize,
		Content: &content{part: part, body: f.body, limit: f.maxFile, left: f.maxFile},
	}, nil
}

// Rest implements conversation.Form.
func (f *Form) Rest() (string, error) {
	second, err := f.untilFile()
	if err != nil {
		return "", err
	}
	f.body.pace.arrived()
	faults := f.captionFaults()
	if second != nil {
		faults.Add("file", "must be sent once")
	}
	return f.caption, faults.Err()
}

// Cause returns why receiving the form failed with err. net/http cancels the request's context when reading
// the body fails, while the multipart reader still returns buffered data; so the read may have failed before
// the cancellation was observed.
func (f *Form) Cause(err error) error {
	if f.body.err != nil && errors.Is(err, context.Canceled) {
		return f.body.fault(err)
	}
	return err
}

// untilFile reads parts up to the next file, and returns nil at the end of the form.
func (f *Form) untilFile() (*multipart.Part, error) {
	for {
		part, err := f.parts.NextRawPart()
		if file.Ended(err) { // exactly: a truncated body has another error
			return nil, nil
		}
		if err != nil {
			return nil, f.body.fault(err)
		}
		switch part.FormName() {
		case "file":
			return part, checkFilePart(part)
		case "caption":
			if err := f.readCaption(part); err != nil {
				return nil, err
			}
		}
	}
}

// checkFilePart rejects a plain field with the name file, a common mistake of pages.
func checkFilePart(part *multipart.Part) error {
	if part.FileName() == "" && part.Header.Get(echo.HeaderContentType) == "" {
		return apperr.Fields{{Name: "file", Message: "must be a file"}}.Err()
	}
	return nil
}

// readCaption reads at most one byte more than a caption may have.
func (f *Form) readCaption(part *multipart.Part) error {
	text, err := io.ReadAll(io.LimitReader(part, chat.MaxTextLength*utf8.UTFMax+1))
	if err != nil {
		return f.body.fault(err)
	}
	f.captions++
	f.caption = string(text)
	return nil
}

func (f *Form) captionFaults() apperr.Fields {
	var faults apperr.Fields
	switch {
	case f.captions > 1:
		faults.Add("caption", "must be sent once")
	case utf8.RuneCountInString(f.caption) > chat.MaxTextLength:
		faults.Add("caption", "must have at most "+strconv.Itoa(chat.MaxTextLength)+" characters")
	case !utf8.ValidString(f.caption):
		faults.Add("caption", "must be UTF-8")
	}
	return faults
}

// content is the file's part, up to the limit.
type content struct {
	part  *multipart.Part
	body  *body
	limit int64
	left  int64
}

// Read implements [io.Reader]. Its errors are coded.
func (c *content) Read(p []byte) (int, error) {
	n, err := c.part.Read(p)
	c.left -= int64(n)
	c.body.left += int64(n) // the file does not count as data around it
	switch {
	case c.left < 0:
		return 0, fileTooLarge(c.limit)
	case err != nil && !file.Ended(err):
		return n, c.body.fault(err)
	}
	return n, err
}

// body reads the form's bytes. It enforces the minimum rate and the limit of data around the file.
type body struct {
	from io.Reader
	pace *Pace
	left int64 // bytes left for data around the file
	err  error // why reading has failed, which the multipart reader hides
}

var errTooMuchAround = errors.New("too much around the file")

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	if b.left < 0 {
		b.err = errTooMuchAround
		return 0, b.err
	}
	b.pace.await()
	n, err := b.from.Read(p)
	b.pace.moved(n)
	b.left -= int64(n)
	if err != nil && !file.Ended(err) {
		b.err = err
	}
	return n, err
}

// fault returns the error of a form that cannot be read further.
func (b *body) fault(err error) error {
	switch {
	case errors.Is(b.err, errTooMuchAround):
		return apperr.PayloadTooLarge.WithMessage(
			fmt.Sprintf("The form must have at most %d bytes beside its file.", maxAround),
		)
	case errors.Is(b.err, os.ErrDeadlineExceeded):
		return apperr.RequestTimeout.Wrap(err)
	case b.err != nil:
		return apperr.BadRequest.WithMessage("Request body could not be read.").Wrap(b.err)
	}
	return malformedForm(err)
}

func malformedForm(cause error) error {
	return apperr.MalformedMultipart.Wrap(cause)
}

func fileTooLarge(limit int64) error {
	return apperr.PayloadTooLarge.WithMessage(fmt.Sprintf("File must not be larger than %d bytes.", limit))
}
