package file_test

import (
	"testing"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/file"
)

// Beginnings of real files.
const (
	png  = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00"
	jpeg = "\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01"
	gif  = "GIF89a\x01\x00\x01\x00"
	webp = "RIFF\x24\x00\x00\x00WEBPVP8 "
	mp4  = "\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isomiso2"
	webm = "\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\xf7\x81\x01\x42\xf2\x81\x04\x42\xf3\x81\x08\x42\x82\x84webm"
	mp3  = "ID3\x03\x00\x00\x00\x00\x0f\x76TIT2\x00\x00\x00\x06\x00\x00\x00Hello"
	wav  = "RIFF\x24\x00\x00\x00WAVEfmt "
	pdf  = "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"
	zip  = "PK\x03\x04\x14\x00\x00\x00\x08\x00"
	svg  = `<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`
	html = "<!doctype html><html><script>alert(1)</script></html>"
	exe  = "MZ\x90\x00\x03\x00\x00\x00\x04\x00\x00\x00\xff\xff"
)

func TestKinds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		head, declared  string
		kind            chat.MessageType
		mime, extension string
		inline          bool
	}{
		"png":                  {png, "image/png", chat.Image, "image/png", "png", true},
		"jpeg":                 {jpeg, "", chat.Image, "image/jpeg", "jpg", true},
		"gif":                  {gif, "text/html", chat.Image, "image/gif", "gif", true},
		"webp":                 {webp, "image/webp", chat.Image, "image/webp", "webp", true},
		"mp4":                  {mp4, "video/mp4", chat.Video, "video/mp4", "mp4", true},
		"mp4 with sound only":  {mp4, "audio/mp4", chat.Audio, "audio/mp4", "m4a", true},
		"webm":                 {webm, "", chat.Video, "video/webm", "webm", true},
		"webm, recorded voice": {webm, "audio/webm;codecs=opus", chat.Audio, "audio/webm", "weba", true},
		"a png that is heard":  {png, "audio/webm", chat.Image, "image/png", "png", true},
		"mp3":                  {mp3, "audio/mpeg", chat.Audio, "audio/mpeg", "mp3", true},
		"wav":                  {wav, "", chat.Audio, "audio/wav", "wav", true},
		"pdf":                  {pdf, "application/pdf", chat.File, "application/pdf", "pdf", false},
		"zip":                  {zip, "", chat.File, "application/zip", "zip", false},
		"svg":                  {svg, "image/svg+xml", chat.Image, "image/svg+xml", "svg", false},
		"html":                 {html, "image/png", chat.File, "text/html", "html", false},
		"exe":                  {exe, "", chat.File, "application/vnd.microsoft.portable-executable", "exe", false},
		"text":                 {"just words", "", chat.File, "text/plain", "", false},
		"anything":             {"\x00\x01\x02", "image/png", chat.File, "application/octet-stream", "", false},
	} {
		k := file.KindOf([]byte(test.head), test.declared)
		if k.Type != test.kind || k.Mime != test.mime || k.Extension != test.extension || k.Inline() != test.inline {
			t.Errorf("%s: got %+v, inline %v, want %+v", name, k, k.Inline(), test)
		}
		if stored := file.KindOfStored(k.ContentType); stored.Mime != k.Mime || stored.Type != k.Type || stored.Inline() != k.Inline() {
			t.Errorf("%s: got %+v of the stored %q, want the same as before", name, stored, k.ContentType)
		}
	}
}

func TestContradictions(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		head, declared string
		lie            bool
	}{
		{png, "image/png", false},
		{jpeg, "image/png", false}, // still an image
		{html, "image/png", true},
		{svg, "image/svg+xml", false},
		{exe, "image/jpeg", true},
		{"just words", "IMAGE/PNG", true},
		{png, "video/mp4", true},
		{mp3, "video/mp4", false},
		{webm, "audio/webm", false},
		{html, "application/pdf", true},
		{pdf, "application/pdf", false},
		{exe, "application/octet-stream", false},
		{"a,b\n1,2", "application/vnd.ms-excel", false}, // what Windows declares for a CSV file
		{html, "", false},
		{html, "nonsense", false},
	} {
		if got := file.KindOf([]byte(test.head), test.declared).Contradicts(test.declared); got != test.lie {
			t.Errorf("%.12q declared as %q: got a lie %v, want %v", test.head, test.declared, got, test.lie)
		}
	}
}
