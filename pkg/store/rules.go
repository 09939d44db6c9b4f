package store

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
)

const (
	maxTokenName    = 100     // characters
	maxMessageIDLen = 256     // bytes
	maxMessageData  = 8 << 20 // bytes
)

// CheckMessage returns Invalid for a message that cannot be stored.
func CheckMessage(m chat.Message) error {
	var f apperr.Fields
	if !ValidMessageID(m.ID) {
		f.Add("id", "must be text of 1 to 256 bytes")
	}
	if len(m.Data) > maxMessageData {
		f.Add("data", "must not be larger than 8 MiB")
	} else if !utf8.Valid(m.Data) || !json.Valid(m.Data) {
		f.Add("data", "must be JSON")
	}
	return f.Err()
}

// ValidMessageID reports whether id can be a message's id. Ids may come from external processing layers, so they need
// not be UUIDs.
func ValidMessageID(id string) bool {
	return id != "" && len(id) <= maxMessageIDLen && utf8.ValidString(id)
}

// CheckAccessToken returns Invalid for a token that cannot be created.
func CheckAccessToken(t chat.AccessToken) error {
	var f apperr.Fields
	if t.Hash == "" {
		f.Add("hash", "is required")
	}
	if _, ok := chat.ParseID(t.CompanyID); !ok {
		f.Add("companyId", "must be a UUID")
	}
	switch {
	case strings.TrimSpace(t.Name) == "":
		f.Add("name", "is required")
	case utf8.RuneCountInString(t.Name) > maxTokenName:
		f.Add("name", "must have at most 100 characters")
	case !utf8.ValidString(t.Name) || strings.ContainsFunc(t.Name, unicode.IsControl):
		f.Add("name", "must not contain control characters")
	}
	if !t.ExpiresAt.IsZero() && !t.ExpiresAt.After(t.CreatedAt) {
		f.Add("expiresAt", "must be in the future")
	}
	return f.Err()
}

// CheckApplication returns the application's origins in canonical form, or Invalid for an application that cannot be
// stored: widgetConfigs rejected by [chat.CheckWidgetConfigs], origins rejected by [chat.CheckOrigins], or a negative
// FileRetention.
func CheckApplication(a chat.Application) (origins []string, err error) {
	origins, faults := chat.CheckOrigins(a.AllowedOrigins)
	var f apperr.Fields
	for _, fault := range append(chat.CheckWidgetConfigs(a.WidgetConfigs), faults...) {
		f.Add(fault.Field, fault.Message)
	}
	if a.FileRetention < 0 {
		f.Add("fileRetention", "must not be negative")
	}
	return origins, f.Err()
}

// CheckVerification returns Invalid for a mode that the application cannot have.
func CheckVerification(mode chat.Verification, current chat.IdentityVerification) error {
	if !mode.Known() {
		return apperr.ValidationError.WithMessage("The verification must be off, session or required")
	}
	if mode == chat.VerificationRequired && len(current.Secrets) == 0 {
		return apperr.NoIdentitySecret.New()
	}
	return nil
}

// Identities returns the identities of a profile within a scope, strongest first. An empty field has none.
func Identities(scope string, p Profile) (found []Identity) {
	for _, i := range []Identity{
		{Scope: scope, Kind: KindUserID, Value: p.UserID},
		{Scope: scope, Kind: KindEmail, Value: p.Email},
		{Scope: scope, Kind: KindPhone, Value: p.Phone},
	} {
		if i.Value != "" {
			found = append(found, i)
		}
	}
	return found
}

// SortIdentities returns the usable identities, strongest first; Invalid if there is none.
func SortIdentities(identities []Identity) ([]Identity, error) {
	unusable := func(i Identity) bool { return i.Value == "" || i.rank() < 0 }
	sorted := slices.DeleteFunc(slices.Clone(identities), unusable)
	if len(sorted) == 0 {
		return nil, apperr.ValidationError.WithMessage("At least one of email, phone, userId is required")
	}
	slices.SortStableFunc(sorted, func(a, b Identity) int { return a.rank() - b.rank() })
	return sorted, nil
}

func (i Identity) rank() int { return slices.Index([]string{KindUserID, KindEmail, KindPhone}, i.Kind) }

// Key returns the identity as text; equal identities have equal keys.
func (i Identity) Key() string {
	value := i.Value
	if i.Kind == KindEmail {
		value = strings.ToLower(strings.TrimSpace(value))
	}
	if i.Proved {
		return i.Scope + "|proved-" + i.Kind + "|" + value
	}
	return i.Scope + "|" + i.Kind + "|" + value
}

// NewVisitorID returns a random id (UUID version 7). Ids created at the same time are adjacent in every index, so that
// registrations write few pages.
func NewVisitorID() string { return chat.NewID() }

// ChatID returns the id of a visitor's chat number n, counted from 1. It is derived from both, so that concurrent
// creations use the same id.
func ChatID(visitor uuid.UUID, n int) string {
	return uuid.NewSHA1(visitor, []byte(strconv.Itoa(n))).String()
}

// ChatReader reads chats by their ids; see [Chats].
type ChatReader interface {
	Chat(ctx context.Context, id string) (chat.Chat, error)
}

// CurrentChat returns the visitor's chat that is open at now, or NotFound. It creates none, unlike [Chats.OpenChat].
//
// A visitor's chats have consecutive numbers, and only the last one is open. The search begins at the visitor's
// ChatNumber, which is usually the last: a visitor from a cache may have an older one.
func CurrentChat(ctx context.Context, chats ChatReader, v chat.Visitor, now time.Time) (chat.Chat, error) {
	visitorID, err := uuid.Parse(v.ID)
	if err != nil {
		return chat.Chat{}, apperr.ChatNotFound.New()
	}
	for number := max(v.ChatNumber, 1); ; number++ {
		c, err := chats.Chat(ctx, ChatID(visitorID, number))
		if err != nil || c.Open(now) {
			return c, err
		}
	}
}

// UTC converts a time to the precision of all stores: UTC, in milliseconds.
func UTC(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }
