package sqlite

import (
	"context"
	"encoding/json"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"

	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/webhook"
)

const (
	endpointColumns = `id, company_id, url, description, events, headers, secrets, ordered, created_at, disabled_at, disabled_reason,
	failing_since, warnings, warned_at, revision`
	deliveryColumns = `id, company_id, endpoint_id, event_type, chat_id, body, order_key, position, created_at, status, reason, due_at, tries,
	attempts, expires_at, size`
)

func readEndpointRecord(r *row) store.WebhookEndpointRecord {
	return store.WebhookEndpointRecord{
		ID: r.text(), CompanyID: r.text(), URL: r.text(), Description: r.text(), Events: list[string](r),
		Headers:        list[store.WebhookHeaderRecord](r),
		Secrets:        list[store.WebhookSecretRecord](r),
		Ordered:        r.bool(),
		CreatedAt:      r.time(),
		DisabledAt:     r.time(),
		DisabledReason: r.text(),
		FailingSince:   r.time(),
		Warnings:       int(r.int()),
		WarnedAt:       r.time(),
		Revision:       r.int(),
	}
}

func readEndpoint(r *row) webhook.Endpoint { return readEndpointRecord(r).Endpoint() }

func putEndpoint(c *conn, e webhook.Endpoint) error {
	v := store.WebhookEndpointRecordOf(e)
	_, err := c.insert(
		orReplace, `webhook_endpoints`, endpointColumns,
		v.ID, v.CompanyID, v.URL, v.Description, listText(v.Events), listText(v.Headers), listText(v.Secrets),
		v.Ordered, v.CreatedAt, v.DisabledAt, v.DisabledReason, v.FailingSince, v.Warnings, v.WarnedAt,
		v.Revision,
	)
	return err
}

// WebhookEndpoint implements [store.WebhookEndpoints].
func (s *Store) WebhookEndpoint(ctx context.Context, id string) (webhook.Endpoint, error) {
	return one(
		ctx, s, "reading a webhook endpoint",
		`SELECT `+endpointColumns+` FROM webhook_endpoints WHERE id = ?`, readEndpoint,
		apperr.WebhookEndpointNotFound, id,
	)
}

// CreateWebhookEndpoint implements [store.WebhookEndpoints].
func (s *Store) CreateWebhookEndpoint(ctx context.Context, e webhook.Endpoint) error {
	return update(
		ctx, s, "creating a webhook endpoint",
		func(c *conn) error { return putEndpoint(c, e) },
	)
}

// UpdateWebhookEndpoint implements [store.WebhookEndpoints].
func (s *Store) UpdateWebhookEndpoint(ctx context.Context, e webhook.Endpoint) error {
	return update(ctx, s, "changing a webhook endpoint", func(c *conn) error {
		err := checkRevision(c, `webhook_endpoints`, e.ID, e.Revision, apperr.WebhookEndpointNotFound)
		if err != nil {
			return err
		}
		e.Revision++
		return putEndpoint(c, e)
	})
}

// DeleteWebhookEndpoint implements [store.WebhookEndpoints].
func (s *Store) DeleteWebhookEndpoint(ctx context.Context, id string) error {
	return update(ctx, s, "deleting a webhook endpoint", func(c *conn) error {
		changed, err := c.exec(`DELETE FROM webhook_endpoints WHERE id = ?`, id)
		if err != nil {
			return err
		}
		if changed == 0 {
			return apperr.WebhookEndpointNotFound.New()
		}
		_, err = c.exec(`DELETE FROM webhook_deliveries WHERE endpoint_id = ?`, id)
		return err
	})
}

// WebhookEndpoints implements [store.WebhookEndpoints].
func (s *Store) WebhookEndpoints(ctx context.Context, companyID string, p store.Page) ([]webhook.Endpoint, error) {
	const from = `SELECT ` + endpointColumns + ` FROM webhook_endpoints WHERE id > ?`
	return listOfCompany(ctx, s, "listing webhook endpoints", from, readEndpoint, companyID, p)
}

func readDeliveryRecord(r *row) store.WebhookDeliveryRecord {
	return store.WebhookDeliveryRecord{
		ID:          r.text(),
		CompanyID:   r.text(),
		EndpointID:  r.text(),
		EventType:   r.text(),
		ChatID:      r.text(),
		Body:        r.text(),
		OrderKey:    r.text(),
		OrderNumber: r.int(),
		CreatedAt:   r.time(),
		Status:      r.text(),
		Reason:      r.text(),
		DueAt:       r.time(),
		Tries:       int(r.int()),
		Attempts:    list[store.WebhookAttemptRecord](r),
		ExpiresAt:   r.time(),
		Size:        r.int(),
	}
}

func readDelivery(r *row) webhook.Delivery { return readDeliveryRecord(r).Delivery() }

func replaceDelivery(c *conn, d webhook.Delivery) error {
	_, err := writeDelivery(c, orReplace, d)
	return err
}

func writeDelivery(c *conn, verb string, d webhook.Delivery) (written bool, err error) {
	v := store.WebhookDeliveryRecordOf(d)
	return c.insert(
		verb, `webhook_deliveries`, deliveryColumns,
		v.ID, v.CompanyID, v.EndpointID, v.EventType, v.ChatID, v.Body, v.OrderKey, v.OrderNumber, v.CreatedAt,
		v.Status, v.Reason, v.DueAt, v.Tries, listText(v.Attempts), v.ExpiresAt, v.Size,
	)
}

// InsertWebhookDelivery implements [store.WebhookDeliveries].
func (s *Store) InsertWebhookDelivery(ctx context.Context, d webhook.Delivery) (bool, error) {
	return write(ctx, s, "inserting a webhook delivery", func(c *conn) (bool, error) {
		return writeDelivery(c, orIgnore, d)
	})
}

const oneDelivery = `SELECT ` + deliveryColumns + ` FROM webhook_deliveries WHERE id = ?`

// WebhookDelivery implements [store.WebhookDeliveries].
func (s *Store) WebhookDelivery(ctx context.Context, id string) (webhook.Delivery, error) {
	return one(ctx, s, "reading a webhook delivery", oneDelivery, readDelivery, apperr.WebhookDeliveryNotFound, id)
}

// deliveryPage is the result of WebhookDeliveries.
type deliveryPage struct {
	found []webhook.Delivery
	next  string
}

// WebhookDeliveries implements [store.WebhookDeliveries]. It examines deliveries without their bodies, and then reads
// those of the page.
func (s *Store) WebhookDeliveries(
	ctx context.Context,
	f store.WebhookFilter,
	p store.Page,
) ([]webhook.Delivery, string, error) {
	page, err := scan(ctx, s, "listing webhook deliveries", func(c *conn) (deliveryPage, error) {
		ids, next, err := examineDeliveries(c, f, p)
		if err != nil {
			return deliveryPage{}, err
		}
		found, err := deliveriesOf(c, ids)
		return deliveryPage{found: found, next: next}, err
	})
	return page.found, page.next, err
}

// examineDeliveries returns the ids of a page, and the cursor of the next one.
func examineDeliveries(c *conn, f store.WebhookFilter, p store.Page) (ids []string, next string, err error) {
	sql, args, err := deliveryList(c, f, p)
	if err != nil {
		return nil, "", err
	}
	page := store.Examination[string]{Limit: p.Size(), MaxBytes: store.MaxDeliveryBytes}
	err = c.query(sql, func(r *row) bool {
		d := webhook.Delivery{
			ID: r.text(), CompanyID: r.text(), EndpointID: r.text(), EventType: r.text(), CreatedAt: r.time(),
			Status: r.text(), Reason: r.text(),
		}
		return page.Examine(d.ID, d.ID, f.Wants(d), r.int())
	}, args...)
	return page.Found, page.Next, err
}

// deliveriesOf reads deliveries by their ids, in the same order. One that has been deleted meanwhile is left out.
func deliveriesOf(c *conn, ids []string) ([]webhook.Delivery, error) {
	found := []webhook.Delivery{}
	for _, id := range ids {
		_, err := c.first(oneDelivery, func(r *row) { found = append(found, readDelivery(r)) }, id)
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// deliveryCursor finds the delivery of a page's cursor among those of the filter's endpoint and company.
const deliveryCursor = `SELECT created_at FROM webhook_deliveries
	WHERE id = ?1 AND (?2 = '' OR endpoint_id = ?2) AND (?3 = '' OR company_id = ?3)`

// examinedColumns are what a filter compares, and the size.
const examinedColumns = `id, company_id, endpoint_id, event_type, created_at, status, reason, size`

// deliveryList returns the query of the deliveries that a list examines, without a limit: reading stops when the page
// is full. The endpoint is the more selective condition. Conditions without an index are evaluated in Go.
func deliveryList(c *conn, f store.WebhookFilter, p store.Page) (sql string, args []any, err error) {
	sql = `SELECT ` + examinedColumns + ` FROM webhook_deliveries WHERE TRUE`
	where := func(condition string, values ...any) { sql, args = sql+" AND "+condition, append(args, values...) }
	company := "company_id = ?"
	if f.EndpointID != "" {
		where("endpoint_id = ?", f.EndpointID)
		company = "+company_id = ?"
	}
	if f.CompanyID != "" {
		where(company, f.CompanyID)
	}
	if !f.From.IsZero() {
		where("created_at >= ?", f.From)
	}
	if !f.To.IsZero() {
		where("created_at < ?", f.To)
	}
	if p.After != "" {
		var at time.Time
		found, err := c.first(deliveryCursor, func(r *row) { at = r.time() }, p.After, f.EndpointID, f.CompanyID)
		if err != nil || !found {
			return "", nil, orElse(err, apperr.WebhookDeliveryNotFound.New())
		}
		where("created_at <= ? AND (created_at < ? OR id > ?)", at, at, p.After)
	}
	return sql + " ORDER BY created_at DESC, id", args, nil
}

const storedDeliveries = `SELECT ifnull(sum(size), 0) FROM webhook_deliveries WHERE company_id = ?`

// StoredWebhookBytes implements [store.WebhookDeliveries].
func (s *Store) StoredWebhookBytes(ctx context.Context, companyID string) (int64, error) {
	return scan(ctx, s, "adding up webhook deliveries", func(c *conn) (bytes int64, err error) {
		_, err = c.first(storedDeliveries, func(r *row) { bytes = r.int() }, companyID)
		return bytes, err
	})
}

// dueCompanies seeks from one company to the next in the index, so that its cost does not depend on the
// number of deliveries.
const dueCompanies = `WITH RECURSIVE company(id) AS (
		SELECT min(company_id) FROM webhook_deliveries WHERE due_at IS NOT NULL
		UNION ALL
		SELECT (SELECT min(company_id) FROM webhook_deliveries WHERE due_at IS NOT NULL AND company_id > company.id) FROM company WHERE id IS NOT NULL
	)
	SELECT id FROM company WHERE EXISTS (SELECT 1 FROM webhook_deliveries WHERE company_id = company.id AND due_at <= ?)`

// DueWebhookCompanies implements [store.WebhookDeliveries].
func (s *Store) DueWebhookCompanies(ctx context.Context, now time.Time) ([]string, error) {
	return all(ctx, s, "listing companies with due webhook deliveries", dueCompanies, (*row).text, now)
}

const dueDeliveries = `SELECT id, endpoint_id FROM webhook_deliveries
	WHERE company_id = ?1 AND due_at <= ?2 AND endpoint_id NOT IN (SELECT value FROM json_each(?3)) ORDER BY due_at LIMIT ?4`

// DueWebhookDeliveries implements [store.WebhookDeliveries].
func (s *Store) DueWebhookDeliveries(
	ctx context.Context, companyID string, now time.Time, except []string, limit int,
) ([]webhook.Due, error) {
	excluded, err := json.Marshal(append([]string{}, except...))
	if err != nil {
		return nil, err
	}
	return all(ctx, s, "listing due webhook deliveries", dueDeliveries,
		func(r *row) webhook.Due { return webhook.Due{ID: r.text(), EndpointID: r.text()} }, companyID, now, excluded, limit)
}

// claim is the result of ClaimWebhookDelivery.
type claim struct {
	delivery webhook.Delivery
	claimed  bool
}

// ClaimWebhookDelivery implements [store.WebhookDeliveries].
func (s *Store) ClaimWebhookDelivery(
	ctx context.Context,
	id string,
	now, until time.Time,
) (webhook.Delivery, bool, error) {
	result, err := write(ctx, s, "claiming a webhook delivery", func(c *conn) (claim, error) {
		changed, err := c.exec(`UPDATE webhook_deliveries SET due_at = ?3 WHERE id = ?1 AND due_at <= ?2`, id, now, until)
		if err != nil || changed == 0 {
			return claim{}, err
		}
		result := claim{claimed: true}
		_, err = c.first(oneDelivery, func(r *row) { result.delivery = readDelivery(r) }, id)
		return result, err
	})
	return result.delivery, result.claimed, err
}

// EndWebhookAttempt implements [store.WebhookDeliveries].
func (s *Store) EndWebhookAttempt(ctx context.Context, id string, a *webhook.Attempt, o webhook.Outcome) error {
	return update(ctx, s, "ending a webhook attempt", func(c *conn) error {
		var v store.WebhookDeliveryRecord
		found, err := c.first(oneDelivery, func(r *row) { v = readDeliveryRecord(r) }, id)
		if err != nil || !found {
			return err
		}
		if a != nil {
			v.Tries++
			v.Attempts = append(v.Attempts, store.WebhookAttemptRecordOf(*a))
			v.Size += a.Size()
			v.Attempts = v.Attempts[max(0, len(v.Attempts)-webhook.MaxAttempts):]
		}
		if v.Status == webhook.Pending {
			v.Status = o.Status
			v.Reason = o.Reason
			v.DueAt = store.UTC(o.DueAt)
			v.ExpiresAt = store.UTC(o.ExpiresAt)
		}
		_, err = c.exec(
			`UPDATE webhook_deliveries SET tries = ?2, attempts = ?3, status = ?4, reason = ?5, due_at = ?6, expires_at = ?7, size = ?8
			WHERE id = ?1`,
			id, v.Tries, listText(v.Attempts), v.Status, v.Reason, v.DueAt, v.ExpiresAt, v.Size,
		)
		return err
	})
}

// ReplayWebhookDelivery implements [store.WebhookDeliveries].
func (s *Store) ReplayWebhookDelivery(ctx context.Context, id string, at time.Time) (bool, error) {
	return write(ctx, s, "replaying a webhook delivery", func(c *conn) (bool, error) {
		found, err := c.first(`SELECT 1 FROM webhook_deliveries WHERE id = ?`, func(*row) {}, id)
		if err != nil || !found {
			return false, orElse(err, apperr.WebhookDeliveryNotFound.New())
		}
		changed, err := c.exec(
			`UPDATE webhook_deliveries SET status = ?2, reason = '', due_at = ?3, tries = 0, expires_at = NULL
			WHERE id = ?1 AND due_at IS NULL`,
			id,
			webhook.Pending,
			at,
		)
		return changed > 0, err
	})
}

const firstInOrder = `SELECT id, position FROM webhook_deliveries
	WHERE endpoint_id = ? AND order_key = ? AND due_at IS NOT NULL AND order_key <> '' ORDER BY position LIMIT 1`

// FirstWebhookDelivery implements [store.WebhookDeliveries].
func (s *Store) FirstWebhookDelivery(ctx context.Context, endpointID, orderKey string) (webhook.InOrder, error) {
	return one(ctx, s, "looking for the first webhook delivery of an order", firstInOrder,
		func(r *row) webhook.InOrder { return webhook.InOrder{ID: r.text(), OrderNumber: r.int()} },
		apperr.WebhookDeliveryNotFound, endpointID, orderKey)
}
