package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/slot"
)

// Validator is a request body that validates itself.
type Validator interface {
	// Validate returns every invalid field.
	Validate() apperr.Fields
}

// Decode decodes the JSON object in the request's body into dst, a pointer to a struct, and, if dst is a
// [Validator], validates it. Field names match exactly. Unknown members are ignored, but a body with one that
// stands for a field which it lacks, such as sendername for senderName, is invalid: the request would do
// something else than it says.
//
// Its errors are [apperr.Invalid]: an unsupported media type (415), a body over the limit (413), a body that is not
// strict JSON as in RFC 7493 (duplicate names at any depth, invalid UTF-8, trailing data; nesting or numbers that other
// JSON parsers would reject), and a VALIDATION_ERROR with every field that has a wrong type or fails validation.
//
// dst does not alias the body's memory, provided that its own UnmarshalJSON methods copy what they keep.
func Decode(c echo.Context, dst any) error {
	req := c.Request()
	if err := checkMediaType(req); err != nil {
		return err
	}
	buf := bodies.Get().(*[]byte)
	defer putBody(buf)
	if err := readBody(c, maxBodyOf(req.Context()), buf); err != nil {
		return err
	}
	if len(*buf) > smallBody {
		defer decoding(req.Context())()
	}
	return decode(*buf, dst)
}

// ReadBody reads the body into memory, which the request holds until it ends; [Decode] then reads it from there. It is
// for requests that wait for something while their client must not take part in it.
func ReadBody(c echo.Context) error {
	req := c.Request()
	if req.ContentLength == 0 {
		return nil
	}
	var body []byte
	if err := readBody(c, maxBodyOf(req.Context()), &body); err != nil {
		return err
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	req.ContentLength = int64(len(body))
	if s := scopeOf(req.Context()); s != nil {
		s.bodyRead = true
	}
	return nil
}

// ReadFile reads a body of another type than JSON, within the time of a large one. It takes no part of [Memory]: the
// caller bounds how many it reads at once.
func ReadFile(c echo.Context, mediaType string, limit int64) ([]byte, error) {
	req := c.Request()
	sent, _, err := mime.ParseMediaType(req.Header.Get(echo.HeaderContentType))
	if err != nil || sent != mediaType || req.Header.Get(echo.HeaderContentEncoding) != "" {
		return nil, apperr.UnsupportedMediaType.WithMessage("Content-Type must be " + mediaType + ".")
	}
	if req.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	if req.ContentLength != 0 {
		expectBody(c, readTimeout)
	}
	var body bytes.Buffer
	body.Grow(int(max(req.ContentLength, 0)) + bytes.MinRead) // with room for the read that finds the end
	if _, err := body.ReadFrom(http.MaxBytesReader(c.Response(), req.Body, limit)); err != nil {
		return nil, unreadable(err)
	}
	return body.Bytes(), nil
}

func decode(body []byte, dst any) error {
	if err := checkObject(body); err != nil {
		return err
	}
	var fields apperr.Fields
	if err := json.Unmarshal(body, dst, json.RejectUnknownMembers(true)); err != nil {
		if fields, err = decodeSlowly(body, dst); err != nil {
			return err
		}
	}
	if v, ok := dst.(Validator); ok {
		fields = mergeFields(fields, v.Validate())
	}
	return fields.Err()
}

// decodeSlowly decodes a body with unknown members or wrong types. The first of them has ended the fast
// decoding; this finds all, and checks the syntax of the rest.
func decodeSlowly(body []byte, dst any) (apperr.Fields, error) {
	err := json.Unmarshal(body, dst)
	_, wrongType := errors.AsType[*json.SemanticError](err)
	if wrongType {
		err = checkSyntax(body)
	}
	if err != nil {
		return nil, malformed(body, err)
	}
	fields := misnamed(body, dst)
	if wrongType {
		fields = append(fields, wrongTypes(body, dst)...)
	}
	return fields, nil
}

// mergeFields adds the validation errors of fields whose type is correct.
func mergeFields(wrongType, rules apperr.Fields) apperr.Fields {
	merged := wrongType
	for _, f := range rules {
		if !covered(wrongType, f.Name) {
			merged = append(merged, f)
		}
	}
	return merged
}

func covered(fields apperr.Fields, name string) bool {
	for _, f := range fields {
		rest, ok := strings.CutPrefix(name, f.Name)
		if ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

// bodies pools the buffers of request bodies. Large buffers are not reused.
var bodies = sync.Pool{New: func() any { b := make([]byte, 0, 1024); return &b }}

// maxKeptBody is small, so that no small body occupies a large buffer, which [Memory] would not count.
const maxKeptBody = 2 * smallBody

func putBody(buf *[]byte) {
	if cap(*buf) <= maxKeptBody {
		*buf = (*buf)[:0]
		bodies.Put(buf)
	}
}

func maxBodyOf(ctx context.Context) int64 {
	if s := scopeOf(ctx); s != nil {
		return s.maxBody
	}
	return defaultMaxBody
}

// readBody reads the body within its deadline. A body that is not small takes memory first, see [Memory].
func readBody(c echo.Context, limit int64, buf *[]byte) error {
	req := c.Request()
	if req.ContentLength > limit {
		return tooLarge(limit)
	}
	if req.ContentLength != 0 {
		expectBody(c, smallBodyTimeOf(c)) // again: the handler may have waited for a place
	}
	b, held, counted := *buf, new(slot.Slot), false
	for {
		if !counted && max(req.ContentLength, int64(len(b))) > smallBody {
			var err error
			if held, err = holdBody(c, sizeOr(req.ContentLength, limit)); err != nil {
				return err
			}
			counted = true
			expectBody(c, readTimeout)
			if req.ContentLength > 0 {
				b = slices.Grow(b, int(req.ContentLength)+1) // one more, for the read that finds the end
			}
		}
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		held.Await()
		n, err := req.Body.Read(b[len(b):min(int64(cap(b)), limit+1)])
		held.Moved(n)
		b = b[:len(b)+n]
		*buf = b
		switch {
		case int64(len(b)) > limit:
			return tooLarge(limit)
		case err == io.EOF:
			return nil
		case err != nil:
			return unreadable(err)
		}
	}
}

// sizeOr returns the Content-Length, or the limit of a body without one.
func sizeOr(length, limit int64) int64 {
	if length < 0 {
		return limit
	}
	return length
}

func unreadable(err error) error {
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge(e.Limit)
	}
	return apperr.BadRequest.WithMessage("Request body could not be read.").Wrap(err)
}

// checkObject checks for the most common faults of a body first, with specific messages.
func checkObject(body []byte) error {
	start := 0
	for start < len(body) && isSpace(body[start]) {
		start++
	}
	if start == len(body) {
		return apperr.MalformedJSON.WithMessage("Request body is empty.")
	}
	if err := scan(body); err != nil {
		return err
	}
	if body[start] == '{' {
		return nil
	}
	if err := checkSyntax(body); err != nil {
		return malformed(body, err)
	}
	return apperr.ValidationError.WithMessage("Request body must be a JSON object.")
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func checkSyntax(body []byte) error {
	var v jsontext.Value
	return json.Unmarshal(body, &v)
}

func tooLarge(limit int64) *apperr.Error {
	return apperr.PayloadTooLarge.WithMessage(fmt.Sprintf("Request body must not be larger than %d bytes.", limit))
}

// malformed describes the syntax error and its position. It repeats at most one character of the body.
func malformed(body []byte, err error) *apperr.Error {
	message := "Request body is not valid JSON."
	if s, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		location := position(body, s.ByteOffset)
		message = fmt.Sprintf("Request body is not valid JSON: %s at %s.", syntaxFault(body, s), location)
	}
	return apperr.MalformedJSON.WithMessage(message).Wrap(err)
}

func syntaxFault(body []byte, s *jsontext.SyntacticError) string {
	rest := body[min(max(s.ByteOffset, 0), int64(len(body))):]
	switch {
	case errors.Is(s.Err, jsontext.ErrDuplicateName):
		return "duplicate name"
	case errors.Is(s.Err, io.ErrUnexpectedEOF):
		return "unexpected end"
	case s.Err == nil:
		return "error"
	case bytes.HasPrefix(rest, []byte("'")):
		return "single quotes instead of double quotes"
	case bytes.HasPrefix(rest, []byte(",")) && bytes.IndexAny(bytes.TrimSpace(rest[1:]), "}]") == 0:
		return "trailing comma"
	}
	return s.Err.Error()
}

// position formats a byte offset as line and column and as an offset.
func position(body []byte, offset int64) string {
	before := body[:min(max(offset, 0), int64(len(body)))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Sprintf("line %d, column %d (byte %d)", line, column, len(before))
}
