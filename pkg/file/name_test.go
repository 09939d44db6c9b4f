package file_test

import (
	"path"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/parley-chat/parley/pkg/file"
)

func TestCleanName(t *testing.T) {
	t.Parallel()
	text, image, unknown := file.KindOf([]byte("words"), ""), file.KindOf([]byte(png), ""), file.KindOf([]byte{0, 1}, "")
	document := file.KindOf([]byte(pdf), "")
	long := strings.Repeat("ب", 300)
	for _, test := range []struct {
		raw  string
		kind file.Kind
		want string
	}{
		{"report.pdf", document, "report.pdf"},
		{"گزارش ۱۴۰۵.pdf", document, "گزارش ۱۴۰۵.pdf"},
		{"می\u200cخواهم.txt", text, "می\u200cخواهم.txt"},
		{"👨\u200d👩\u200d👧.png", image, "👨\u200d👩\u200d👧.png"},
		{"nai\u0308ve.txt", text, "na\u00efve.txt"},
		{"../../etc/passwd", text, "passwd"},
		{`C:\Users\ada\a.txt`, text, "a.txt"},
		{"/", text, "file"},
		{"", text, "file"},
		{"", image, "file.png"},
		{"..", unknown, "file"},
		{".htaccess", text, "htaccess"},
		{"a\x00b\r\nSet-Cookie: x.txt", text, "ab Set-Cookie_ x.txt"},
		{"invoice\u202egnp.exe", unknown, "invoicegnp.exe"},
		{"a\u2066b\u200e\u200fc\ufeff.txt", text, "abc.txt"},
		{"a\xff\xfeb.txt", text, "ab.txt"},
		{`a"b;c'd<e>.txt`, text, "a_b;c'd_e_.txt"},
		{"CON", text, "_CON"},
		{"nul.txt", text, "_nul.txt"},
		{"com1.tar.gz", unknown, "_com1.tar.gz"},
		{"Com².txt", text, "_Com².txt"},
		{"console.txt", text, "console.txt"},
		{"a.txt. . ", text, "a.txt"},
		{"  spaces \u00a0 within\u3000it.txt ", text, "spaces within it.txt"},
		{"photo.JPG", file.KindOf([]byte(jpeg), ""), "photo.JPG"},
		{"photo.exe", image, "photo.exe.png"},
		{"photo", image, "photo.png"},
		{"voice.webm", file.KindOf([]byte(webm), "audio/webm"), "voice.webm"},
		{"Dr. No and friends", text, "Dr. No and friends"},
		{"tool.exe", file.KindOf([]byte(exe), ""), "tool.exe"},
		{long + ".pdf", document, strings.Repeat("ب", 98) + ".pdf"},
		{long, unknown, strings.Repeat("ب", 100)},
	} {
		if got := file.CleanName(test.raw, test.kind); got != test.want {
			t.Errorf("CleanName(%q): got %q, want %q", test.raw, got, test.want)
		}
	}
}

func TestExtensionOf(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"a.PDF": "pdf", "a.tar.gz": "gz", "a": "", "Dr. No": "", "a." + strings.Repeat("x", 17): ""} {
		if got := file.ExtensionOf(name); got != want {
			t.Errorf("ExtensionOf(%q): got %q, want %q", name, got, want)
		}
	}
}

func FuzzCleanName(f *testing.F) {
	for _, seed := range []string{"report.pdf", "../../x", `a\b`, "\u202ex", "CON.txt", ".", "\u200d", "a\x00", strings.Repeat("é", 300), "a.\u200c", ". .x", "_.."} {
		f.Add(seed, []byte(png))
		f.Add(seed, []byte("words"))
	}
	f.Fuzz(func(t *testing.T, raw string, head []byte) {
		k := file.KindOf(head[:min(len(head), file.SniffLength)], "")
		name := file.CleanName(raw, k)
		switch {
		case name == "" || len(name) > 200 || !utf8.ValidString(name) || !norm.NFC.IsNormalString(name):
			t.Fatalf("got %q, want 1 to 200 bytes of normalised UTF-8", name)
		case path.Base(name) != name || strings.ContainsAny(name, `/\:*?"<>|`) || strings.HasPrefix(name, "."):
			t.Fatalf("got %q, want no path and nothing hidden", name)
		case strings.HasSuffix(name, ".") || strings.TrimSpace(name) != name:
			t.Fatalf("got %q, want no end that Windows drops", name)
		case file.CleanName(name, k) != name:
			t.Fatalf("got %q, then %q, want it unchanged", name, file.CleanName(name, k))
		}
		for _, r := range name {
			if !unicode.IsGraphic(r) && r != '\u200c' && r != '\u200d' || unicode.IsSpace(r) && r != ' ' {
				t.Fatalf("got %q with %U, want only what can be seen", name, r)
			}
		}
	})
}
