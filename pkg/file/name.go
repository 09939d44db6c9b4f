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
	maxNameBytes      = 200 // file systems take 255, and something may have to be added
	maxExtensionBytes = 16
	defaultName       = "file"
)

// CleanName makes a name of any script out of what a sender calls a file, such that it can be shown to people and be the name
// of a file on any system: one line, no path, nothing invisible that changes how the rest reads (such as bidirectional
// overrides), no name that a system keeps for itself, at most 200 bytes of normalised UTF-8. A file that shows pictures or
// plays gets an extension that agrees with its content, so that the name does not promise a program.
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

// cleanRune drops what cannot be seen or means something to a system; -1 drops.
func cleanRune(r rune) rune {
	switch {
	case r == '\u200c', r == '\u200d':
		return r // joiners: Persian is misspelt without them, and many emoji fall apart
	case strings.ContainsRune(`/\:*?"<>|`, r):
		return '_'
	case unicode.IsSpace(r):
		return ' '
	case r == utf8.RuneError, !unicode.IsGraphic(r):
		return -1 // controls, overrides, private use and what is no character at all
	}
	return r
}

// trim takes off what hides a file (a leading dot), what Windows drops silently (trailing dots and spaces) and joiners that join
// nothing.
func trim(name string) string { return strings.Trim(name, ". \u200c\u200d") }

// reserved reports whether Windows takes the name for a device, with whatever extension.
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

// withExtension bounds the name's length without losing its extension, and makes the extension agree with the content where
// that is certain.
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

// extensionOf returns what a system would take for the extension; a long one, or one with spaces, is just a part of the name.
func extensionOf(name string) string {
	extension := strings.TrimPrefix(path.Ext(name), ".")
	if len(extension) > maxExtensionBytes || strings.ContainsRune(extension, ' ') {
		return ""
	}
	return extension
}

// ExtensionOf returns the extension of a clean name in lower case, without its dot; empty where it has none.
func ExtensionOf(name string) string { return strings.ToLower(extensionOf(name)) }

// cut shortens s to at most limit bytes without cutting through a character.
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
