// Package view has the JSON of the records that people manage: the panel answers it, and parleyctl prints it
// as JSON and in tables. Each struct has a constructor, named by its record, such as [TokenOf].
//
// Invariants:
//
//   - A view has no secret: no hash of a password, no value of a webhook's header, no key. A secret that is
//     shown once stands beside the view, in the answer of the operation that has created it.
//   - A view has nothing that only operators may see: the panel answers it to every role with the permission
//     for the record. What is for operators only is added by parleyctl.
//   - The fields are those of services/panel/openapi.json.
package view

import (
	"encoding/json"
	"time"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/chat"
)

// ListOf returns the views of records.
func ListOf[R, V any](found []R, of func(R) V) []V {
	views := make([]V, len(found))
	for i, record := range found {
		views[i] = of(record)
	}
	return views
}

// Company is a company.
type Company struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// CompanyOf returns the view of a company.
func CompanyOf(c chat.Company) Company { return Company{ID: c.ID, Name: c.Name} }

// User is a user of the panel.
type User struct {
	ID                  string       `json:"id"`
	Email               string       `json:"email"`
	Name                string       `json:"name"`
	Role                account.Role `json:"role"`
	CompanyID           string       `json:"companyId,omitempty"`
	Status              string       `json:"status"`
	TOTP                bool         `json:"totp"`
	CreatedAt           chat.Time    `json:"createdAt"`
	LastSignInAt        chat.Time    `json:"lastSignInAt,omitzero"`
	InvitationExpiresAt chat.Time    `json:"invitationExpiresAt,omitzero"`
}

// UserOf returns the view of a user.
func UserOf(u account.User) User {
	return User{
		ID:                  u.ID,
		Email:               u.Email,
		Name:                u.Name,
		Role:                u.Role,
		CompanyID:           u.CompanyID,
		Status:              u.Status(),
		TOTP:                u.TOTPSecret != "",
		CreatedAt:           chat.Time(u.CreatedAt),
		LastSignInAt:        chat.Time(u.LastSignInAt),
		InvitationExpiresAt: chat.Time(u.InvitationExpiresAt),
	}
}

// States of an access token.
const (
	TokenActive  = "active"
	TokenExpired = "expired"
	TokenRevoked = "revoked"
)

// Token is an access token without its secret.
type Token struct {
	ID         string    `json:"id"` // the hash of the secret
	CompanyID  string    `json:"companyId"`
	Name       string    `json:"name"`
	Prefix     string    `json:"prefix"`
	CreatedAt  chat.Time `json:"createdAt"`
	CreatedBy  string    `json:"createdBy,omitempty"`
	LastUsedAt chat.Time `json:"lastUsedAt,omitzero"`
	ExpiresAt  chat.Time `json:"expiresAt,omitzero"`
	RevokedAt  chat.Time `json:"revokedAt,omitzero"`
	Status     string    `json:"status"`
}

// TokenOf returns the view of an access token.
func TokenOf(t chat.AccessToken, now time.Time) Token {
	v := Token{
		ID:         t.Hash,
		CompanyID:  t.CompanyID,
		Name:       t.Name,
		Prefix:     t.Prefix,
		CreatedAt:  chat.Time(t.CreatedAt),
		CreatedBy:  t.CreatedBy,
		LastUsedAt: chat.Time(t.LastUsedAt),
		ExpiresAt:  chat.Time(t.ExpiresAt),
		RevokedAt:  chat.Time(t.RevokedAt),
		Status:     TokenActive,
	}
	switch {
	case !t.RevokedAt.IsZero():
		v.Status = TokenRevoked
	case !t.Valid(now):
		v.Status = TokenExpired
	}
	return v
}

// Profile is what is known about a visitor.
type Profile struct {
	ID         string `json:"id"`
	CompanyID  string `json:"companyId,omitempty"`
	AppID      string `json:"appId,omitempty"`
	FirstName  string `json:"firstName,omitempty"`
	LastName   string `json:"lastName,omitempty"`
	Email      string `json:"email,omitempty"`
	Phone      string `json:"phone,omitempty"`
	UserID     string `json:"userId,omitempty"`
	VerifiedBy string `json:"verifiedBy,omitempty"`
}

// ProfileOf returns the profile of a visitor.
func ProfileOf(v chat.Visitor) Profile {
	return Profile{
		ID:         v.ID,
		CompanyID:  v.CompanyID,
		AppID:      v.AppID,
		FirstName:  v.FirstName,
		LastName:   v.LastName,
		Email:      v.Email,
		Phone:      v.Phone,
		UserID:     v.UserID,
		VerifiedBy: v.VerifiedBy,
	}
}

// Visitor is a visitor in a list: the profile, and the name that is the sender of the visitor's messages.
type Visitor struct {
	Profile
	Name string `json:"name"`
}

// VisitorOf returns the view of a visitor.
func VisitorOf(v chat.Visitor) Visitor { return Visitor{Profile: ProfileOf(v), Name: v.Name()} }

// AuditEntry is an entry of the audit log.
type AuditEntry struct {
	ID       string          `json:"id"`
	At       chat.Time       `json:"at"`
	UserID   string          `json:"userId,omitempty"`
	User     string          `json:"user"`
	Action   string          `json:"action"`
	Target   string          `json:"target"`
	TargetID string          `json:"targetId"`
	Before   json.RawMessage `json:"before,omitempty"`
	After    json.RawMessage `json:"after,omitempty"`
}

// AuditEntryOf returns the view of an entry of the audit log.
func AuditEntryOf(e account.AuditEntry) AuditEntry {
	return AuditEntry{
		ID:       e.ID,
		At:       chat.Time(e.At),
		UserID:   e.UserID,
		User:     e.User,
		Action:   e.Action,
		Target:   e.Target,
		TargetID: e.TargetID,
		Before:   e.Before,
		After:    e.After,
	}
}
