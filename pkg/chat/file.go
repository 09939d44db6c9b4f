package chat

import "time"

// StoredFile is what is known of a file that a visitor has sent, beside its bytes.
type StoredFile struct {
	ID         string // the unguessable part of its address
	CompanyID  string
	AppID      string
	ChatUserID string
	Size       int64 // bytes
	CreatedAt  time.Time
	ExpiresAt  time.Time // zero: kept until it is erased
}
