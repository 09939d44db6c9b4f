package http

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/admin/view"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/webhook"
)

func (a api) viewOfWebhook(e webhook.Endpoint) view.Endpoint { return view.EndpointOf(e, a.Now()) }

func (a api) getWebhooks(c echo.Context, _ caller, company string) error {
	owner, err := a.Store.Company(ctxOf(c), company)
	if err != nil {
		return err
	}
	read := recordsOf(a.Store.WebhookEndpoints, company)
	id := func(e webhook.Endpoint) string { return e.ID }
	return answerList(c, "endpoints", read, id, a.viewOfWebhook, map[string]any{
		"types":         webhook.Types(),
		"retentionDays": admin.RetentionDays(owner),
	})
}

// endpoint finds the endpoint of a route.
func (a api) endpoint(c echo.Context, who caller) (webhook.Endpoint, error) {
	return recordOf(
		c, who, a.Store.WebhookEndpoint, func(e webhook.Endpoint) string { return e.CompanyID },
		apperr.WebhookEndpointNotFound,
	)
}

type createWebhookRequest struct {
	URL         string            `json:"url"`
	Description string            `json:"description"`
	Events      []string          `json:"events"`
	Headers     map[string]string `json:"headers"`
	Ordered     bool              `json:"ordered"`
	Signatures  []webhook.Kind    `json:"signatures"`
}

func (a api) createWebhook(c echo.Context, who caller, company string, r createWebhookRequest) (any, error) {
	e, err := a.Admin.CreateWebhookEndpoint(ctxOf(c), who.actor(), webhook.Endpoint{
		CompanyID:   company,
		URL:         r.URL,
		Description: r.Description,
		Events:      r.Events,
		Headers:     r.Headers,
		Ordered:     r.Ordered,
	}, r.Signatures...)
	return created(a.withSecrets(e, e.Secrets)), err
}

// withSecrets returns an endpoint with what verifies signatures of its new secrets, which is shown once.
func (a api) withSecrets(e webhook.Endpoint, fresh []webhook.Secret) map[string]any {
	return map[string]any{"endpoint": a.viewOfWebhook(e), "secrets": view.Verifiers(fresh)}
}

func (a api) updateWebhook(c echo.Context, who caller, e webhook.Endpoint, r admin.WebhookChange) (any, error) {
	e, err := a.Admin.UpdateWebhookEndpoint(ctxOf(c), who.actor(), e.ID, r)
	return a.viewOfWebhook(e), err
}

func (a api) deleteWebhook(c echo.Context, who caller, e webhook.Endpoint) (any, error) {
	return nil, a.Admin.DeleteWebhookEndpoint(ctxOf(c), who.actor(), e.ID)
}

func (a api) rotateWebhook(c echo.Context, who caller, e webhook.Endpoint, r overlapRequest) (any, error) {
	fresh, e, err := a.Admin.RotateWebhookSecrets(ctxOf(c), who.actor(), e.ID, r.overlap())
	return created(a.withSecrets(e, fresh)), err
}

func (a api) enableWebhook(c echo.Context, who caller, e webhook.Endpoint) (any, error) {
	e, err := a.Admin.EnableWebhookEndpoint(ctxOf(c), who.actor(), e.ID)
	return a.viewOfWebhook(e), err
}

func (a api) disableWebhook(c echo.Context, who caller, e webhook.Endpoint) (any, error) {
	e, err := a.Admin.DisableWebhookEndpoint(ctxOf(c), who.actor(), e.ID)
	return a.viewOfWebhook(e), err
}

func (a api) testWebhook(c echo.Context, who caller, e webhook.Endpoint) (any, error) {
	d, err := a.Admin.TestWebhookEndpoint(ctxOf(c), who.actor(), e.ID)
	return answered{http.StatusAccepted, view.DeliveryOf(d)}, err
}

// deliveryFilter parses the filter of an endpoint's deliveries.
func deliveryFilter(e webhook.Endpoint, status, reason, eventType, from, to string) (f store.WebhookFilter, err error) {
	f = store.WebhookFilter{
		EndpointID: e.ID,
		CompanyID:  e.CompanyID,
		Status:     status,
		Reason:     reason,
		EventType:  eventType,
	}
	var faults apperr.Fields
	for _, end := range []struct {
		name, value string
		into        *time.Time
	}{{"from", from, &f.From}, {"to", to, &f.To}} {
		if end.value == "" {
			continue
		}
		*end.into, err = time.Parse(time.RFC3339, end.value)
		if err != nil {
			faults.Add(end.name, "must be a time such as 2027-01-31T12:00:00Z")
		}
	}
	if status != "" && !admin.IsDeliveryStatus(status) {
		faults.Add("status", "must be pending, delivered or failed")
	}
	return f, faults.Err()
}

func (a api) getDeliveries(c echo.Context, _ caller, e webhook.Endpoint) error {
	q := c.QueryParam
	filter, err := deliveryFilter(e, q("status"), q("reason"), q("eventType"), q("from"), q("to"))
	if err != nil {
		return err
	}
	read := func(ctx context.Context, p store.Page) ([]webhook.Delivery, string, error) {
		return a.Store.WebhookDeliveries(ctx, filter, p)
	}
	return answerExamined(c, "deliveries", read, deliveryID, view.DeliveryOf)
}

func deliveryID(d webhook.Delivery) string { return d.ID }

type replayRequest struct {
	ID        string `json:"id"`
	Status    string `json:"status"`
	Reason    string `json:"reason"`
	EventType string `json:"eventType"`
	From      string `json:"from"`
	To        string `json:"to"`
	Cursor    string `json:"cursor"`
	DryRun    bool   `json:"dryRun"`
}

func (a api) replayDeliveries(c echo.Context, who caller) error {
	r, err := decoded[replayRequest](c)
	if err != nil {
		return err
	}
	e, err := a.endpoint(c, who)
	if err != nil {
		return err
	}
	filter, err := deliveryFilter(e, r.Status, r.Reason, r.EventType, r.From, r.To)
	if err != nil {
		return err
	}
	selected := admin.WebhookReplay{ID: r.ID, Filter: filter, After: r.Cursor, DryRun: r.DryRun}
	replayed, next, err := a.Admin.ReplayWebhooks(ctxOf(c), who.actor(), selected)
	if r.Cursor != "" && apperr.Is(err, apperr.NotFound) {
		return errCursor()
	}
	if err != nil {
		return err
	}
	return answerPage(c, next, map[string]any{"deliveryIds": view.ListOf(replayed, deliveryID), "dryRun": r.DryRun})
}

type retentionRequest struct {
	RetentionDays int64 `json:"retentionDays"`
}

func (a api) setWebhookRetention(c echo.Context, who caller, company string, r retentionRequest) (any, error) {
	owner, err := a.Admin.SetWebhookRetention(ctxOf(c), who.actor(), company, r.RetentionDays)
	return map[string]any{"retentionDays": admin.RetentionDays(owner)}, err
}
