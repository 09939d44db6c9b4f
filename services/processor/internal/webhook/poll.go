package webhook

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/webhook"
)

const (
	// pollPause is the minimum time between two polls.
	pollPause = 10 * time.Millisecond
	// orderPause is how long a delivery waits for its predecessor, unless that one ends earlier.
	orderPause = 5 * time.Second
)

// poll starts due deliveries until ctx is done.
func (s *Service) poll(ctx context.Context) {
	tick := time.NewTicker(s.cfg.PollEvery)
	defer tick.Stop()
	failing := false
	for {
		err := s.beginDue(ctx)
		if ctx.Err() != nil {
			return
		}
		if (err != nil) != failing {
			failing = err != nil
			s.warn(ctx, "looking for due deliveries", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-s.wake:
			select {
			case <-ctx.Done():
				return
			case <-time.After(pollPause):
			}
		}
	}
}

// beginDue starts due deliveries of each company, as many as the company may send at once. The order of the
// companies is random, so that none is always the first to take the free slots.
func (s *Service) beginDue(ctx context.Context) error {
	s.limiters.forget(s.cfg.Now())
	companies, err := s.cfg.Store.DueWebhookCompanies(ctx, s.cfg.Now())
	if err != nil {
		return err
	}
	rand.Shuffle(len(companies), func(i, j int) { companies[i], companies[j] = companies[j], companies[i] })
	for _, company := range companies {
		if err := s.beginDueOf(ctx, company); err != nil {
			return err
		}
	}
	return nil
}

// beginDueOf starts due deliveries of a company. It skips those of an endpoint without a free slot, so that
// they do not hide others. Deliveries that this process has started stay due until they are claimed, so it
// looks for that many more.
func (s *Service) beginDueOf(ctx context.Context, companyID string) error {
	for {
		free, started := s.limiters.room(companyID)
		if free == 0 {
			return nil
		}
		now := s.cfg.Now()
		page := free + started
		due, err := s.cfg.Store.DueWebhookDeliveries(ctx, companyID, now, s.limiters.full(now), page)
		if err != nil {
			return err
		}
		begun := 0
		for _, d := range due {
			if s.beginOne(companyID, d, now) {
				begun++
			}
		}
		if begun == 0 || len(due) < page {
			return nil
		}
	}
}

// beginOne claims a due delivery and attempts it in a new goroutine.
func (s *Service) beginOne(companyID string, due webhook.Due, now time.Time) bool {
	if !s.begin(due.ID) {
		return false
	}
	if !s.limiters.reserve(companyID, due.EndpointID, now) {
		s.end(due.ID)
		return false
	}
	go func() {
		defer s.end(due.ID)
		defer s.release(companyID, due.EndpointID)
		if err := s.claimAndAttempt(due.ID); err != nil {
			s.warn(s.requests, "claiming a delivery; it is repeated", err)
		}
	}()
	return true
}

// claimAndAttempt claims a delivery and attempts it if it may be sent.
func (s *Service) claimAndAttempt(id string) error {
	ctx := context.WithoutCancel(s.requests)
	now := s.cfg.Now()
	d, claimed, err := s.cfg.Store.ClaimWebhookDelivery(ctx, id, now, now.Add(s.lease()))
	if err != nil || !claimed {
		return err
	}
	hooks, err := s.cfg.Cache.Webhooks(ctx, d.CompanyID)
	if err != nil {
		return err
	}
	retention := s.stored.retention(d.CompanyID, hooks.Retention)
	e, err := s.endpoint(ctx, hooks.Endpoints, d.EndpointID)
	if err != nil && !apperr.Is(err, apperr.NotFound) {
		return err
	}
	if err != nil || !e.Enabled() {
		outcome := webhook.Outcome{
			Status:    webhook.Failed,
			Reason:    webhook.ReasonDisabled,
			ExpiresAt: now.Add(retention),
		}
		s.metrics.ended(outcome)
		if err := s.cfg.Store.EndWebhookAttempt(ctx, id, nil, outcome); err != nil {
			return err
		}
		s.advance(ctx, d, outcome)
		return nil
	}
	waits, err := s.hasEarlier(ctx, d)
	if err != nil {
		return err
	}
	if waits {
		return s.cfg.Store.EndWebhookAttempt(ctx, id, nil, webhook.Postponed(now.Add(orderPause)))
	}
	s.attempt(e, d, retention)
	return nil
}

// endpoint finds an endpoint in the cache. A missing or disabled one is read again: it may have been created
// or enabled a moment ago, and its delivery would be given up.
func (s *Service) endpoint(ctx context.Context, known []webhook.Endpoint, id string) (webhook.Endpoint, error) {
	for _, e := range known {
		if e.ID == id && e.Enabled() {
			return e, nil
		}
	}
	return s.cfg.Store.WebhookEndpoint(ctx, id)
}
