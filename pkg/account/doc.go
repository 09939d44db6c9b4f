// Package account defines the panel's users, their roles, sessions and the audit log, and their rules. It does not
// depend on a store or on HTTP.
//
// user.go: users. role.go: the table of roles and permissions. session.go: sessions. password.go: argon2id.
// totp.go: one-time codes (RFC 6238). recovery.go: recovery codes. device.go: known devices. audit.go: the
// log of changes.
package account
