package store

import (
	"context"
	"slices"

	"github.com/parley-chat/parley/pkg/apperr"
)

// Two registrations of one new person may run at once and each own one of the person's identities: the first knows only the
// e-mail address, the second knows it and a userId, and each has thought of an id. As long as neither id has left this
// package, the two can still become one person. So an id becomes a person only by a document that says so, and that is an
// insert: either the id stands for itself from then on, or it has been joined to another for good. Whoever sees ids that
// belong together and are not yet people joins them, the larger to the smaller, so that all who do so at once agree.
//
// People are never joined: they may have chats.

// personID is the _id, among the identities, of the document that says who an id stands for.
func personID(chatUserID string) string { return "person|" + chatUserID }

// person returns who the id stands for, and whether that is a person yet.
func (s *Store) person(ctx context.Context, chatUserID string) (id string, settled bool, err error) {
	for {
		d, err := get[identityDocument](ctx, s, identities, personID(chatUserID))
		switch {
		case apperr.Is(err, apperr.NotFound):
			return chatUserID, false, nil
		case err != nil:
			return "", false, err
		case d.ChatUserID == chatUserID:
			return chatUserID, true, nil
		}
		chatUserID = d.ChatUserID
	}
}

// settle makes the id stand for another, or for itself. It returns false when that has been decided before.
func (s *Store) settle(ctx context.Context, chatUserID, as string) (bool, error) {
	return s.insert(ctx, identities, identityDocument{ID: personID(chatUserID), ChatUserID: as})
}

// agree returns the one person whom the owners of a registration's identities, the strongest first, stand for: the first of
// them who is a person, or else the one that they become. born says that it was made here.
func (s *Store) agree(ctx context.Context, owners []string) (chatUserID string, born bool, err error) {
	for {
		people, unborn, err := s.people(ctx, owners)
		if err != nil {
			return "", false, err
		}
		one, isPerson := oneOf(people, unborn)
		agreed, err := s.joinAll(ctx, unborn, one)
		if err != nil {
			return "", false, err
		}
		if agreed && isPerson {
			return one, false, nil
		}
		if agreed {
			if born, err = s.settle(ctx, one, one); err != nil || born {
				return one, born, err
			}
		}
		// Somebody decided otherwise in between. Each round finds fewer who are undecided.
	}
}

// oneOf is who all of them are: the first person, or else the smallest id, which all who look choose alike.
func oneOf(people, unborn []string) (id string, isPerson bool) {
	if len(people) > 0 {
		return people[0], true
	}
	return slices.Min(unborn), false
}

// people are those whom the owners stand for: who is a person, and who is not yet.
func (s *Store) people(ctx context.Context, owners []string) (people, unborn []string, err error) {
	for _, owner := range owners {
		id, settled, err := s.person(ctx, owner)
		switch {
		case err != nil:
			return nil, nil, err
		case settled:
			people = append(people, id)
		case !slices.Contains(unborn, id):
			unborn = append(unborn, id)
		}
	}
	return people, unborn, nil
}

// joinAll makes all of the unborn stand for one. It returns false when one of them has been decided on in between.
func (s *Store) joinAll(ctx context.Context, unborn []string, one string) (bool, error) {
	for _, id := range unborn {
		if id == one {
			continue
		}
		if joined, err := s.settle(ctx, id, one); err != nil || !joined {
			return false, err
		}
	}
	return true, nil
}
