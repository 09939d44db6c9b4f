package idempotency

import (
	"net/http"

	"github.com/parley-chat/parley/pkg/apperr"
)

// Header is the request header with the key. The value is an RFC 8941 string, as in the draft
// ("8e03978e-40d5-43dd-bc93-6894a57f9324", with the quotes), or the same without quotes, as most clients send
// it.
const Header = "Idempotency-Key"

// maxKey is the maximum length of a key in characters.
const maxKey = 255

// HasKey reports whether the request has the header.
func HasKey(h http.Header) bool { return len(h[Header]) != 0 }

// KeyOf returns the key of a request that has the header. It returns Invalid with the reason
// IDEMPOTENCY_KEY_INVALID for multiple keys, an empty or too long key, or a key that is neither an RFC 8941
// string nor printable ASCII without spaces, quotes, backslashes, commas and semicolons.
func KeyOf(h http.Header) (string, error) {
	values := h[Header]
	if len(values) != 1 {
		return "", apperr.IdempotencyKeyInvalid.New()
	}
	key, ok := parse(values[0])
	if !ok || key == "" || len(key) > maxKey {
		return "", apperr.IdempotencyKeyInvalid.New()
	}
	return key, nil
}

func parse(value string) (key string, ok bool) {
	if value != "" && value[0] == '"' {
		return parseQuoted(value[1:])
	}
	for i := range len(value) {
		switch c := value[i]; {
		case c <= ' ', c >= 0x7f, c == '"', c == '\\', c == ',', c == ';':
			return "", false
		}
	}
	return value, true
}

// parseQuoted parses the remainder after the opening quote (RFC 8941, 4.2.5). The draft defines no
// parameters, so nothing may follow the closing quote.
func parseQuoted(s string) (key string, ok bool) {
	unescaped := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return string(unescaped), i == len(s)-1
		case c == '\\':
			i++
			if i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", false
			}
			unescaped = append(unescaped, s[i])
		case c < ' ', c >= 0x7f:
			return "", false
		default:
			unescaped = append(unescaped, c)
		}
	}
	return "", false
}
