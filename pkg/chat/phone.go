package chat

// Bounds of the number of digits: the shortest numbers in use with a country code, and the maximum of ITU-T E.164.
const (
	minPhoneDigits = 7
	maxPhoneDigits = 15
)

// PhoneRule describes a phone number, for error messages and documents.
const PhoneRule = "7 to 15 digits, with an optional leading + and with spaces, dashes or parentheses between them"

// ParsePhone returns the digits of a phone number, with its leading +, if any. Spaces, dashes and parentheses between
// the digits are removed; anything else, or too few or too many digits, is rejected.
func ParsePhone(s string) (phone string, ok bool) {
	kept := make([]byte, 0, maxPhoneDigits+1)
	digits := 0
	for i := range len(s) {
		switch c := s[i]; {
		case '0' <= c && c <= '9':
			digits++
			if digits > maxPhoneDigits {
				return "", false
			}
			kept = append(kept, c)
		case c == '+' && len(kept) == 0:
			kept = append(kept, c)
		case c == ' ' || c == '-' || c == '(' || c == ')':
		default:
			return "", false
		}
	}
	return string(kept), digits >= minPhoneDigits
}
