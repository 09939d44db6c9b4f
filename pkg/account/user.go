package account

import (
	"cmp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/apperr"
)

const (
	maxEmail = 254 // characters (RFC 5321, 4.5.3.1.3)
	maxName  = 100
)

// Statuses of a user.
const (
	StatusActive   = "active"
	StatusInvited  = "invited"  // has no password yet
	StatusDisabled = "disabled" // may not sign in
)

// User is a person who signs in to the panel.
type User struct {
	ID        string // derived from the e-mail address, see [UserIDs]
	Email     string // in canonical form
	Name      string
	Role      Role
	CompanyID string // empty for an operator
	CreatedAt time.Time

	PasswordHash string // argon2id; empty: none, the user is invited or uses single sign-on
	Disabled     bool
	LastSignInAt time.Time

	TOTPSecret  string // base32; empty: no second factor
	TOTPPending string // enrolled but not yet confirmed
	TOTPStep    int64  // time step of the last used code: each code is accepted once

	// RecoveryCodes has the hashes of the unused recovery codes, separated by spaces; see [NewRecoveryCodes].
	RecoveryCodes string

	// Issuer and Subject identify the user at the OpenID Connect issuer. The first sign-in there sets them;
	// empty: none yet.
	Issuer, Subject string

	// DeviceKey signs the cookies of the devices that the user has signed in on; see [NewDevice]. Empty: none.
	DeviceKey string

	InvitationHash      string // hash of the invitation's secret; empty: no open invitation
	InvitationExpiresAt time.Time

	// Revision counts the changes. An update names the revision it is based on.
	Revision int64
}

// Status returns the user's status.
func (u User) Status() string {
	switch {
	case u.Disabled:
		return StatusDisabled
	case u.InvitationHash != "":
		return StatusInvited
	}
	return StatusActive
}

// DisplayName returns the name, or the e-mail address if the user has no name.
func (u User) DisplayName() string { return cmp.Or(u.Name, u.Email) }

// Invited reports whether the user has an invitation that can still be accepted.
func (u User) Invited(now time.Time) bool {
	return u.Status() == StatusInvited && now.Before(u.InvitationExpiresAt)
}

// RemoveTOTP removes the second factor, with its recovery codes.
func (u *User) RemoveTOTP() { u.TOTPSecret, u.TOTPPending, u.RecoveryCodes = "", "", "" }

// userNamespace is the UUID namespace of user ids.
var userNamespace = uuid.MustParse("6f1f9f0c-6d4a-5c0e-9a55-7f6d2c9f3b11")

// Slots is the maximum number of users with one e-mail address, at most one of each company. The first slot is
// reserved for an operator, so that no company can occupy an operator's address.
const Slots = 8

// UserID returns the id of an operator with that address. It also stands for the address where attempts to sign
// in are counted.
func UserID(email string) string {
	return uuid.NewSHA1(userNamespace, []byte(CanonicalEmail(email))).String()
}

// UserIDs returns the ids that users with that address have, one for each slot. They are derived from the
// address, so that all of its users are found without a search.
func UserIDs(email string) (ids [Slots]string) {
	ids[0] = UserID(email)
	for slot := 1; slot < Slots; slot++ {
		// a namespace for each slot: no address has the ids of another one
		namespace := uuid.NewSHA1(userNamespace, []byte{byte(slot)})
		ids[slot] = uuid.NewSHA1(namespace, []byte(CanonicalEmail(email))).String()
	}
	return ids
}

// CanonicalEmail returns the form in which addresses are stored and compared.
func CanonicalEmail(email string) string { return strings.ToLower(strings.TrimSpace(email)) }

// NewUser returns a user with the id of the address's first slot.
func NewUser(email, name string, role Role, companyID string, now time.Time) User {
	return User{
		ID:        UserID(email),
		Email:     CanonicalEmail(email),
		Name:      strings.TrimSpace(name),
		Role:      role,
		CompanyID: companyID,
		CreatedAt: now,
	}
}

// Check validates the user's fields.
func (u User) Check() error {
	var f apperr.Fields
	if !validEmail(u.Email) {
		f.Add("email", "must be an e-mail address")
	}
	if fault := nameFault(u.Name); fault != "" {
		f.Add("name", fault)
	}
	switch _, err := uuid.Parse(u.CompanyID); {
	case !u.Role.Known():
		f.Add("role", "must be operator, owner, developer or agent")
	case u.Role == Operator && u.CompanyID != "":
		f.Add("role", "an operator belongs to no company")
	case u.Role != Operator && err != nil:
		f.Add("companyId", "must be a UUID")
	}
	return f.Err()
}

func validEmail(s string) bool {
	local, domain, ok := strings.Cut(s, "@")
	return ok && local != "" && domain != "" && !strings.Contains(domain, "@") && len(s) <= maxEmail &&
		utf8.ValidString(s) &&
		!strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}

func nameFault(name string) string {
	switch {
	case utf8.RuneCountInString(name) > maxName:
		return "must have at most 100 characters"
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return "must not contain control characters"
	}
	return ""
}
