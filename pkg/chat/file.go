package chat

import "time"

// StoredFile is the metadata of a file sent by a visitor or an agent.
type StoredFile struct {
	ID         string // the unguessable part of its URL
	CompanyID  string
	AppID      string
	ChatUserID string // the visitor of its chat
	SenderID   string // the visitor, or the user that answered
	Address    string // the network of a visitor, which is an IPv4 address or an IPv6 /64; empty: an agent's file
	Size       int64  // bytes
	CreatedAt  time.Time
	ExpiresAt  time.Time // zero: kept until it is deleted
}
