package form

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/file"
	"github.com/parley-chat/parley/pkg/slot"
)

func pacedContext() *Pace {
	return NewPace(echo.New().NewContext(httptest.NewRequest(http.MethodPost, "/", nil), httptest.NewRecorder()), time.Minute, new(slot.Slot), ForReading)
}

// read reads a form as conversation.Service does.
func read(f *Form) (content []byte, name, caption string, err error) {
	in, err := f.File()
	if err != nil {
		return nil, "", "", err
	}
	if content, err = io.ReadAll(in.Content); err != nil {
		return nil, "", "", err
	}
	caption, err = f.Rest()
	return content, in.Name, caption, err
}

// A form reads the same whatever the sizes of its pieces.
func TestFormInPieces(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	_ = w.WriteField("other", "ignored")
	part, _ := w.CreateFormFile("file", "a.bin")
	want := strings.Repeat("\r\n--"+w.Boundary()[:20]+"-\r\n", 500) // nearly a boundary
	_, _ = io.WriteString(part, want)
	_ = w.WriteField("caption", "c")
	_ = w.Close()
	for name, from := range map[string]io.Reader{
		"whole": bytes.NewReader(b.Bytes()), "bytes": iotest.OneByteReader(bytes.NewReader(b.Bytes())),
		"halves": iotest.HalfReader(bytes.NewReader(b.Bytes())), "end with data": iotest.DataErrReader(bytes.NewReader(b.Bytes())),
	} {
		content, fileName, caption, err := read(newForm(from, pacedContext(), w.Boundary(), 1<<20))
		if err != nil || string(content) != want || fileName != "a.bin" || caption != "c" {
			t.Errorf("%s: got %d bytes, %q, %q, %v, want the form", name, len(content), fileName, caption, err)
		}
	}
}

// Any body is read or rejected with a coded error, within the limits.
func FuzzForm(f *testing.F) {
	const boundary = "b"
	for _, seed := range []string{
		"", "--b--", "--b\r\n", "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nx\r\n--b--\r\n",
		"--b\r\nContent-Disposition: form-data; name=caption\r\n\r\n\xff\r\n--b\r\nContent-Disposition: form-data; name=file\r\nContent-Type: image/png\r\n\r\nx\r\n--b--",
		"--b\r\nContent-Disposition: form-data; name=file; filename*=UTF-8''..%2f%00\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=0\r\n--b\r\nContent-Disposition: form-data; name=file; filename=b\r\n\r\ny\r\n--b--",
		"--b\n\n\n--b--\n", "preamble\r\n--b\r\nA: " + strings.Repeat("a", 5000) + "\r\n\r\n\r\n--b--epilogue",
	} {
		f.Add([]byte(seed))
	}
	const limit = 64
	f.Fuzz(func(t *testing.T, raw []byte) {
		content, name, caption, err := read(newForm(bytes.NewReader(raw), pacedContext(), boundary, limit))
		if err != nil {
			if !apperr.Is(err, apperr.Invalid) {
				t.Fatalf("got %v, want a coded error", err)
			}
			return
		}
		if len(content) > limit || len(caption) > len(raw) || !utf8.ValidString(caption) || utf8.RuneCountInString(caption) > chat.MaxTextLength {
			t.Fatalf("got %d bytes and the caption %q, want them within the limits", len(content), caption)
		}
		if clean := file.CleanName(name, file.KindOf(content, "")); clean == "" || strings.ContainsAny(clean, "/\\\x00\r\n") {
			t.Fatalf("got the name %q of %q, want a clean one", clean, name)
		}
	})
}
