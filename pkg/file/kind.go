package file

import (
	"mime"
	"strings"

	"github.com/gabriel-vasile/mimetype"

	"github.com/parley-chat/parley/pkg/chat"
)

// SniffLength is how many leading bytes [KindOf] examines.
const SniffLength = 3072

// Kind is the type of a file, detected from its content.
type Kind struct {
	ContentType string           // as served, such as text/plain; charset=utf-8
	Mime        string           // the same without parameters
	Type        chat.MessageType // IMAGE, VIDEO, AUDIO or FILE
	Extension   string           // the usual one without its dot; empty for ambiguous content
}

// KindOf detects the type of a file from head, the beginning of its content. Some containers hold audio or video; only
// for these the type declared by the sender decides between AUDIO and VIDEO.
func KindOf(head []byte, declared string) Kind {
	found := mimetype.Detect(head)
	k := Kind{ContentType: found.String(), Extension: strings.TrimPrefix(found.Extension(), ".")}
	k.Mime = mediaType(k.ContentType)
	if other, ok := soundOnly[k.Mime]; ok && family(mediaType(declared)) == "audio" {
		k.Mime, k.ContentType, k.Extension = other.mime, other.mime, other.extension
	}
	if k.Mime == "text/plain" || k.Mime == "application/octet-stream" {
		k.Extension = "" // the file name is more specific
	}
	k.Type = typeOf(k.Mime)
	return k
}

// soundOnly maps video containers to their audio-only types, which browsers use for voice recordings.
var soundOnly = map[string]struct{ mime, extension string }{
	"video/webm":      {"audio/webm", "weba"},
	"video/ogg":       {"audio/ogg", "oga"},
	"application/ogg": {"audio/ogg", "oga"},
	"video/mp4":       {"audio/mp4", "m4a"},
	"video/3gpp":      {"audio/3gpp", "3gp"},
	"video/3gpp2":     {"audio/3gpp2", "3g2"},
}

func typeOf(mime string) chat.MessageType {
	switch family(mime) {
	case "image":
		return chat.Image
	case "video":
		return chat.Video
	case "audio":
		return chat.Audio
	}
	return chat.File
}

// Contradicts reports whether the declared Content-Type conflicts with the content: it declares an image, audio, video
// or PDF, and the content is none. Other mismatches are ignored: browsers guess the type from the name.
func (k Kind) Contradicts(declared string) bool {
	switch promised := mediaType(declared); {
	case promised == "application/pdf":
		return k.Mime != promised
	case family(promised) == "image":
		return k.Type != chat.Image
	case family(promised) == "audio", family(promised) == "video":
		return k.Type != chat.Audio && k.Type != chat.Video && k.Mime != "application/ogg"
	}
	return false
}

// Inline reports whether a browser may display the file when its URL is opened. Types that can contain script (SVG,
// HTML, XML, PDF), and unknown types, are served as downloads.
func (k Kind) Inline() bool { _, ok := harmless[k.Mime]; return ok }

// harmless lists the types that may be displayed, with the file extensions they may have.
var harmless = map[string][]string{
	"image/png":       {"png", "apng"},
	"image/jpeg":      {"jpg", "jpeg", "jpe", "jfif", "pjpeg"},
	"image/gif":       {"gif"},
	"image/webp":      {"webp"},
	"image/avif":      {"avif"},
	"image/bmp":       {"bmp"},
	"audio/mpeg":      {"mp3", "mpga"},
	"audio/mp4":       {"m4a", "mp4"},
	"audio/x-m4a":     {"m4a"},
	"audio/aac":       {"aac"},
	"audio/ogg":       {"oga", "ogg", "opus", "spx"},
	"audio/wav":       {"wav"},
	"audio/flac":      {"flac"},
	"audio/webm":      {"weba", "webm"},
	"audio/3gpp":      {"3gp"},
	"video/mp4":       {"mp4", "m4v"},
	"video/webm":      {"webm"},
	"video/ogg":       {"ogv", "ogg"},
	"video/quicktime": {"mov", "qt"},
	"video/3gpp":      {"3gp"},
}

// KindOfStored returns the kind of a file stored with that content type.
func KindOfStored(contentType string) Kind {
	k := Kind{ContentType: contentType, Mime: mediaType(contentType)}
	k.Type = typeOf(k.Mime)
	return k
}

// mediaType returns a content type without parameters, in lower case; empty if it is invalid.
func mediaType(contentType string) string {
	parsed, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return ""
	}
	return parsed
}

func family(mediaType string) string {
	before, _, _ := strings.Cut(mediaType, "/")
	return before
}
