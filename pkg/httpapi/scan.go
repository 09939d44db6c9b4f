package httpapi

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/parley-chat/parley/pkg/apperr"
)

// maxDepth limits the nesting of a body. Real messages need five levels; other parsers (protobuf's, MongoDB's,
// browsers') have limits of their own, which an accepted body must never exceed.
const maxDepth = 64

// maxPlainDigits limits the length of a number without exponent: far more than any double needs, and always in range.
const maxPlainDigits = 256

// scan rejects well-formed JSON that other parsers may not accept: deep nesting, and numbers that no double can
// represent (RFC 8259, sections 6 and 9, leave both limits to us). It examines brackets, strings and numbers only; the
// decoder reports syntax errors.
func scan(body []byte) error {
	depth := 0
	for i := 0; i < len(body); {
		switch c := body[i]; {
		case c == '"':
			i = skipString(body, i)
			continue
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return apperr.MalformedJSON.WithMessage("Request body is nested too deeply.")
			}
		case c == '}' || c == ']':
			depth--
		case c == '-' || '0' <= c && c <= '9':
			end := skipNumber(body, i)
			if !inRange(body[i:end]) {
				return apperr.MalformedJSON.WithMessage("Request body holds a number that is out of range.")
			}
			i = end
			continue
		}
		i++
	}
	return nil
}

// skipString returns the index after the string that starts at i.
func skipString(body []byte, i int) int {
	for i++; i < len(body); i++ {
		n := bytes.IndexByte(body[i:], '"')
		if n < 0 {
			return len(body)
		}
		i += n
		backslashes := 0
		for body[i-1-backslashes] == '\\' {
			backslashes++
		}
		if backslashes%2 == 0 {
			return i + 1
		}
	}
	return len(body)
}

func skipNumber(body []byte, i int) int {
	for i++; i < len(body); i++ {
		switch c := body[i]; {
		case '0' <= c && c <= '9', c == '.', c == 'e', c == 'E', c == '+', c == '-':
		default:
			return i
		}
	}
	return i
}

func inRange(number []byte) bool {
	if len(number) <= maxPlainDigits && bytes.IndexByte(number, 'e') < 0 && bytes.IndexByte(number, 'E') < 0 {
		return true
	}
	if len(number) > maxPlainDigits {
		return false
	}
	_, err := strconv.ParseFloat(string(number), 64)
	return !errors.Is(err, strconv.ErrRange) // the decoder reports invalid numbers
}
