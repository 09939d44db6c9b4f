package mongodb

import (
	"cmp"
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/parley-chat/parley/pkg/store"
)

// Two concurrent registrations of one new visitor may each take one of the visitor's identities: the first has only the
// e-mail address, the second has it and a userId, and each has generated an id. As long as neither id has left this
// package, the two can still become one visitor. So an id starts as pending, and a document in identityOwners decides
// once what it resolves to: to itself, then it is a visitor's permanently, or to another id. That document is only ever
// inserted. A call that finds pending ids that belong together resolves the larger ones to the smallest, so that
// concurrent calls agree.
//
// Ids that resolve to themselves are never joined: their visitors may have chats.

type identityDocument struct {
	Key        string `bson:"_id"`        // see store.Identity.Key
	ChatUserID string `bson:"chatUserId"` // the id that took the identity; see identityOwners for the visitor
}

type ownerDocument struct {
	ID         string `bson:"_id"`
	ResolvesTo string `bson:"resolvesTo"`
}

// owner is what an id resolves to.
type owner struct {
	id      string
	pending bool // it has not been decided what the id resolves to
}

// resolveVisitor returns the chatUserId that owns these identities; created reports that no visitor owned any of them
// before. Unowned identities become this visitor's.
func (s *Store) resolveVisitor(ctx context.Context, all []store.Identity) (chatUserID string, created bool, err error) {
	sorted, err := store.SortIdentities(all)
	if err != nil {
		return "", false, err
	}
	var keys []string
	for _, i := range sorted {
		if key := i.Key(); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	ids, fresh, err := s.takeIdentities(ctx, keys)
	if err != nil {
		return "", false, err
	}
	if len(ids) == 1 && ids[0] == fresh {
		if created, err = s.resolveTo(ctx, fresh, fresh); err != nil || created {
			return fresh, created, err
		}
	}
	return s.agree(ctx, ids)
}

// takeIdentities returns the ids that own the identities, the strongest identity's first, without repeats.
// Identities without an owner are then owned by the strongest owner, or by fresh, a new id.
func (s *Store) takeIdentities(ctx context.Context, keys []string) (ids []string, fresh string, err error) {
	owners, err := s.identityOwners(ctx, keys)
	if err != nil {
		return nil, "", err
	}
	var strongest string
	for _, key := range keys {
		strongest = cmp.Or(strongest, owners[key])
	}
	if strongest == "" {
		fresh = store.NewVisitorID()
	}
	var missing []any
	for _, key := range keys {
		if owners[key] == "" {
			owners[key] = cmp.Or(strongest, fresh)
			missing = append(missing, identityDocument{Key: key, ChatUserID: owners[key]})
		}
	}
	taken, err := s.insertAll(ctx, identities, missing)
	if err != nil {
		return nil, "", err
	}
	if len(taken) > 0 {
		if owners, err = s.identityOwners(ctx, keys); err != nil {
			return nil, "", err
		}
	}
	for _, key := range keys {
		if id := owners[key]; !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, fresh, nil
}

// identityOwners returns the ids that took the identities, by key.
func (s *Store) identityOwners(ctx context.Context, keys []string) (map[string]string, error) {
	found, err := list(
		ctx, s, identities, byIDIn(keys),
		func(d identityDocument) (identityDocument, bool) { return d, true },
	)
	if err != nil {
		return nil, err
	}
	owners := make(map[string]string, len(keys))
	for _, d := range found {
		owners[d.Key] = d.ChatUserID
	}
	return owners, nil
}

func byIDIn(ids []string) listQuery {
	return listQuery{filter: bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}}}
}

// resolve returns what ids resolve to.
func (s *Store) resolve(ctx context.Context, ids []string) (map[string]owner, error) {
	next := map[string]string{} // id -> target in its document
	unknown := slices.Clone(ids)
	for len(unknown) > 0 {
		found, err := list(ctx, s, owners, byIDIn(unknown), func(d ownerDocument) (ownerDocument, bool) { return d, true })
		if err != nil {
			return nil, err
		}
		unknown = nil
		for _, d := range found {
			next[d.ID] = d.ResolvesTo
			if d.ResolvesTo != d.ID && next[d.ResolvesTo] == "" {
				unknown = append(unknown, d.ResolvesTo)
			}
		}
	}
	resolved := make(map[string]owner, len(ids))
	for _, id := range ids {
		o := owner{id: id}
		for next[o.id] != "" && next[o.id] != o.id {
			o.id = next[o.id]
		}
		o.pending = next[o.id] == ""
		resolved[id] = o
	}
	return resolved, nil
}

// resolveTo decides what an id resolves to, and reports false when that has been decided before.
func (s *Store) resolveTo(ctx context.Context, id, target string) (bool, error) {
	return s.insert(ctx, owners, ownerDocument{ID: id, ResolvesTo: target})
}

// agree returns the one visitor that the owners of a registration's identities, the strongest first, resolve
// to: the first that is a visitor's id already, or else the smallest id, which becomes one. created reports
// that this call decided it.
func (s *Store) agree(ctx context.Context, ids []string) (chatUserID string, created bool, err error) {
	for {
		settled, pending, err := s.sortOwners(ctx, ids)
		if err != nil {
			return "", false, err
		}
		target := append(slices.Clone(settled), slices.Sorted(slices.Values(pending))...)[0]
		joined, err := s.join(ctx, pending, target)
		if err != nil {
			return "", false, err
		}
		if joined && len(settled) > 0 {
			return target, false, nil
		}
		if joined {
			if created, err = s.resolveTo(ctx, target, target); err != nil || created {
				return target, created, err
			}
		}
		// A concurrent call decided otherwise. Each round finds fewer pending ids.
	}
}

// sortOwners returns what the ids resolve to, in their order: visitors' ids, and those that are pending.
func (s *Store) sortOwners(ctx context.Context, ids []string) (settled, pending []string, err error) {
	resolved, err := s.resolve(ctx, ids)
	if err != nil {
		return nil, nil, err
	}
	for _, id := range ids {
		switch o := resolved[id]; {
		case !o.pending:
			settled = append(settled, o.id)
		case !slices.Contains(pending, o.id):
			pending = append(pending, o.id)
		}
	}
	return settled, pending, nil
}

// join resolves pending ids to target. It returns false when another call decided on one of them first.
func (s *Store) join(ctx context.Context, pending []string, target string) (bool, error) {
	for _, id := range pending {
		if id == target {
			continue
		}
		if joined, err := s.resolveTo(ctx, id, target); err != nil || !joined {
			return false, err
		}
	}
	return true, nil
}
