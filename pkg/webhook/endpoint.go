package webhook

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/parley-chat/parley/pkg/apperr"
)

const (
	maxURL         = 2048 // bytes
	maxDescription = 200  // characters
	maxHeaders     = 20
	maxHeaderValue = 1024 // bytes
	// MaxEndpoints is the maximum number of endpoints of a company.
	MaxEndpoints = 50
)

// Reasons for which an endpoint is disabled.
const (
	DisabledManually = "manual"  // by a person or a tool
	DisabledFailing  = "failing" // after three warnings
	DisabledGone     = "gone"    // it responded 410
)

// Endpoint is a URL at which a company receives events.
type Endpoint struct {
	ID          string
	CompanyID   string
	URL         string
	Description string
	Events      []string          // event types that it receives; empty: all
	Headers     map[string]string // sent with each delivery
	Secrets     []Secret          // newest first; each active one signs
	Ordered     bool              // deliveries of one chat are sent in sequence
	CreatedAt   time.Time

	DisabledAt     time.Time // zero: enabled
	DisabledReason string

	FailingSince time.Time // the first failed attempt since the last success; zero: the last attempt succeeded
	Warnings     int       // since FailingSince
	WarnedAt     time.Time

	Revision int64 // incremented by each update
}

// Enabled reports whether the endpoint receives deliveries.
func (e Endpoint) Enabled() bool { return e.DisabledAt.IsZero() }

// Wants reports whether the endpoint receives events of a type.
func (e Endpoint) Wants(eventType string) bool {
	return len(e.Events) == 0 || eventType == TypeTest || slices.Contains(e.Events, eventType)
}

// Kinds returns the schemes of the endpoint's active secrets.
func (e Endpoint) Kinds(now time.Time) (kinds []Kind) {
	for _, s := range e.Secrets {
		if s.Active(now) && !slices.Contains(kinds, s.Kind()) {
			kinds = append(kinds, s.Kind())
		}
	}
	return kinds
}

// Rotate adds a new secret of each active kind. Replaced secrets also sign during the overlap; a secret with an earlier
// expiry keeps it. It returns the new secrets.
func (e *Endpoint) Rotate(now time.Time, overlap time.Duration) (fresh []Secret) {
	for _, kind := range e.Kinds(now) {
		fresh = append(fresh, NewSecret(kind, now))
	}
	e.Secrets = Replaced(e.Secrets, fresh, now, overlap)
	return fresh
}

// Replaced returns fresh secrets, and those of old that also sign during the overlap; one with an earlier expiry keeps
// it.
func Replaced(old, fresh []Secret, now time.Time, overlap time.Duration) []Secret {
	kept := slices.Clone(fresh)
	replaced := map[Kind]int{} // that still sign, the newest first
	for _, s := range old {
		if end := now.Add(overlap); s.ExpiresAt.IsZero() || s.ExpiresAt.After(end) {
			s.ExpiresAt = end
		}
		replaced[s.Kind()]++
		if s.Active(now) && replaced[s.Kind()] < maxActiveSecretsPerKind {
			kept = append(kept, s)
		}
	}
	return kept
}

// Check returns Invalid for an endpoint with invalid fields.
func (e Endpoint) Check() error {
	var f apperr.Fields
	CheckURL(&f, "url", e.URL)
	if utf8.RuneCountInString(e.Description) > maxDescription || !utf8.ValidString(e.Description) ||
		strings.ContainsFunc(e.Description, unicode.IsControl) {
		f.Add("description", "must have at most 200 characters, and no control characters")
	}
	for _, t := range e.Events {
		if !slices.Contains(Types(), t) {
			f.Add("events", "must be some of "+strings.Join(Types(), ", "))
			break
		}
	}
	checkHeaders(&f, e.Headers)
	if len(e.Secrets) == 0 {
		f.Add("secrets", "must be at least one")
	}
	for _, s := range e.Secrets {
		if _, err := s.key(); err != nil {
			f.Add("secret", err.Error())
		}
	}
	return f.Err()
}

// CheckURL checks the address of a server of a company, in a field.
func CheckURL(f *apperr.Fields, field, s string) {
	u, err := url.Parse(s)
	switch {
	case len(s) > maxURL:
		f.Add(field, "must have at most 2048 bytes")
	case err != nil, u.Hostname() == "", u.Scheme != "http" && u.Scheme != "https":
		f.Add(field, "must be an http or https URL")
	case u.User != nil:
		f.Add(field, "must not contain a user name or password")
	case u.Fragment != "":
		f.Add(field, "must not have a fragment")
	}
}

// SameOrigin reports whether two URLs have the same scheme, host and port. Header values of an endpoint are
// for its origin only.
func SameOrigin(a, b string) bool {
	first, err := originOf(a)
	second, err2 := originOf(b)
	return err == nil && err2 == nil && first == second
}

func originOf(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil {
		return "", err
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port), nil
}

// reserved reports whether the delivery sets the header, or it belongs to the connection.
func reserved(name string) bool {
	name = strings.ToLower(name)
	return strings.HasPrefix(name, "webhook-") || slices.Contains([]string{
		"host", "content-length", "content-type", "content-encoding", "transfer-encoding",
		"connection", "upgrade", "te", "trailer",
		"expect", "keep-alive", "proxy-authorization", "proxy-connection", "user-agent",
	}, name)
}

func checkHeaders(f *apperr.Fields, headers map[string]string) {
	if len(headers) > maxHeaders {
		f.Add("headers", "must be at most 20")
	}
	for name, value := range headers {
		switch {
		case !headerName(name):
			f.Add("headers", "must have names such as X-Api-Key")
		case reserved(name):
			f.Add("headers", "must not set "+name)
		case value == "",
			len(value) > maxHeaderValue,
			strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }):
			f.Add("headers."+name, "must have 1 to 1024 printable ASCII characters")
		}
	}
}

// headerName reports whether name is a canonical header name of letters, digits and hyphens.
func headerName(name string) bool {
	return name != "" && len(name) <= 100 && http.CanonicalHeaderKey(name) == name &&
		strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// Status returns enabled, failing or disabled.
func (e Endpoint) Status() string {
	switch {
	case !e.Enabled():
		return "disabled"
	case !e.FailingSince.IsZero():
		return "failing"
	}
	return "enabled"
}

// PublicKeys returns the public keys of the v1a signatures at now.
func (e Endpoint) PublicKeys(now time.Time) (keys []string) {
	for _, s := range e.Secrets {
		if s.Kind() == Ed25519 && s.Active(now) {
			keys = append(keys, s.Verifier())
		}
	}
	return keys
}
