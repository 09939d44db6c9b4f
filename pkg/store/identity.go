package store

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/apperr"
)

// Kinds of [Identity], strongest first.
const (
	KindUserID = "userId"
	KindEmail  = "email"
	KindPhone  = "phone"
)

// Identity is something by which a person is known within a scope; at most one visitor owns it.
//
// A proved identity and the same one unproved are two, with owners of their own. So who only says who they are never meets
// the visitor who has proved it, nor the other way round, whichever of them came first (docs/decisions/0007-verified-identities.md).
type Identity struct {
	Scope  string // the application's id, or the company's for the recipients of pushes
	Kind   string // KindUserID, KindEmail or KindPhone
	Value  string
	Proved bool // the company's own server vouches for it
}

type identityDocument struct {
	ID         string `bson:"_id"`
	ChatUserID string `bson:"chatUserId"`
}

func (i Identity) id() string {
	value := i.Value
	if i.Kind == KindEmail {
		value = strings.ToLower(strings.TrimSpace(value))
	}
	if i.Proved {
		return i.Scope + "|proved-" + i.Kind + "|" + value
	}
	return i.Scope + "|" + i.Kind + "|" + value
}

func (i Identity) rank() int { return slices.Index([]string{KindUserID, KindEmail, KindPhone}, i.Kind) }

// ResolveVisitor returns the chatUserId of the person with these identities.
//
// Identities that nobody owns become this person's; one that another person owns stays theirs. Where they belong to several
// people, the strongest decides who this is, and nobody is merged with anybody. Calls at once end as if they had come one
// after the other: whoever brings two identities together that are both still new makes one person of them (person.go).
//
// created says that this call made the person. Identities with an empty value are left out; without any at all the answer
// is Invalid.
func (s *Store) ResolveVisitor(ctx context.Context, identities []Identity) (chatUserID string, created bool, err error) {
	sorted, err := usable(identities)
	if err != nil {
		return "", false, err
	}
	owners, err := s.owners(ctx, sorted)
	if err != nil {
		return "", false, err
	}
	return s.agree(ctx, owners)
}

// usable orders the identities, strongest first.
func usable(identities []Identity) ([]Identity, error) {
	sorted := slices.DeleteFunc(slices.Clone(identities), func(i Identity) bool { return i.Value == "" || i.rank() < 0 })
	if len(sorted) == 0 {
		return nil, apperr.New(apperr.Invalid, "VALIDATION_ERROR", "At least one of email, phone, userId is required")
	}
	slices.SortStableFunc(sorted, func(a, b Identity) int { return cmp.Compare(a.rank(), b.rank()) })
	return sorted, nil
}

// owners returns who owns each identity. Those that were nobody's are then the strongest owner's, or a new person's.
func (s *Store) owners(ctx context.Context, sorted []Identity) ([]string, error) {
	owners := make([]string, len(sorted))
	for n, identity := range sorted {
		d, err := get[identityDocument](ctx, s, identities, identity.id())
		if err != nil && !apperr.Is(err, apperr.NotFound) {
			return nil, err
		}
		owners[n] = d.ChatUserID
	}
	for n, identity := range sorted {
		if owners[n] != "" {
			continue
		}
		owner := cmp.Or(cmp.Or(owners...), uuid.NewString())
		var err error
		if owners[n], err = s.claim(ctx, identity, owner); err != nil {
			return nil, err
		}
	}
	return owners, nil
}

// claim makes the identity chatUserID's unless it is someone's, and returns whose it is.
func (s *Store) claim(ctx context.Context, i Identity, chatUserID string) (owner string, err error) {
	inserted, err := s.insert(ctx, identities, identityDocument{ID: i.id(), ChatUserID: chatUserID})
	if err != nil || inserted {
		return chatUserID, err
	}
	d, err := get[identityDocument](ctx, s, identities, i.id())
	return d.ChatUserID, err
}
