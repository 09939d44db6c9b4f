package http

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
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/file"
	"github.com/parley-chat/parley/services/widget-api/internal/attachment"
)

// maxAround bounds the bytes of a form apart from its file: boundaries, headers, the caption.
const maxAround = 256 << 10

const mediaTypeForm = "multipart/form-data"

// Uploads bounds the files that visitors may send.
type Uploads struct {
	MaxBytes  int64 // of a file
	MaxAtOnce int   // uploads

	MaxOfVisitor, MaxOfAddress, MaxOfApplication int // shares of these; zero: unlimited

	Timeout time.Duration // of one upload
}

// form reads a multipart/form-data body (RFC 7578) as it arrives, once, from start to end: one part named file, which is a file,
// and optionally one named caption, before or after it. Other parts are ignored. It implements conversation.Form.
type form struct {
	parts   *multipart.Reader
	body    *body
	maxFile int64
	maxSize int64 // of the file, as far as known from the headers

	caption  string
	captions int
}

// openForm rejects what it can without reading the body.
func openForm(c echo.Context, limits Uploads) (*form, error) {
	req := c.Request()
	mediaType, params, err := mime.ParseMediaType(req.Header.Get(echo.HeaderContentType))
	coding := req.Header.Get(echo.HeaderContentEncoding)
	switch {
	case err == nil && mediaType != mediaTypeForm || len(req.Header.Values(echo.HeaderContentType)) > 1:
		return nil, apperr.UnsupportedMediaType.WithMessage("Content-Type must be application/json or multipart/form-data.")
	case coding != "" && !strings.EqualFold(coding, "identity"):
		return nil, apperr.UnsupportedMediaType.WithMessage("Content-Encoding is not supported.")
	case err != nil || params["boundary"] == "":
		return nil, malformedForm(errors.New("no boundary"))
	case req.ContentLength > limits.MaxBytes+maxAround:
		return nil, fileTooLarge(limits.MaxBytes)
	}
	f := newForm(req.Body, newPace(c, limits.Timeout), params["boundary"], limits.MaxBytes)
	if req.ContentLength >= 0 {
		f.maxSize = min(req.ContentLength, limits.MaxBytes)
	}
	return f, nil
}

func newForm(from io.Reader, p *pace, boundary string, maxFile int64) *form {
	b := &body{from: from, pace: p, left: maxAround}
	return &form{parts: multipart.NewReader(b, boundary), body: b, maxFile: maxFile, maxSize: maxFile}
}

// File implements conversation.Form.
func (f *form) File() (attachment.Incoming, error) {
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
func (f *form) Rest() (string, error) {
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

// cause returns why receiving the form failed with err. net/http cancels the request's context when reading the body fails, while
// the multipart reader still returns buffered data; so the read may have failed before the cancellation was observed.
func (f *form) cause(err error) error {
	if f.body.err != nil && errors.Is(err, context.Canceled) {
		return f.body.fault(err)
	}
	return err
}

// untilFile reads parts up to the next file, and returns nil at the end of the form.
func (f *form) untilFile() (*multipart.Part, error) {
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
func (f *form) readCaption(part *multipart.Part) error {
	text, err := io.ReadAll(io.LimitReader(part, chat.MaxTextLength*utf8.UTFMax+1))
	if err != nil {
		return f.body.fault(err)
	}
	f.captions++
	f.caption = string(text)
	return nil
}

func (f *form) captionFaults() apperr.Fields {
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
	pace *pace
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
	b.pace.beforeRead()
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
		return apperr.PayloadTooLarge.WithMessage(fmt.Sprintf("The form must have at most %d bytes beside its file.", maxAround))
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
