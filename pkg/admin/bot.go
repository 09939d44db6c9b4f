package admin

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/webhook"
)

// actionRotateBot changes nothing that the audit log shows.
const actionRotateBot = "bot.rotate"

// settingsFields are settings of a bot in the audit log. They have no secrets: those belong to the bot and to the
// connection.
func settingsFields(s bots.Settings) fields {
	f := fields{"kind": s.Kind, "failureText": s.FailureText, "handover": s.Handover}
	switch s.Kind {
	case bots.Webhook:
		f["url"] = shownURL(s.Webhook.URL)
		f["deadlineSeconds"] = s.Webhook.DeadlineSeconds
	case bots.Model:
		f["model"] = s.Model
	}
	return f
}

// Bot returns the bot of an application: an unchanged one if it has none. Errors: NotFound (no such application).
func (s *Service) Bot(ctx context.Context, appID string) (bots.Bot, error) {
	b, err := s.store.Bot(ctx, appID)
	if !apperr.Is(err, apperr.NotFound) {
		return b, err
	}
	a, err := s.store.Application(ctx, appID)
	return bots.Bot{AppID: a.ID, CompanyID: a.CompanyID, Draft: bots.Settings{Kind: bots.Default}}, err
}

// AnyRevision is the revision for changes that do not depend on the current one.
const AnyRevision int64 = -1

// changeBot applies a change to the stored bot of an application and returns the result. PRECONDITION_FAILED if the
// bot has another revision than the given one.
func (s *Service) changeBot(
	ctx context.Context, by Actor, appID, action string, revision int64,
	apply func(*bots.Bot) (before, after fields, err error),
) (b bots.Bot, err error) {
	for range changeAttempts {
		b, err = s.Bot(ctx, appID)
		if err != nil {
			return b, err
		}
		if revision != AnyRevision && revision != b.Revision {
			return b, apperr.PreconditionFailed.WithMessage("Somebody else has changed the bot meanwhile")
		}
		before, after, err := apply(&b)
		if err != nil {
			return b, err
		}
		err = s.store.PutBot(ctx, b)
		if apperr.Is(err, apperr.Conflict) {
			continue
		}
		if err != nil {
			return b, err
		}
		b.Revision++
		if err := s.bus.RPC().Invalidate(ctx, store.CachedBot, appID); err != nil {
			return b, err
		}
		return b, s.audit(ctx, by, change{
			companyID: b.CompanyID, action: action, target: "application", id: appID, before: before, after: after,
			hidden: action == actionRotateBot,
		})
	}
	return b, err
}

// SetBotDraft replaces the draft of an application's bot that has the revision, or [AnyRevision]. It answers nobody
// before it is published. Errors: Invalid; PRECONDITION_FAILED for another revision.
func (s *Service) SetBotDraft(
	ctx context.Context, by Actor, appID string, revision int64, draft bots.Settings,
) (bots.Bot, error) {
	return s.changeBot(ctx, by, appID, "bot.draft", revision, func(b *bots.Bot) (before, after fields, err error) {
		before = settingsFields(b.Draft)
		b.Draft = draft
		return before, settingsFields(draft), s.checkSettings(ctx, b.CompanyID, draft)
	})
}

// checkSettings returns Invalid for settings that an application of the company cannot have.
func (s *Service) checkSettings(ctx context.Context, companyID string, settings bots.Settings) error {
	if err := settings.Check(); err != nil {
		return err
	}
	if settings.Kind != bots.Model {
		return nil
	}
	c, err := s.store.ModelConnection(ctx, settings.Model.ConnectionID)
	if apperr.Is(err, apperr.NotFound) || err == nil && c.CompanyID != companyID {
		return apperr.Fields{{Name: "model.connectionId", Message: "must be a connection of the company"}}.Err()
	}
	return err
}

// PublishBot puts the draft of the revision in force, or an earlier version if number is not 0. Questions that are being answered end
// with the version that they began with. It returns the secret of a bot that calls the company's server for the first
// time, which is shown once; else nil. Errors: Invalid; NotFound with the reason BOT_VERSION_NOT_FOUND;
// PRECONDITION_FAILED for another revision.
func (s *Service) PublishBot(
	ctx context.Context, by Actor, appID string, revision int64, number int,
) (b bots.Bot, fresh *webhook.Secret, err error) {
	b, err = s.changeBot(ctx, by, appID, "bot.publish", revision, func(b *bots.Bot) (before, after fields, err error) {
		next := b.Draft
		if number != 0 {
			v, found := b.Version(number)
			if !found {
				return nil, nil, apperr.BotVersionNotFound.New()
			}
			next = v.Settings
		}
		if err := s.checkSettings(ctx, b.CompanyID, next); err != nil {
			return nil, nil, err
		}
		before = versionFields(b.InForce())
		fresh = b.Publish(next, by.Name, store.UTC(s.now()))
		return before, versionFields(b.InForce()), nil
	})
	return b, fresh, err
}

func versionFields(v bots.Version) fields {
	f := settingsFields(v.Settings)
	f["version"] = v.Number
	return f
}

// RotateBotSecret creates a new secret for the requests to the company's server, and returns it. Earlier secrets also
// sign during the overlap.
func (s *Service) RotateBotSecret(
	ctx context.Context, by Actor, appID string, overlap time.Duration,
) (fresh webhook.Secret, b bots.Bot, err error) {
	if overlap < 0 || overlap > MaxOverlap {
		return fresh, b, apperr.Fields{{Name: "overlapSeconds", Message: "must be 0 to 2592000"}}.Err()
	}
	b, err = s.changeBot(ctx, by, appID, actionRotateBot, AnyRevision, func(b *bots.Bot) (before, after fields, err error) {
		fresh = b.Rotate(store.UTC(s.now()), overlap)
		return nil, nil, nil
	})
	return fresh, b, err
}

// connectionFields omits the key.
func connectionFields(c bots.Connection) fields { return fields{"name": c.Name, "baseUrl": c.BaseURL} }

// CreateModelConnection adds a connection of a company. Errors: Invalid, NotFound (no such company), Conflict with the
// reason TOO_MANY_MODEL_CONNECTIONS.
func (s *Service) CreateModelConnection(ctx context.Context, by Actor, c bots.Connection) (bots.Connection, error) {
	if _, err := s.store.Company(ctx, c.CompanyID); err != nil {
		return c, err
	}
	existing, err := s.store.ModelConnections(ctx, c.CompanyID, store.Page{Limit: bots.MaxConnections})
	if err != nil {
		return c, err
	}
	if len(existing) == bots.MaxConnections {
		return c, apperr.TooManyModelConnections.New()
	}
	c.ID = chat.NewID()
	c.CreatedAt = store.UTC(s.now())
	if err := s.putConnection(ctx, &c); err != nil {
		return c, err
	}
	return c, s.changedConnection(ctx, by, c, change{action: "connection.create", after: connectionFields(c)})
}

func (s *Service) putConnection(ctx context.Context, c *bots.Connection) error {
	if err := c.Check(); err != nil {
		return err
	}
	if err := s.store.PutModelConnection(ctx, *c); err != nil {
		return err
	}
	c.Revision++
	return nil
}

// changedConnection notifies the services and writes the audit log.
func (s *Service) changedConnection(ctx context.Context, by Actor, of bots.Connection, c change) error {
	if err := s.bus.RPC().Invalidate(ctx, store.CachedModelConnection, of.ID); err != nil {
		return err
	}
	c.companyID, c.target, c.id = of.CompanyID, "connection", of.ID
	return s.audit(ctx, by, c)
}

// ConnectionChange lists changes of a connection; nil leaves a field unchanged.
type ConnectionChange struct {
	Name    *string `json:"name"`
	BaseURL *string `json:"baseUrl"`
	APIKey  *string `json:"apiKey"`
}

// keyOfOrigin is the error for a change of the origin that would take the stored key to another server.
const keyOfOrigin = "must be given again, or removed, when the scheme, host or port of the address changes: " +
	"the current key is not sent to another server"

// UpdateModelConnection changes a connection. A change of the address's origin also needs the key: Invalid.
func (s *Service) UpdateModelConnection(
	ctx context.Context, by Actor, id string, c ConnectionChange,
) (updated bots.Connection, err error) {
	for range changeAttempts {
		updated, err = s.store.ModelConnection(ctx, id)
		if err != nil {
			return updated, err
		}
		before := updated
		set(&updated.Name, c.Name)
		set(&updated.BaseURL, c.BaseURL)
		set(&updated.APIKey, c.APIKey)
		if c.APIKey == nil && before.APIKey != "" && !webhook.SameOrigin(before.BaseURL, updated.BaseURL) {
			return updated, apperr.Fields{{Name: "apiKey", Message: keyOfOrigin}}.Err()
		}
		err = s.putConnection(ctx, &updated)
		if apperr.Is(err, apperr.Conflict) {
			continue
		}
		if err != nil {
			return updated, err
		}
		return updated, s.changedConnection(ctx, by, updated, change{
			action: "connection.update", before: connectionFields(before), after: connectionFields(updated),
			hidden: before.APIKey != updated.APIKey,
		})
	}
	return updated, err
}

// DeleteModelConnection removes a connection. Errors: Conflict with the reason CONNECTION_IN_USE, with the names of the
// applications whose draft or version in force uses it.
func (s *Service) DeleteModelConnection(ctx context.Context, by Actor, id string) error {
	c, err := s.store.ModelConnection(ctx, id)
	if err != nil {
		return err
	}
	var users []string
	read := func(ctx context.Context, p store.Page) ([]bots.Bot, error) { return s.store.Bots(ctx, c.CompanyID, p) }
	for b, err := range store.All(ctx, read, func(b bots.Bot) string { return b.AppID }) {
		if err != nil {
			return err
		}
		if !b.Uses(id) {
			continue
		}
		a, err := s.store.Application(ctx, b.AppID)
		if err != nil {
			return err
		}
		users = append(users, a.Name)
	}
	if len(users) > 0 {
		slices.Sort(users)
		return apperr.ConnectionInUse.WithMessage("The connection is used by " + strings.Join(users, ", "))
	}
	if err := s.store.DeleteModelConnection(ctx, id); err != nil {
		return err
	}
	return s.changedConnection(ctx, by, c, change{action: "connection.delete", before: connectionFields(c)})
}
