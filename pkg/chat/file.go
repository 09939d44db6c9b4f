package chat

import "time"

// StoredFile is the metadata of a file sent by a visitor.
type StoredFile struct {
	ID         string // the unguessable part of its URL
	CompanyID  string
	AppID      string
	ChatUserID string
	Size       int64 // bytes
	CreatedAt  time.Time
	ExpiresAt  time.Time // zero: kept until it is deleted
}
