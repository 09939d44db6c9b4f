package account

import (
	"encoding/binary"
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// AuditRetention is how long the entries of the audit log are kept: a year, and some weeks for those who review
// the year.
const AuditRetention = 400 * 24 * time.Hour

// OldestAuditID returns an id before those of all entries that are kept at now.
func OldestAuditID(now time.Time) string {
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:8], uint64(now.Add(-AuditRetention).UnixMilli())<<16) // RFC 9562, section 5.7
	return id.String()
}

// AuditEntry is one change: the user, the target, and the target's fields before and after. It contains no secrets.
type AuditEntry struct {
	ID        string // UUIDv7: entries sort by time
	CompanyID string // empty: applies to the installation
	At        time.Time
	UserID    string // empty: not a user of the panel
	User      string // e-mail address, or the name of the tool
	Action    string // such as token.create
	Target    string // kind of the target, such as token
	TargetID  string
	Before    json.RawMessage // nil: the target did not exist
	After     json.RawMessage // nil: the target was deleted
}
