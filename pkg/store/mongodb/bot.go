package mongodb

import (
	"context"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/store"
)

// putSetting writes a record if its revision is the stored one, 0 for a new one.
func (s *Store) putSetting(ctx context.Context, in collection, r store.SettingRecord) error {
	current := r.Revision
	r.Revision++
	if current > 0 {
		err := s.replaceRevision(ctx, in, r.ID, current, r)
		if apperr.Is(err, apperr.NotFound) {
			err = apperr.ChangedMeanwhile.Wrap(err)
		}
		return err
	}
	inserted, err := s.insert(ctx, in, r)
	if err == nil && !inserted {
		err = apperr.ChangedMeanwhile.New()
	}
	return err
}

// Bot implements [store.Bots].
func (s *Store) Bot(ctx context.Context, appID string) (bots.Bot, error) {
	r, err := get[store.SettingRecord](ctx, s, botSettings, appID)
	return r.Bot(), err
}

// PutBot implements [store.Bots].
func (s *Store) PutBot(ctx context.Context, b bots.Bot) error {
	return s.putSetting(ctx, botSettings, store.BotRecordOf(b))
}

// Bots implements [store.Bots].
func (s *Store) Bots(ctx context.Context, companyID string, p store.Page) ([]bots.Bot, error) {
	return list(ctx, s, botSettings, ofCompany(companyID, byIDs(p)),
		func(r store.SettingRecord) (bots.Bot, bool) { return r.Bot(), true })
}

// ModelConnection implements [store.ModelConnections].
func (s *Store) ModelConnection(ctx context.Context, id string) (bots.Connection, error) {
	r, err := get[store.SettingRecord](ctx, s, modelConnections, id)
	return r.Connection(), err
}

// PutModelConnection implements [store.ModelConnections].
func (s *Store) PutModelConnection(ctx context.Context, c bots.Connection) error {
	return s.putSetting(ctx, modelConnections, store.ConnectionRecordOf(c))
}

// DeleteModelConnection implements [store.ModelConnections].
func (s *Store) DeleteModelConnection(ctx context.Context, id string) error {
	n, err := s.deleteAll(ctx, modelConnections, byID(id))
	if err == nil && n == 0 {
		err = apperr.ConnectionNotFound.New()
	}
	return err
}

// ModelConnections implements [store.ModelConnections].
func (s *Store) ModelConnections(ctx context.Context, companyID string, p store.Page) ([]bots.Connection, error) {
	return list(ctx, s, modelConnections, ofCompany(companyID, byIDs(p)),
		func(r store.SettingRecord) (bots.Connection, bool) { return r.Connection(), true })
}
