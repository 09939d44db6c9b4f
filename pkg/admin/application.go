package admin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/store"
)

// MaxApplications is the maximum number of applications of a company. The consumers that feed the company's
// browsers have three filters for each, and NATS compares all of them when one starts: 200 applications take
// 0.1 s, 1,000 more time than a request has. It also bounds what a company's settings, of up to 1 MiB each,
// take in the store and in caches.
const MaxApplications = 200

// actionCreate needs no invalidation: a new application is not cached.
const actionCreate = "application.create"

func applicationFields(a chat.Application) fields {
	f := fields{
		"name": a.Name, "botName": a.BotName, "allowedOrigins": append([]string{}, a.AllowedOrigins...),
		"fileRetentionSeconds": int64(a.FileRetention / time.Second),
		"verification":         cmp.Or(a.Identity.Mode, chat.VerificationOff),
		"support":              a.Support,
	}
	if json.Valid(a.WidgetConfigs) {
		f["widgetConfigs"] = a.WidgetConfigs
	}
	return f
}

// CreateApplication adds an application with the verification "session". With an empty id it generates one.
// Errors: Invalid; Conflict with the reason TOO_MANY_APPLICATIONS.
func (s *Service) CreateApplication(ctx context.Context, by Actor, a chat.Application) (chat.Application, error) {
	existing, err := s.store.IDs(ctx, store.IDFilter{ApplicationsOf: a.CompanyID}, store.Page{Limit: MaxApplications})
	if err != nil {
		return a, err
	}
	if len(existing) >= MaxApplications {
		return a, apperr.TooManyApplications.New()
	}
	a.ID = cmp.Or(a.ID, chat.NewID())
	a, err = s.putApplication(ctx, a)
	if err != nil {
		return a, err
	}
	verified := store.ApplicationChange{Verification: chat.VerificationSession}
	if err := s.store.ChangeApplication(ctx, a.ID, verified); err != nil {
		return a, err
	}
	return s.changedApplication(ctx, by, change{action: actionCreate, id: a.ID})
}

// UpdateApplication replaces an existing application.
func (s *Service) UpdateApplication(ctx context.Context, by Actor, a chat.Application) (chat.Application, error) {
	return s.changeApplication(ctx, by, "application.update", a.ID, func() error {
		_, err := s.putApplication(ctx, a)
		return err
	})
}

// SetVerification sets what proof of identity visitors must provide.
func (s *Service) SetVerification(
	ctx context.Context, by Actor, appID string, mode chat.Verification,
) (chat.Application, error) {
	return s.changeApplication(ctx, by, "application.verification", appID, func() error {
		if !mode.Known() { // an empty one would change nothing
			return store.CheckVerification(mode, chat.IdentityVerification{})
		}
		return s.store.ChangeApplication(ctx, appID, store.ApplicationChange{Verification: mode})
	})
}

// SetSupport sets how agents serve an application's visitors.
func (s *Service) SetSupport(
	ctx context.Context, by Actor, appID string, support chat.Support,
) (chat.Application, error) {
	return s.changeApplication(ctx, by, "application.support", appID, func() error {
		return s.store.ChangeApplication(ctx, appID, store.ApplicationChange{Support: &support})
	})
}

// changeApplication runs a change of an existing application, and returns the result.
func (s *Service) changeApplication(
	ctx context.Context, by Actor, action, appID string, apply func() error,
) (chat.Application, error) {
	before, err := s.store.Application(ctx, appID)
	if err != nil {
		return before, err
	}
	if err := apply(); err != nil {
		return before, err
	}
	return s.changedApplication(ctx, by, change{action: action, id: appID, before: applicationFields(before)})
}

func (s *Service) putApplication(ctx context.Context, a chat.Application) (chat.Application, error) {
	var f apperr.Fields
	checkTitle(&f, "name", a.Name)
	checkTitle(&f, "botName", a.BotName)
	if len(bytes.TrimSpace(a.WidgetConfigs)) == 0 {
		a.WidgetConfigs = []byte(`{}`)
	}
	origins, err := store.CheckApplication(a)
	if e, ok := errors.AsType[*apperr.Error](err); ok {
		f = append(f, e.Fields...)
	} else if err != nil {
		return a, err
	}
	if err := f.Err(); err != nil {
		return a, err
	}
	a.AllowedOrigins = origins
	return a, s.store.PutApplication(ctx, a)
}

// changedApplication invalidates caches, writes the audit log, and returns the stored application.
func (s *Service) changedApplication(ctx context.Context, by Actor, c change) (chat.Application, error) {
	if c.action != actionCreate {
		if err := s.bus.RPC().Invalidate(ctx, store.CachedApplication, c.id); err != nil {
			return chat.Application{}, err
		}
	}
	a, err := s.store.Application(ctx, c.id)
	if err != nil {
		return a, err
	}
	c.companyID = a.CompanyID
	c.target = "application"
	c.after = applicationFields(a)
	return a, s.audit(ctx, by, c)
}

// RotateIdentitySecret creates a new identity secret, which is shown once. Earlier secrets stay valid for the overlap.
func (s *Service) RotateIdentitySecret(
	ctx context.Context,
	by Actor,
	appID string,
	overlap time.Duration,
) (chat.Secret, chat.Application, error) {
	if overlap < 0 || overlap > MaxOverlap {
		return "", chat.Application{}, apperr.Fields{{Name: "overlapSeconds", Message: "must be 0 to 2592000"}}.Err()
	}
	fresh := credential.NewIdentitySecret()
	rotated := store.ApplicationChange{Secrets: store.RotateSecret(fresh, s.now(), overlap)}
	if err := s.store.ChangeApplication(ctx, appID, rotated); err != nil {
		return "", chat.Application{}, err
	}
	a, err := s.changedApplication(ctx, by, change{action: "application.secret", id: appID})
	return fresh, a, err
}
