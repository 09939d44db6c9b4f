package admin

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/webhook"
)

const (
	// maxRetentionDays bounds the retention of the delivery log.
	maxRetentionDays = 365
	day              = 24 * time.Hour

	// MaxReplay is the maximum number of deliveries of one call of [Service.ReplayWebhooks].
	MaxReplay = 200
	// maxTests is how many tests a company may request in testPeriod: each one is a stored delivery and a
	// request to a server that the company chooses.
	maxTests   = 10
	testPeriod = time.Minute
	// changeAttempts limits the retries of a change that conflicts with concurrent changes of the endpoint.
	changeAttempts = 5
)

// endpointFields omits secrets and header values, which are often secrets.
func endpointFields(e webhook.Endpoint) fields {
	f := fields{
		"url":         shownURL(e.URL),
		"description": e.Description,
		"events":      append([]string{}, e.Events...),
		"ordered":     e.Ordered,
	}
	if len(e.Headers) > 0 {
		f["headers"] = slices.Sorted(maps.Keys(e.Headers))
	}
	if !e.Enabled() {
		f["disabledReason"] = e.DisabledReason
	}
	return f
}

// shownURL omits the query, which may contain a secret.
func shownURL(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return ""
	}
	u.RawQuery = ""
	return u.String()
}

// changedWebhooks notifies the services and writes the audit log.
func (s *Service) changedWebhooks(ctx context.Context, by Actor, e webhook.Endpoint, c change) error {
	if err := s.bus.RPC().Invalidate(ctx, store.CachedWebhooks, e.CompanyID); err != nil {
		return err
	}
	c.companyID = e.CompanyID
	c.target = "webhook"
	c.id = e.ID
	return s.audit(ctx, by, c)
}

// CreateWebhookEndpoint adds an endpoint with a new secret of each kind; without kinds, one for HMAC. Errors: Invalid,
// NotFound (no such company), Conflict with the reason TOO_MANY_ENDPOINTS.
func (s *Service) CreateWebhookEndpoint(
	ctx context.Context,
	by Actor,
	e webhook.Endpoint,
	kinds ...webhook.Kind,
) (webhook.Endpoint, error) {
	if _, err := s.store.Company(ctx, e.CompanyID); err != nil {
		return e, err
	}
	existing, err := s.store.WebhookEndpoints(ctx, e.CompanyID, store.Page{Limit: webhook.MaxEndpoints})
	if err != nil {
		return e, err
	}
	if len(existing) == webhook.MaxEndpoints {
		return e, apperr.TooManyEndpoints.New()
	}
	e.ID = chat.NewID()
	e.CreatedAt, e.Secrets = store.UTC(s.now()), nil
	if len(kinds) == 0 {
		kinds = []webhook.Kind{webhook.HMAC}
	}
	for _, kind := range slices.Compact(slices.Sorted(slices.Values(kinds))) {
		if kind != webhook.HMAC && kind != webhook.Ed25519 {
			return e, apperr.Fields{{Name: "signatures", Message: "must be some of v1, v1a"}}.Err()
		}
		e.Secrets = append(e.Secrets, webhook.NewSecret(kind, e.CreatedAt))
	}
	if err := s.store.CreateWebhookEndpoint(ctx, e); err != nil {
		return e, err
	}
	return e, s.changedWebhooks(ctx, by, e, change{action: "webhook.create", after: endpointFields(e)})
}

// changeWebhookEndpoint applies a change to the stored endpoint and returns the result.
func (s *Service) changeWebhookEndpoint(
	ctx context.Context, by Actor, id, action string, apply func(*webhook.Endpoint) error,
) (e webhook.Endpoint, err error) {
	for range changeAttempts {
		e, err = s.store.WebhookEndpoint(ctx, id)
		if err != nil {
			return e, err
		}
		before := e
		err = apply(&e)
		if err != nil {
			return e, err
		}
		err = s.store.UpdateWebhookEndpoint(ctx, e)
		if apperr.Is(err, apperr.Conflict) {
			continue
		}
		if err != nil {
			return e, err
		}
		return e, s.changedWebhooks(ctx, by, e, change{
			action: action, before: endpointFields(before), after: endpointFields(e),
			hidden: !maps.Equal(before.Headers, e.Headers) || !slices.Equal(before.Secrets, e.Secrets),
		})
	}
	return e, err
}

// WebhookChange lists changes of an endpoint; nil leaves a field unchanged.
type WebhookChange struct {
	URL         *string            `json:"url"`
	Description *string            `json:"description"`
	Events      *[]string          `json:"events"`
	Headers     *map[string]string `json:"headers"`
	Ordered     *bool              `json:"ordered"`
}

// headersOfOrigin is the error for a change of the origin that would take the stored header values, often
// secrets, to another server.
const headersOfOrigin = "must be given again, or removed, when the scheme, host or port of the URL changes: " +
	"the current values are not sent to another server"

// UpdateWebhookEndpoint changes an endpoint. A change of the URL's origin also needs the headers: Invalid.
func (s *Service) UpdateWebhookEndpoint(
	ctx context.Context,
	by Actor,
	id string,
	c WebhookChange,
) (webhook.Endpoint, error) {
	return s.changeWebhookEndpoint(ctx, by, id, "webhook.update", func(e *webhook.Endpoint) error {
		origin := e.URL
		set(&e.URL, c.URL)
		set(&e.Description, c.Description)
		set(&e.Events, c.Events)
		set(&e.Headers, c.Headers)
		set(&e.Ordered, c.Ordered)
		if err := e.Check(); err != nil {
			return err
		}
		if c.Headers == nil && len(e.Headers) > 0 && !webhook.SameOrigin(origin, e.URL) {
			return apperr.Fields{{Name: "headers", Message: headersOfOrigin}}.Err()
		}
		return nil
	})
}

func set[V any](field *V, value *V) {
	if value != nil {
		*field = *value
	}
}

// RotateWebhookSecrets creates a new secret of each kind that the endpoint has, and returns the new secrets. Earlier
// secrets also sign during the overlap.
func (s *Service) RotateWebhookSecrets(
	ctx context.Context, by Actor, id string, overlap time.Duration,
) (fresh []webhook.Secret, e webhook.Endpoint, err error) {
	if overlap < 0 || overlap > MaxOverlap {
		return nil, e, apperr.Fields{{Name: "overlapSeconds", Message: "must be 0 to 2592000"}}.Err()
	}
	e, err = s.changeWebhookEndpoint(ctx, by, id, "webhook.rotate", func(e *webhook.Endpoint) error {
		fresh = e.Rotate(store.UTC(s.now()), overlap)
		return nil
	})
	return fresh, e, err
}

// EnableWebhookEndpoint enables an endpoint and clears its warnings.
func (s *Service) EnableWebhookEndpoint(ctx context.Context, by Actor, id string) (webhook.Endpoint, error) {
	return s.changeWebhookEndpoint(ctx, by, id, "webhook.enable", func(e *webhook.Endpoint) error {
		e.DisabledAt = time.Time{}
		e.DisabledReason = ""
		e.FailingSince = time.Time{}
		e.Warnings = 0
		e.WarnedAt = time.Time{}
		return nil
	})
}

// DisableWebhookEndpoint stops deliveries to an endpoint. Events are still logged and can be replayed.
func (s *Service) DisableWebhookEndpoint(ctx context.Context, by Actor, id string) (webhook.Endpoint, error) {
	return s.changeWebhookEndpoint(ctx, by, id, "webhook.disable", func(e *webhook.Endpoint) error {
		if e.Enabled() {
			e.DisabledAt = store.UTC(s.now())
			e.DisabledReason = webhook.DisabledManually
		}
		return nil
	})
}

// DeleteWebhookEndpoint removes an endpoint and its log.
func (s *Service) DeleteWebhookEndpoint(ctx context.Context, by Actor, id string) error {
	e, err := s.store.WebhookEndpoint(ctx, id)
	if err != nil {
		return err
	}
	if err := s.store.DeleteWebhookEndpoint(ctx, id); err != nil {
		return err
	}
	return s.changedWebhooks(ctx, by, e, change{action: "webhook.delete", before: endpointFields(e)})
}

// TestWebhookEndpoint queues a webhook.test event for an endpoint and returns its delivery. A processor picks it up
// within a second or two. Errors: Conflict with the reason ENDPOINT_DISABLED for a disabled endpoint; TooMany.
func (s *Service) TestWebhookEndpoint(ctx context.Context, by Actor, id string) (webhook.Delivery, error) {
	e, err := s.store.WebhookEndpoint(ctx, id)
	switch {
	case err != nil:
		return webhook.Delivery{}, err
	case !e.Enabled():
		return webhook.Delivery{}, apperr.EndpointDisabled.New()
	}
	now := store.UTC(s.now())
	if err := s.admitTest(ctx, e.CompanyID, now); err != nil {
		return webhook.Delivery{}, err
	}
	key := chat.NewID()
	ev := webhook.Event{
		Type:      webhook.TypeTest,
		Timestamp: chat.Time(now),
		Key:       key,
		Data:      webhook.Test{CompanyID: e.CompanyID, EndpointID: e.ID},
	}
	body, err := ev.Body()
	if err != nil {
		return webhook.Delivery{}, err
	}
	d := webhook.Delivery{
		ID:          webhook.DeliveryID(e.ID, ev),
		CompanyID:   e.CompanyID,
		EndpointID:  e.ID,
		EventType:   ev.Type,
		Body:        body,
		OrderNumber: now.UnixNano(),
		CreatedAt:   now,
		Status:      webhook.Pending,
		DueAt:       now,
	}
	if _, err := s.store.InsertWebhookDelivery(ctx, d); err != nil {
		return d, err
	}
	return d, s.audit(ctx, by, change{companyID: e.CompanyID, action: "webhook.test", target: "webhook", id: e.ID})
}

// admitTest returns TooMany if the company has requested maxTests in the last testPeriod.
func (s *Service) admitTest(ctx context.Context, companyID string, now time.Time) error {
	recent := store.WebhookFilter{CompanyID: companyID, EventType: webhook.TypeTest, From: now.Add(-testPeriod)}
	var tests []webhook.Delivery
	for page := (store.Page{}); ; {
		page.Limit = maxTests - len(tests)
		found, next, err := s.store.WebhookDeliveries(ctx, recent, page)
		if err != nil {
			return err
		}
		tests = append(tests, found...)
		if len(tests) == maxTests {
			break
		}
		if next == "" {
			return nil
		}
		page.After = next
	}
	tooMany := apperr.TooManyRequests.WithMessage("Too many webhook tests. Try again later.")
	tooMany.RetryAfter = testPeriod - now.Sub(tests[maxTests-1].CreatedAt)
	return tooMany
}

// WebhookReplay selects deliveries to send again: one by its id, or a page of those that match the filter,
// newest first. Without a status the filter matches failed deliveries.
type WebhookReplay struct {
	ID     string
	Filter store.WebhookFilter
	After  string // the cursor that the call for the previous page returned; empty: from the newest
	DryRun bool
}

// ReplayWebhooks queues up to [MaxReplay] deliveries again, with the same webhook-id and a full set of
// attempts, and returns them, oldest first, and the cursor of the next page, or "". A page may be short or empty and
// still have a next one. It skips pending deliveries. A dry run only returns the selection.
func (s *Service) ReplayWebhooks(
	ctx context.Context,
	by Actor,
	r WebhookReplay,
) (replayed []webhook.Delivery, next string, err error) {
	if r.ID != "" {
		d, err := s.store.WebhookDelivery(ctx, r.ID)
		if err != nil {
			return nil, "", err
		}
		if r.Filter.CompanyID != "" && d.CompanyID != r.Filter.CompanyID ||
			r.Filter.EndpointID != "" && d.EndpointID != r.Filter.EndpointID {
			return nil, "", apperr.WebhookDeliveryNotFound.New()
		}
		replayed, err = s.replay(ctx, by, []webhook.Delivery{d}, r.DryRun)
		return replayed, "", err
	}
	if r.Filter.Status == "" {
		r.Filter.Status = webhook.Failed
	}
	found, next, err := s.store.WebhookDeliveries(ctx, r.Filter, store.Page{After: r.After, Limit: MaxReplay})
	if err != nil {
		return nil, "", err
	}
	slices.Reverse(found)
	replayed, err = s.replay(ctx, by, found, r.DryRun)
	return replayed, next, err
}

func (s *Service) replay(
	ctx context.Context,
	by Actor,
	found []webhook.Delivery,
	dryRun bool,
) (replayed []webhook.Delivery, err error) {
	count := map[string]int{}
	companies := map[string]string{}
	for _, d := range found {
		changed := d.Status != webhook.Pending
		if changed && !dryRun {
			changed, err = s.store.ReplayWebhookDelivery(ctx, d.ID, s.now())
			if err != nil {
				return replayed, err
			}
		}
		if changed {
			replayed = append(replayed, d)
			count[d.EndpointID]++
			companies[d.EndpointID] = d.CompanyID
		}
	}
	if dryRun {
		return replayed, nil
	}
	for _, endpoint := range slices.Sorted(maps.Keys(count)) {
		err := s.audit(ctx, by, change{
			companyID: companies[endpoint],
			action:    "webhook.replay",
			target:    "webhook",
			id:        endpoint,
			after:     fields{"count": count[endpoint]},
		})
		if err != nil {
			return replayed, err
		}
	}
	return replayed, nil
}

// IsDeliveryStatus reports whether deliveries may have this status.
func IsDeliveryStatus(status string) bool {
	return slices.Contains([]string{webhook.Pending, webhook.Delivered, webhook.Failed}, status)
}

// RetentionDays returns how long a company's delivery log is kept, in days; 0: the default.
func RetentionDays(c chat.Company) int { return int(c.WebhookRetention / day) }

// SetWebhookRetention sets for how many days a company's delivery log is kept; 0: the default. It applies to
// deliveries that finish afterwards.
func (s *Service) SetWebhookRetention(
	ctx context.Context,
	by Actor,
	companyID string,
	days int64,
) (chat.Company, error) {
	if days < 0 || days > maxRetentionDays {
		faults := apperr.Fields{{Name: "retentionDays", Message: "must be 1 to 365, or 0 for the default"}}
		return chat.Company{}, faults.Err()
	}
	c, err := s.store.Company(ctx, companyID)
	if err != nil {
		return c, err
	}
	before := retentionFields(c)
	c.WebhookRetention = time.Duration(days) * day
	if err := s.store.PutCompany(ctx, c); err != nil {
		return c, err
	}
	if err := s.bus.RPC().Invalidate(ctx, store.CachedWebhooks, c.ID); err != nil {
		return c, err
	}
	return c, s.audit(ctx, by, change{
		companyID: c.ID,
		action:    "company.webhook-retention",
		target:    "company",
		id:        c.ID,
		before:    before,
		after:     retentionFields(c),
	})
}

func retentionFields(c chat.Company) fields {
	return fields{"webhookRetentionSeconds": int64(c.WebhookRetention / time.Second)}
}
