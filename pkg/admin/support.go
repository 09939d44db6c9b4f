package admin

import (
	"context"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

// SetSupport sets how agents serve an application's visitors.
func (s *Service) SetSupport(
	ctx context.Context,
	by Actor,
	appID string,
	support chat.Support,
) (chat.Application, error) {
	before, err := s.store.Application(ctx, appID)
	if err != nil {
		return before, err
	}
	if err := s.store.ChangeApplication(ctx, appID, store.ApplicationChange{Support: &support}); err != nil {
		return before, err
	}
	return s.changedApplication(
		ctx,
		by,
		change{action: "application.support", id: appID, before: applicationFields(before)},
	)
}
