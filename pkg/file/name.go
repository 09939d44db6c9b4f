package file

import (
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	maxNameBytes      = 200 // file systems allow 255; leaves room for additions
	maxExtensionBytes = 16
	defaultName       = "file"
)

// CleanName makes a sender's file name safe to display and to use on any system: one line, no path, no invisible
// characters that change how the rest reads (such as bidirectional overrides), no reserved device name, at most 200
// bytes of normalised UTF-8. Any script is allowed. A displayable or playable file gets an extension that matches its
// content, so that the name cannot suggest a program.
func CleanName(raw string, k Kind) string {
	raw = strings.ReplaceAll(raw, `\`, "/")
	raw = raw[strings.LastIndexByte(raw, '/')+1:]
	name := norm.NFC.String(strings.Map(cleanRune, strings.ToValidUTF8(raw, "")))
	name = trim(strings.Join(strings.Fields(name), " "))
	if name == "" {
		name = defaultName
	}
	if reserved(name) {
		name = "_" + name
	}
	return withExtension(name, k)
}

// cleanRune drops invisible characters and those with a special meaning to a system, by returning -1.
func cleanRune(r rune) rune {
	switch {
	case r == '\u200c', r == '\u200d':
		return r // joiners: Persian is misspelt without them, and many emoji need them
	case strings.ContainsRune(`/\:*?"<>|`, r):
		return '_'
	case unicode.IsSpace(r):
		return ' '
	case r == utf8.RuneError, !unicode.IsGraphic(r):
		return -1 // controls, overrides, private use and non-characters
	}
	return r
}

// trim removes leading dots, which hide a file, trailing dots and spaces, which Windows drops silently, and dangling
// joiners.
func trim(name string) string { return strings.Trim(name, ". \u200c\u200d") }

// reserved reports whether Windows treats the name as a device, with any extension.
func reserved(name string) bool {
	stem, _, _ := strings.Cut(name, ".")
	stem = strings.ToUpper(strings.TrimSpace(stem))
	switch stem {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	for _, port := range []string{"COM", "LPT"} {
		number, ok := strings.CutPrefix(stem, port)
		if ok && utf8.RuneCountInString(number) == 1 && strings.Contains("0123456789¹²³", number) {
			return true
		}
	}
	return false
}

// withExtension truncates the name but keeps its extension, and makes the extension match the content if that is
// certain.
func withExtension(name string, k Kind) string {
	extension := extensionOf(name)
	allowed, certain := harmless[k.Mime]
	switch {
	case extension == "" && k.Extension != "":
		extension = k.Extension
	case certain && !slices.Contains(allowed, strings.ToLower(extension)):
		extension = k.Extension // added to the name, which keeps its own
	default:
		name = strings.TrimSuffix(name, "."+extension)
	}
	if extension == "" {
		return cut(name, maxNameBytes)
	}
	return cut(name, maxNameBytes-len(extension)-1) + "." + extension
}

// extensionOf returns the file extension; a long one, or one with spaces, counts as part of the name.
func extensionOf(name string) string {
	extension := strings.TrimPrefix(path.Ext(name), ".")
	if len(extension) > maxExtensionBytes || strings.ContainsRune(extension, ' ') {
		return ""
	}
	return extension
}

// ExtensionOf returns the extension of a clean name in lower case, without its dot; empty if it has none.
func ExtensionOf(name string) string { return strings.ToLower(extensionOf(name)) }

// cut truncates s to at most limit bytes without splitting a character.
func cut(s string, limit int) string {
	if len(s) > limit {
		for limit > 0 && !utf8.RuneStart(s[limit]) {
			limit--
		}
		s = s[:limit]
	}
	if s = trim(s); s == "" {
		return defaultName
	}
	return s
}
