package webhook

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/webhook"
)

// maxWarnings is how many warnings an endpoint gets before it is disabled.
const maxWarnings = 3

// updateHealth applies the result of an attempt to the endpoint's health. An endpoint that has failed without
// a success for WarnAfter gets a warning, another one after each further WarnAfter, and is disabled instead
// of a fourth one. One that answers 410 is disabled at once.
func (s *Service) updateHealth(ctx context.Context, e webhook.Endpoint, r result, now time.Time) {
	if next := classify(e, r, now, s.cfg.WarnAfter); next == unchanged {
		return
	}
	const attempts = 5 // an attempt fails if the endpoint was changed concurrently
	for range attempts {
		err := s.tryUpdateHealth(ctx, e.ID, r, now)
		if err == nil || apperr.Is(err, apperr.NotFound) {
			break
		}
		if !apperr.Is(err, apperr.Conflict) {
			s.warn(ctx, "writing the state of an endpoint", err)
			break
		}
	}
	s.cfg.Cache.Forget(store.CachedWebhooks, e.CompanyID)
}

// change is the effect of a result on an endpoint.
type change int

const (
	unchanged change = iota
	recovers
	beginsToFail
	isWarned
	isDisabled
)

func classify(e webhook.Endpoint, r result, now time.Time, warnAfter time.Duration) change {
	since := e.FailingSince
	if e.WarnedAt.After(since) {
		since = e.WarnedAt
	}
	switch {
	case !e.Enabled():
		return unchanged
	case r.succeeded() && e.FailingSince.IsZero():
		return unchanged
	case r.succeeded():
		return recovers
	case r.gone():
		return isDisabled
	case e.FailingSince.IsZero():
		return beginsToFail
	case now.Sub(since) < warnAfter:
		return unchanged
	case e.Warnings < maxWarnings:
		return isWarned
	}
	return isDisabled
}

// tryUpdateHealth applies a result to the stored endpoint, and returns Conflict if another process has changed it.
func (s *Service) tryUpdateHealth(ctx context.Context, id string, r result, now time.Time) error {
	e, err := s.cfg.Store.WebhookEndpoint(ctx, id)
	if err != nil {
		return err
	}
	switch classify(e, r, now, s.cfg.WarnAfter) {
	case unchanged:
		return nil
	case recovers:
		e.FailingSince = time.Time{}
		e.Warnings = 0
		e.WarnedAt = time.Time{}
	case beginsToFail:
		e.FailingSince = now
	case isWarned:
		e.Warnings++
		e.WarnedAt = now
		s.metrics.warnings.Inc()
		s.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "webhook endpoint is failing", slog.String("endpointId", id),
			slog.String("companyId", e.CompanyID), slog.Int("warning", e.Warnings), slog.Time("since", e.FailingSince))
	case isDisabled:
		e.DisabledAt = now
		e.DisabledReason = webhook.DisabledFailing
		if r.gone() {
			e.DisabledReason = webhook.DisabledGone
		}
		return s.disable(ctx, e)
	}
	return s.cfg.Store.UpdateWebhookEndpoint(ctx, e)
}

// disable notifies the company's other endpoints and then disables this one. A repeat after a crash in
// between creates the same delivery again, which is stored once.
func (s *Service) disable(ctx context.Context, e webhook.Endpoint) error {
	err := s.deliver(ctx, e.CompanyID, webhook.Event{
		Type:      webhook.TypeEndpointDisabled,
		Timestamp: chat.Time(e.DisabledAt),
		Key:       e.ID + ":" + strconv.FormatInt(e.Revision, 10),
		Data: webhook.EndpointDisabled{
			CompanyID:  e.CompanyID,
			EndpointID: e.ID,
			URL:        e.URL,
			Reason:     e.DisabledReason,
			DisabledAt: chat.Time(e.DisabledAt),
		},
	}, e.DisabledAt, e.ID)
	if err != nil {
		return err
	}
	if err := s.cfg.Store.UpdateWebhookEndpoint(ctx, e); err != nil {
		return err
	}
	s.metrics.disabled.WithLabelValues(e.DisabledReason).Inc()
	s.cfg.Logger.LogAttrs(
		ctx, slog.LevelWarn, "webhook endpoint disabled", slog.String("endpointId", e.ID),
		slog.String("companyId", e.CompanyID), slog.String("reason", e.DisabledReason),
	)
	return nil
}
