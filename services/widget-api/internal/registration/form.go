package registration

import (
	"encoding/json"
	"net/mail"
	"strings"
	"unicode/utf8"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
)

// Lengths in characters. Those of a phone number come from the specification, of an e-mail address from RFC
// 5321, the others are ours.
const (
	maxName            = 256
	maxUserID          = 256
	maxEmail           = 254
	maxEmailLocal      = 64
	minPhone, maxPhone = 11, 12
)

// Form is a visitor's registration. A pointer is nil if the field was not sent.
type Form struct {
	AppID     string
	FirstName string
	LastName  string
	Email     *string
	Phone     *string
	UserID    *string
	UserHash  *string // proof by the company's server of the strongest of UserID, Email and Phone
	// JWT of the company's server that proves the identity in its claims until it expires
	IdentityToken *string
	Language      string                     // of the greetings, a BCP 47 tag; empty: none preferred
	Token         string                     // visitor token of the request; empty: none
	Origin        string                     // of the page that sent the form; empty: not a page
	Address       string                     // of the client
	Others        map[string]json.RawMessage // an application's own fields, for its requiredFields
}

// Validate returns all errors of the form that do not depend on the application.
func (f Form) Validate() apperr.Fields {
	var faults apperr.Fields
	if f.AppID == "" {
		faults.Add("appId", "is required")
	} else if _, ok := chat.ParseID(f.AppID); !ok {
		faults.Add("appId", "must be a UUID")
	}
	validateName(&faults, "firstName", f.FirstName)
	validateName(&faults, "lastName", f.LastName)
	if f.UserHash != nil && f.IdentityToken != nil {
		faults.Add("userHash", "must be absent if identityToken is sent")
	}
	// An identity may also be in the claims of the token, which need the application's secrets.
	if f.Email == nil && f.Phone == nil && f.UserID == nil && f.IdentityToken == nil {
		faults.Add("email", "is required if phone and userId are absent")
		faults.Add("phone", "is required if email and userId are absent")
		faults.Add("userId", "is required if email and phone are absent")
		return faults
	}
	f.validateIdentities(&faults)
	return faults
}

func validateName(faults *apperr.Fields, field, name string) {
	if utf8.RuneCountInString(name) > maxName {
		faults.Add(field, "must have at most 256 characters")
	}
}

func (f Form) validateIdentities(faults *apperr.Fields) {
	if f.Email != nil && !ValidEmail(*f.Email) {
		faults.Add("email", "must be a valid e-mail address")
	}
	if f.Phone != nil && !validPhone(*f.Phone) {
		faults.Add("phone", "must be a phone number of 11 to 12 digits, without + or other characters")
	}
	if f.UserID != nil {
		switch {
		case strings.TrimSpace(*f.UserID) == "":
			faults.Add("userId", "must not be empty")
		case utf8.RuneCountInString(*f.UserID) > maxUserID:
			faults.Add("userId", "must have at most 256 characters")
		}
	}
}

func validPhone(s string) bool {
	onlyDigits := strings.Trim(s, "0123456789") == ""
	return onlyDigits && len(s) >= minPhone && len(s) <= maxPhone
}

// missing returns the names of required fields that the form lacks, in their order. Null and the empty string
// count as missing.
func (f Form) missing(required []string) []string {
	var names []string
	for _, name := range required {
		if !f.has(name) {
			names = append(names, name)
		}
	}
	return names
}

func (f Form) has(name string) bool {
	switch name {
	case "appId":
		return f.AppID != ""
	case "firstName":
		return f.FirstName != ""
	case "lastName":
		return f.LastName != ""
	case "email":
		return f.Email != nil
	case "phone":
		return f.Phone != nil
	case "userId":
		return f.UserID != nil
	case "userHash":
		return f.UserHash != nil
	case "identityToken":
		return f.IdentityToken != nil
	case "language":
		return f.Language != ""
	}
	switch string(f.Others[name]) {
	case "", "null", `""`:
		return false
	}
	return true
}

// ValidEmail reports whether s is one plain address: local part, @, and a domain of at least two labels.
// Quoted local parts, comments and address literals are valid in RFC 5322, but unused in practice.
func ValidEmail(s string) bool {
	address, err := mail.ParseAddress(s)
	if err != nil || address.Address != s || utf8.RuneCountInString(s) > maxEmail {
		return false
	}
	local, domain, _ := strings.Cut(s, "@")
	return len(local) <= maxEmailLocal && !strings.ContainsAny(s, "\"[] ") && isDomain(domain)
}

func isDomain(s string) bool {
	labels := strings.Split(s, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		if strings.ContainsFunc(label, func(r rune) bool { return r < utf8.RuneSelf && !isLetterDigitHyphen(r) }) {
			return false
		}
	}
	return len(labels) >= 2
}

func isLetterDigitHyphen(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-'
}
