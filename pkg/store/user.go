package store

import (
	"context"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/apperr"
)

// UserReader reads users.
type UserReader interface {
	User(ctx context.Context, id string) (account.User, error)
}

// UsersByEmail returns the users with an e-mail address, an operator first, at most one of each company.
func UsersByEmail(ctx context.Context, s UserReader, email string) (found []account.User, err error) {
	for _, id := range account.UserIDs(email) {
		u, err := s.User(ctx, id)
		switch {
		case err == nil:
			found = append(found, u)
		case !apperr.Is(err, apperr.NotFound):
			return nil, err
		}
	}
	return found, nil
}
