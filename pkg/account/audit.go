package account

import (
	"encoding/json"
	"time"
)

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
