package knowledge

import (
	"strings"
	"time"
	"unicode/utf8"
)

// This file has the documents whose text is fetched from their address.

// MaxRefreshHours is the longest time between two fetches of a document, in hours: 30 days.
const MaxRefreshHours = 720

// Source is how the text of a document is fetched from its address, and what came of it. The zero value belongs to a
// document whose text is given by hand.
type Source struct {
	RefreshHours int          `json:"refreshHours"`       // between two fetches; 0: the text is given by hand
	DueAt        time.Time    `json:"-"`                  // of the next fetch
	FetchedAt    time.Time    `json:"fetchedAt,omitzero"` // when the server last had this text; zero: never
	Failure      FetchFailure `json:"failure,omitzero"`   // of the last fetch; zero: it succeeded
	Failures     int          `json:"failures,omitempty"` // in a row
	ETag         string       `json:"etag,omitempty"`     // of the answer with this text
	Modified     string       `json:"modified,omitempty"` // its Last-Modified
}

// Fetched reports whether the text is fetched.
func (s Source) Fetched() bool { return s.RefreshHours > 0 }

// FetchFailure says why a fetch got no text.
type FetchFailure struct {
	Code    string    `json:"code"`    // a stable word
	Message string    `json:"message"` // a sentence for users
	At      time.Time `json:"at"`
}

// Reasons why a fetch got no text.
const (
	FetchNotAllowed = "DOCUMENT_ADDRESS_NOT_ALLOWED" // a private address, or a port that is not one of the web
	FetchNoAnswer   = "DOCUMENT_NO_ANSWER"           // no such host, no connection, or no answer in time
	FetchRobots     = "DOCUMENT_FORBIDDEN_BY_ROBOTS" // robots.txt forbids it
	FetchNoRobots   = "DOCUMENT_ROBOTS_UNAVAILABLE"  // robots.txt cannot be read, so that nothing may be fetched
	FetchRefused    = "DOCUMENT_REFUSED"             // a status other than 200 and 304
	FetchRedirected = "DOCUMENT_REDIRECTED"          // to another host, or too often
	FetchType       = "DOCUMENT_NOT_TEXT"            // of a type that Parley does not read
	FetchTooLarge   = "DOCUMENT_TOO_LARGE"           // longer than a document may be
	FetchEmpty      = "DOCUMENT_EMPTY"               // without text
	FetchNoRoom     = "DOCUMENT_NO_ROOM"             // the documents of the company have reached their limit
)

// FetchFailures lists the codes.
var FetchFailures = []string{
	FetchNotAllowed, FetchNoAnswer, FetchRobots, FetchNoRobots, FetchRefused, FetchRedirected, FetchType, FetchTooLarge,
	FetchEmpty, FetchNoRoom,
}

// Due is a document whose text is due to be fetched.
type Due struct{ ID, CompanyID string }

// SetSource makes the text of a document fetched from its address every so many hours, or given by hand (0). The first
// fetch after a change is due at now; nothing known of another address is kept.
func (d *Document) SetSource(address string, refreshHours int, now time.Time) {
	before := d.Source
	if address != d.Address || refreshHours == 0 {
		before = Source{}
	}
	d.Address, d.Source = address, before
	d.Source.RefreshHours = refreshHours
	if d.Source.Fetched() && (before.RefreshHours != refreshHours || before.DueAt.IsZero()) {
		d.Source.DueAt = now
	}
}

// AddressTitle is the title of a document that nobody has given one: its address without the scheme, as far as a title
// may be long.
func AddressTitle(address string) string {
	_, rest, found := strings.Cut(address, "://")
	if !found {
		rest = address
	}
	return CleanTitle(rest)
}

// CleanTitle returns a text as a title: in one line, and not longer than a title may be.
func CleanTitle(text string) string {
	text = strings.Join(strings.Fields(cleanText(text)), " ")
	if utf8.RuneCountInString(text) > maxTitle {
		text = strings.TrimSpace(string([]rune(text)[:maxTitle]))
	}
	return text
}

// firstRetry is how long after its first failure a fetch is repeated. The time doubles with each further one.
const firstRetry = 5 * time.Minute

// NextFetch returns when a fetch that ended at now is followed by the next one: after the hours of its schedule, or after a
// failure earlier, but not before the server allows it.
func (s Source) NextFetch(now time.Time, retryAfter time.Duration) time.Time {
	pause := time.Duration(s.RefreshHours) * time.Hour
	if s.Failures > 0 {
		doublings := min(s.Failures-1, 20)
		pause = min(pause, firstRetry<<doublings)
	}
	return now.Add(max(pause, retryAfter))
}
