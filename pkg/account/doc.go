// Package account holds the panel's users, their roles, sessions and the audit log: nouns and their rules. It knows no store and no
// HTTP.
//
// user.go: users. role.go: the table of roles and permissions. session.go: sessions. password.go: argon2id. totp.go: one-time codes
// (RFC 6238). audit.go: the log of changes.
package account
