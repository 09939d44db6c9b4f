package http

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/attachment"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/file"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/httpapi/form"
	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/services/widget-api/internal/conversation"
)

// postFile answers POST /message with a file. It rejects what it can before it reads the file.
func (a api) postFile(c echo.Context, who credential.VisitorClaims) error {
	if header := c.Request().Header; idempotency.HasKey(header) {
		if _, err := idempotency.KeyOf(header); err != nil {
			return err
		}
	}
	base, err := a.baseURL(c)
	if err != nil {
		return err
	}
	upload, err := a.Files.Begin(c.Request().Context(), attachment.Sender{
		CompanyID:  who.CompanyID,
		AppID:      who.AppID,
		ChatUserID: who.ChatUserID,
		ID:         who.ChatUserID,
		Address:    httpapi.ClientAddress(c),
	})
	if err != nil {
		return err
	}
	defer upload.End()
	f, err := form.Open(c, a.Uploads, upload.Slot())
	if err != nil {
		return err
	}
	u, err := a.Conversations.Receive(c.Request().Context(), who, payerOf(c, who), upload, f, base)
	if err != nil {
		return f.Cause(err)
	}
	return a.writeFile(c, who, u)
}

// writeFile creates the message of an upload. If none is created, for example because an earlier request with
// the same Idempotency-Key did, the upload is removed.
func (a api) writeFile(c echo.Context, who credential.VisitorClaims, u conversation.Upload) error {
	ctx := c.Request().Context()
	written := false
	defer func() {
		if !written {
			a.Conversations.Discard(ctx, u)
		}
	}()
	write := func(ctx context.Context, identity chat.MessageIdentity) (chat.Message, error) {
		m, err := a.Conversations.Write(ctx, who, u.Payer, u.Draft, identity)
		written = err == nil
		return m, err
	}
	if idempotency.HasKey(c.Request().Header) {
		return a.writeOnce(c, who, fingerprint(u), write)
	}
	m, err := write(ctx, chat.MessageIdentity{})
	if err != nil {
		return err
	}
	return c.JSONBlob(http.StatusCreated, m.AppendJSON(nil))
}

// fingerprint identifies an upload by its content, independent of the file's address.
func fingerprint(u conversation.Upload) string {
	return idempotency.Fingerprint("file", u.File.Digest, u.File.Kind.ContentType, u.File.Name, u.Caption)
}

// baseURL returns the address under which browsers reach this API: the configured one, or that of this request.
func (a api) baseURL(c echo.Context) (string, error) {
	if a.PublicURL != "" {
		return strings.TrimRight(a.PublicURL, "/"), nil
	}
	base := c.Scheme() + "://" + c.Request().Host
	if u, err := url.Parse(base); err != nil || u.Hostname() == "" {
		return "", apperr.BadRequest.WithMessage("Host must be the address of this API.")
	}
	return base, nil
}

// filePolicy applies to a file that is opened as a page: it runs no script, loads only itself, and has an
// opaque origin.
const filePolicy = "sandbox; default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'"

// maxFileAge bounds how long a browser caches a file. The content never changes, but a deleted file must not
// be cached for ever.
const maxFileAge = 24 * time.Hour

func (a api) getFile(c echo.Context) error {
	ctx := c.Request().Context()
	found, err := a.Files.Open(ctx, httpapi.ClientAddress(c), c.Param("id"), nameParam(c))
	if err != nil {
		return err
	}
	defer found.Close()
	f := found.File
	a.describe(c.Response().Header(), f)
	keepSingleRange(c.Request().Header)
	reader := file.NewReader(ctx, f, found.Content)
	defer reader.Close() //nolint:errcheck // only read
	w := &download{Response: c.Response(), pace: form.NewPace(c, 0, found.Slot, form.ForWriting)}
	http.ServeContent(w, c.Request(), "", f.StoredAt, reader)
	if w.refused != 0 {
		return w.refusal(f)
	}
	if err := reader.Err(); err != nil {
		return fmt.Errorf("sending a file: %w", err) // part of it may be sent; the Content-Length reveals that
	}
	return nil
}

// keepSingleRange drops what a server may ignore (RFC 9110, 14.2), so that the answer is the whole file: a
// range in units other than bytes, which net/http would reject, and several ranges. Each of those would read
// a chunk from the store; and net/http reads them in a goroutine of its own, which may still use the reader
// after ServeContent has returned.
func keepSingleRange(h http.Header) {
	asked := strings.Join(h.Values("Range"), ",")
	if !strings.HasPrefix(asked, "bytes=") || strings.Contains(asked, ",") {
		h.Del("Range")
	}
}

// nameParam returns the last part of the path, unescaped: the router leaves it escaped if it contains an escaped slash.
func nameParam(c echo.Context) string {
	name := c.Param("name")
	if c.Request().URL.RawPath == "" {
		return name
	}
	unescaped, err := url.PathUnescape(name)
	if err != nil {
		return ""
	}
	return unescaped
}

// describe sets the headers of a file that do not depend on the range.
func (a api) describe(h http.Header, f file.File) {
	h.Set(echo.HeaderContentType, f.ContentType)
	h.Set(echo.HeaderContentDisposition, disposition(f))
	h.Set(echo.HeaderXContentTypeOptions, "nosniff")
	h.Set(echo.HeaderContentSecurityPolicy, filePolicy)
	h.Set("Cross-Origin-Resource-Policy", "cross-origin") // pages of any site show it
	h.Set("ETag", `"`+f.Tag+`"`)
	h.Set(echo.HeaderCacheControl, fmt.Sprintf("private, max-age=%d, immutable", int(a.lifetime(f)/time.Second)))
}

// lifetime returns how long a browser may cache the file: at most until it expires.
func (a api) lifetime(f file.File) time.Duration {
	expires := file.ExpiryOf(f.ID)
	if expires.IsZero() {
		return maxFileAge
	}
	return max(0, min(maxFileAge, expires.Sub(a.Now())))
}

// disposition returns the Content-Disposition of a file (RFC 6266): whether a browser may display it, and its
// name, with an ASCII fallback for clients without RFC 8187.
func disposition(f file.File) string {
	kind := "attachment"
	if file.KindOfStored(f.ContentType).Inline() {
		kind = "inline"
	}
	plain := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || strings.ContainsRune(`"\%`, r) {
			return '_'
		}
		return r
	}, f.Name)
	if plain == f.Name {
		return kind + `; filename="` + plain + `"`
	}
	return kind + `; filename="` + plain + `"; filename*=UTF-8''` + escapeExtended(f.Name)
}

// escapeExtended escapes all but the attr-chars of RFC 8187.
func escapeExtended(s string) string {
	const attrChars = "!#$&+-.^_`|~"
	var b strings.Builder
	for _, c := range []byte(s) {
		isAlphanumeric := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if isAlphanumeric || strings.IndexByte(attrChars, c) >= 0 {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

// download is the ResponseWriter of a file. It intercepts errors that net/http would write, so that they get the
// common error body, and enforces a minimum rate of the client.
type download struct {
	*echo.Response
	pace    *form.Pace
	refused int // status of a rejected request; 0: none
}

// WriteHeader implements [http.ResponseWriter].
func (d *download) WriteHeader(status int) {
	if status >= http.StatusBadRequest {
		d.refused = status
		return
	}
	d.Response.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (d *download) Write(p []byte) (int, error) {
	if d.refused != 0 {
		return len(p), nil
	}
	return d.pace.Write(d.Response, p)
}

// refusal returns the error of a rejected request.
func (d *download) refusal(f file.File) error {
	h := d.Header()
	for _, name := range []string{
		echo.HeaderContentType,
		echo.HeaderContentDisposition,
		echo.HeaderContentSecurityPolicy,
		echo.HeaderCacheControl,
		echo.HeaderLastModified,
		"ETag",
	} {
		h.Del(name) // headers of the file
	}
	if d.refused == http.StatusRequestedRangeNotSatisfiable {
		// net/http sets it only for ranges that it understands.
		h.Set("Content-Range", fmt.Sprintf("bytes */%d", f.Size))
		return apperr.RangeNotSatisfiable.New()
	}
	if d.refused == http.StatusPreconditionFailed {
		return apperr.PreconditionFailed.New()
	}
	return fmt.Errorf("serving a file: unexpected status %d", d.refused)
}

// isMultipart reports whether the request has a multipart body of any kind.
func isMultipart(c echo.Context) bool {
	contentType := c.Request().Header.Get(echo.HeaderContentType)
	mediaType, _, _ := mime.ParseMediaType(contentType) // form.Open reports a malformed parameter
	return strings.HasPrefix(mediaType, "multipart/")
}
