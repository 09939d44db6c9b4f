package chat_test

import (
	"strings"
	"testing"

	"github.com/parley-chat/parley/pkg/chat"
)

// A parsed phone number consists of the input's digits and parses to itself.
func FuzzParsePhone(f *testing.F) {
	for _, seed := range []string{"+989121234567", "(0) 912-123-45-67", "+ 49 170", "++4917012345", "4917012345678901", "٠١٢٣٤٥٦٧٨٩٠", "", "-", "0123456\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		phone, ok := chat.ParsePhone(s)
		if !ok {
			return
		}
		digits := strings.TrimPrefix(phone, "+")
		if len(digits) < 7 || len(digits) > 15 || strings.Trim(digits, "0123456789") != "" {
			t.Fatalf("%q: got %q, want 7 to 15 digits", s, phone)
		}
		if written := strings.Map(func(r rune) rune {
			if strings.ContainsRune(" -()", r) {
				return -1
			}
			return r
		}, s); written != phone {
			t.Fatalf("%q: got %q, want all of its digits", s, phone)
		}
		if again, ok := chat.ParsePhone(phone); !ok || again != phone {
			t.Fatalf("%q: got %q, %t, want %q again", s, again, ok, phone)
		}
	})
}
