package bots

import (
	"slices"
	"time"

	"github.com/parley-chat/parley/pkg/webhook"
)

// MaxVersions is the number of published versions that a [Bot] keeps.
const MaxVersions = 20

// Bot is the bot of one application. The zero Bot, of an application whose bot was never changed, answers as the
// operator's default does.
type Bot struct {
	AppID     string
	CompanyID string

	Draft    Settings  // what the next publication puts in force
	Versions []Version // newest first; the first one is in force; none: [Default]
	// Secrets sign the requests to the company's server, newest first. They belong to all versions.
	Secrets  []webhook.Secret
	Revision int64 // incremented by each update; 0: not stored
}

// Version is a publication of settings.
type Version struct {
	Number      int       `json:"number"` // from 1 on
	Settings    Settings  `json:"settings"`
	PublishedAt time.Time `json:"publishedAt"`
	PublishedBy string    `json:"publishedBy"` // a user's e-mail address, or the name of a tool
}

// InForce returns the version that answers; its number is 0 if none was published.
func (b Bot) InForce() Version {
	if len(b.Versions) == 0 {
		return Version{Settings: Settings{Kind: Default}}
	}
	return b.Versions[0]
}

// Version returns a published version.
func (b Bot) Version(number int) (Version, bool) {
	n := slices.IndexFunc(b.Versions, func(v Version) bool { return v.Number == number })
	if n < 0 {
		return Version{}, false
	}
	return b.Versions[n], true
}

// Publish puts settings in force as the next version, and makes them the draft. A bot that calls the company's server
// for the first time gets a secret, which it returns; else nil.
func (b *Bot) Publish(s Settings, by string, now time.Time) (fresh *webhook.Secret) {
	next := Version{Number: b.InForce().Number + 1, Settings: s, PublishedAt: now, PublishedBy: by}
	kept := b.Versions[:min(len(b.Versions), MaxVersions-1)]
	b.Versions = append([]Version{next}, kept...)
	b.Draft = s
	if s.Kind != Webhook || len(b.Secrets) > 0 {
		return nil
	}
	secret := webhook.NewSecret(webhook.HMAC, now)
	b.Secrets = []webhook.Secret{secret}
	return &secret
}

// Rotate adds a new secret. The replaced ones also sign during the overlap. It returns the new secret.
func (b *Bot) Rotate(now time.Time, overlap time.Duration) webhook.Secret {
	fresh := webhook.NewSecret(webhook.HMAC, now)
	b.Secrets = webhook.Replaced(b.Secrets, []webhook.Secret{fresh}, now, overlap)
	return fresh
}

// Uses reports whether the draft or the version in force uses a connection.
func (b Bot) Uses(connectionID string) bool {
	return b.Draft.uses(connectionID) || b.InForce().Settings.uses(connectionID)
}

func (s Settings) uses(connectionID string) bool {
	return s.Kind == Model && slices.Contains(s.Model.Connections(), connectionID)
}
