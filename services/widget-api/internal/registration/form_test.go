package registration

import (
	"net/mail"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// An accepted e-mail address, phone number or user id is usable as one, and accepted in every equivalent spelling.
func FuzzIdentities(f *testing.F) {
	for _, seed := range [][3]string{
		{"sara@example.com", "989121234567", "crm-1042"}, {"SARA@EXAMPLE.COM", "98912123456", " x "}, {"Sara <sara@example.com>", "+9891212345", ""},
		{"sara@exämple.com", "٠١٢٣٤٥٦٧٨٩٠١", "\x00"}, {"a@b", "1", " "}, {`"a b"@example.com`, "00000000000", "|"}, {"a@[127.0.0.1]", "", "a|email|b"}, {"a@-b.c", "", "\xff"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, email, phone, userID string) {
		accepted := map[string]bool{"email": true, "phone": true, "userId": true}
		form := Form{AppID: "3f0e6e1a-2f57-4f0c-8a35-5c6f2a1b9d84", Email: &email, Phone: &phone, UserID: &userID}
		for _, fault := range form.Validate() {
			if !accepted[fault.Name] {
				t.Fatalf("got %v, want at most one fault of each identity", fault)
			}
			accepted[fault.Name] = false
		}
		if accepted["email"] {
			checkEmail(t, email)
		}
		if accepted["phone"] && (len(phone) < 11 || len(phone) > 12 || strings.Trim(phone, "0123456789") != "") {
			t.Fatalf("got %q as a phone number, want 11 or 12 digits", phone)
		}
		if accepted["userId"] && (strings.TrimSpace(userID) == "" || utf8.RuneCountInString(userID) > maxUserID) {
			t.Fatalf("got %q as a user id, want 1 to %d characters", userID, maxUserID)
		}
	})
}

func checkEmail(t *testing.T, email string) {
	t.Helper()
	local, domain, ok := strings.Cut(email, "@")
	address, err := mail.ParseAddress("<" + email + ">")
	if !ok || local == "" || !strings.Contains(domain, ".") || strings.Contains(domain, "@") || err != nil || address.Address != email {
		t.Fatalf("got %q as an e-mail address, want local@domain.tld (%v)", email, err)
	}
	if !utf8.ValidString(email) || strings.ContainsFunc(email, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune(`<>()[],;:"\`, r)
	}) {
		t.Fatalf("got %q as an e-mail address, want nothing in it that ends one", email)
	}
	// other upper-case letters may be longer
	isASCII := !strings.ContainsFunc(local, func(r rune) bool { return r >= utf8.RuneSelf })
	if isASCII && !ValidEmail(strings.ToUpper(local)+"@"+domain) {
		t.Fatalf("got %q in capitals refused, want the same address", email)
	}
}
