package pdf_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-pdf/fpdf"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/pkg/pdf"
)

// written returns a PDF file with a page for each text.
func written(t testing.TB, protected bool, pages ...string) []byte {
	t.Helper()
	f := fpdf.New("P", "mm", "A4", "")
	if protected {
		f.SetProtection(fpdf.CnProtectPrint, "user", "owner")
	}
	latin := f.UnicodeTranslatorFromDescriptor("")
	f.SetFont("Helvetica", "", 12)
	for _, text := range pages {
		f.AddPage()
		f.MultiCell(0, 6, latin(text), "", "", false)
	}
	var out bytes.Buffer
	if err := f.Output(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A passage of a PDF is cited with its page.
func TestText(t *testing.T) {
	t.Parallel()
	text, err := pdf.Text(t.Context(), written(
		t, false, "Rückgabe\nÀ la carte costs 5 € * 2.\n# 1 is no head-\ning", "", "Third page, [x]\n---",
	))
	want := "# Page 1\n\nRückgabe\nÀ la carte costs 5 € \\* 2.\n\\# 1 is no heading\n\n# Page 3\n\nThird page, \\[x]\n\\---\n"
	if err != nil || text != want {
		t.Errorf("got %q, %v, want %q", text, err, want)
	}
	passages := knowledge.Cut(knowledge.Document{Title: "Menu", Format: knowledge.Markdown, Text: text})
	if len(passages) != 2 || passages[1].Heading != "Page 3" || !strings.Contains(passages[0].Text, "5 € * 2") {
		t.Errorf("got %+v, want a passage of each page with text", passages)
	}
}

// hostile is a file of some hundred bytes with huge numbers where a reader may allocate what they say.
const hostile = `%PDF-1.7
1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj
2 0 obj <</Type/Pages/Kids[3 0 R]/Count 2147483647>> endobj
3 0 obj <</Type/Page/Parent 2 0 R/MediaBox[0 0 99999999 99999999]/Contents 4 0 R>> endobj
4 0 obj <</Length 4294967295/Filter/FlateDecode/DecodeParms<</Predictor 12/Columns 2147483647/Colors 32>>>> stream
x
endstream endobj
5 0 obj <</Type/XRef/Size 2147483647/Index[0 2147483647]/W[8 8 8]/Length 4294967295>> stream
endstream endobj
xref
0 2147483647
trailer <</Size 2147483647/Root 1 0 R>>
startxref
9
%%EOF`

func TestTextRefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	whole := written(t, false, strings.Repeat("whole ", 100))
	for name, test := range map[string]struct {
		data []byte
		want []apperr.Definition
	}{
		"nothing":        {nil, []apperr.Definition{apperr.PDFUnreadable}},
		"no PDF":         {[]byte("PK\x03\x04 no PDF"), []apperr.Definition{apperr.PDFUnreadable}},
		"cut off":        {whole[:200], []apperr.Definition{apperr.PDFUnreadable}},
		"encrypted":      {written(t, true, "secret"), []apperr.Definition{apperr.PDFEncrypted}},
		"no text":        {written(t, false, "", ""), []apperr.Definition{apperr.PDFWithoutText}},
		"too many bytes": {make([]byte, pdf.MaxBytes+1), []apperr.Definition{apperr.PDFTooLarge}},
		"too many pages": {written(t, false, make([]string, 2001)...), []apperr.Definition{apperr.PDFTooLarge}},
		"huge numbers": {
			[]byte(hostile), []apperr.Definition{apperr.PDFUnreadable, apperr.PDFTooLarge, apperr.PDFWithoutText},
		},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := pdf.Text(t.Context(), test.data)
			for _, want := range test.want {
				if apperr.ReasonOf(err) == want.Reason {
					return
				}
			}
			t.Errorf("got %.100q, %v, want %v", text, err, test.want)
		})
	}
}

// A caller that leaves ends its conversion, or its wait for one.
func TestTextEndsWithItsContext(t *testing.T) {
	t.Parallel()
	long := written(t, false, make([]string, 2000)...)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	results := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := pdf.Text(ctx, long)
			results <- err
		}()
	}
	for range 2 {
		if err := <-results; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the error of the context", err)
		}
	}
}

// A conversion that takes too long is ended, and the next one runs.
func TestTextIsBoundedInTime(t *testing.T) {
	t.Parallel()
	file := written(t, false, "page")
	if _, err := pdf.TextWithin(t.Context(), file, time.Millisecond); apperr.ReasonOf(err) != apperr.PDFTooSlow.Reason {
		t.Errorf("got %v, want %s", err, apperr.PDFTooSlow.Reason)
	}
	if _, err := pdf.Text(t.Context(), file); err != nil {
		t.Errorf("afterwards: got %v, want the text", err)
	}
}

// No file breaks the process, or is an error of Parley.
func FuzzText(f *testing.F) {
	f.Add([]byte(hostile))
	f.Add(written(f, false, "page"))
	f.Fuzz(func(t *testing.T, data []byte) {
		text, err := pdf.Text(t.Context(), data)
		if err != nil && !apperr.Is(err, apperr.Invalid) {
			t.Errorf("got %v, want an error of the file", err)
		}
		if len(text) > knowledge.MaxText || err == nil && text == "" {
			t.Errorf("got a text of %d bytes", len(text))
		}
	})
}
