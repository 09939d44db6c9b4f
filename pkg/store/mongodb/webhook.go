package mongodb

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/webhook"
)

// The documents are [store.WebhookEndpointRecord]s and [store.WebhookDeliveryRecord]s. MongoDB removes deliveries at
// their ExpiresAt.

// WebhookEndpoint implements [store.WebhookEndpoints].
func (s *Store) WebhookEndpoint(ctx context.Context, id string) (webhook.Endpoint, error) {
	d, err := get[store.WebhookEndpointRecord](ctx, s, webhookEndpoints, id)
	return d.Endpoint(), err
}

// CreateWebhookEndpoint implements [store.WebhookEndpoints].
func (s *Store) CreateWebhookEndpoint(ctx context.Context, e webhook.Endpoint) error {
	return s.put(ctx, webhookEndpoints, e.ID, store.WebhookEndpointRecordOf(e))
}

// UpdateWebhookEndpoint implements [store.WebhookEndpoints].
func (s *Store) UpdateWebhookEndpoint(ctx context.Context, e webhook.Endpoint) error {
	current := e.Revision
	e.Revision++
	return s.replaceRevision(ctx, webhookEndpoints, e.ID, current, store.WebhookEndpointRecordOf(e))
}

// DeleteWebhookEndpoint implements [store.WebhookEndpoints]. Deliveries are deleted last: those left by a crash have no
// endpoint, and the processor fails them.
func (s *Store) DeleteWebhookEndpoint(ctx context.Context, id string) error {
	n, err := s.deleteAll(ctx, webhookEndpoints, byID(id))
	if err == nil && n == 0 {
		return apperr.WebhookEndpointNotFound.New()
	}
	if err == nil {
		_, err = s.deleteAll(ctx, webhookDeliveries, bson.D{{Key: "endpointId", Value: id}})
	}
	return err
}

// WebhookEndpoints implements [store.WebhookEndpoints].
func (s *Store) WebhookEndpoints(ctx context.Context, companyID string, p store.Page) ([]webhook.Endpoint, error) {
	return list(ctx, s, webhookEndpoints, ofCompany(companyID, byIDs(p)),
		func(d store.WebhookEndpointRecord) (webhook.Endpoint, bool) { return d.Endpoint(), true })
}

// InsertWebhookDelivery implements [store.WebhookDeliveries].
func (s *Store) InsertWebhookDelivery(ctx context.Context, d webhook.Delivery) (bool, error) {
	return s.insert(ctx, webhookDeliveries, store.WebhookDeliveryRecordOf(d))
}

// WebhookDelivery implements [store.WebhookDeliveries].
func (s *Store) WebhookDelivery(ctx context.Context, id string) (webhook.Delivery, error) {
	d, err := get[store.WebhookDeliveryRecord](ctx, s, webhookDeliveries, id)
	return d.Delivery(), err
}

// examinedDelivery is what a filter compares of a delivery, and its size.
type examinedDelivery struct {
	ID         string    `bson:"_id"`
	CompanyID  string    `bson:"companyId"`
	EndpointID string    `bson:"endpointId"`
	EventType  string    `bson:"eventType"`
	CreatedAt  time.Time `bson:"createdAt"`
	Status     string    `bson:"status"`
	Reason     string    `bson:"reason"`
	Size       int64     `bson:"size"`
}

func (d examinedDelivery) wanted(f store.WebhookFilter) bool {
	return f.Wants(webhook.Delivery{
		ID: d.ID, CompanyID: d.CompanyID, EndpointID: d.EndpointID, EventType: d.EventType, CreatedAt: store.UTC(d.CreatedAt),
		Status: d.Status, Reason: d.Reason,
	})
}

// newestDeliveries is the order of a list.
var newestDeliveries = bson.D{desc("createdAt"), asc("_id")}

// WebhookDeliveries implements [store.WebhookDeliveries]. It examines deliveries without their bodies, and then reads
// those of the page. Of the conditions without an index, those on a time bound the range; the others are evaluated in
// Go.
func (s *Store) WebhookDeliveries(
	ctx context.Context,
	f store.WebhookFilter,
	p store.Page,
) ([]webhook.Delivery, string, error) {
	filter, err := s.deliveryRange(ctx, f, p.After)
	if err != nil {
		return nil, "", err
	}
	page := store.Examination[string]{Limit: p.Size(), MaxBytes: store.MaxDeliveryBytes}
	q := listQuery{filter: filter, sort: newestDeliveries, fields: fieldsOf(
		"companyId", "endpointId", "eventType", "createdAt", "status", "reason", "size",
	)}
	err = examine(ctx, s, webhookDeliveries, q, &page, func(d examinedDelivery) (string, string, bool, int64) {
		return d.ID, d.ID, d.wanted(f), d.Size
	})
	if err != nil {
		return nil, "", err
	}
	found, err := s.deliveriesOf(ctx, page.Found)
	return found, page.Next, err
}

// deliveryRange selects the deliveries after the cursor that an index finds.
func (s *Store) deliveryRange(ctx context.Context, f store.WebhookFilter, after string) (filter bson.D, err error) {
	for _, condition := range []bson.E{
		{Key: "endpointId", Value: f.EndpointID},
		{Key: "companyId", Value: f.CompanyID},
	} {
		if condition.Value != "" {
			filter = append(filter, condition)
		}
	}
	created := bson.D{}
	if !f.From.IsZero() {
		created = append(created, bson.E{Key: "$gte", Value: store.UTC(f.From)})
	}
	if !f.To.IsZero() {
		created = append(created, bson.E{Key: "$lt", Value: store.UTC(f.To)})
	}
	if after != "" {
		last, err := findOne[examinedDelivery](
			ctx, s, webhookDeliveries, byID(after), "endpointId", "companyId", "createdAt",
		)
		if err != nil {
			return nil, err
		}
		if f.EndpointID != "" && last.EndpointID != f.EndpointID || f.CompanyID != "" && last.CompanyID != f.CompanyID {
			return nil, apperr.WebhookDeliveryNotFound.New()
		}
		created = append(created, bson.E{Key: "$lte", Value: last.CreatedAt})
		filter = append(filter, eitherAfter("createdAt", "$lt", last.CreatedAt, after))
	}
	if len(created) > 0 {
		filter = append(filter, bson.E{Key: "createdAt", Value: created})
	}
	return filter, nil
}

// deliveriesOf reads deliveries by their ids, newest first. One that has been deleted meanwhile is left out.
func (s *Store) deliveriesOf(ctx context.Context, ids []string) ([]webhook.Delivery, error) {
	if len(ids) == 0 {
		return []webhook.Delivery{}, nil
	}
	q := listQuery{
		filter: bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}},
		sort:   newestDeliveries,
		limit:  len(ids),
	}
	return list(ctx, s, webhookDeliveries, q, func(d store.WebhookDeliveryRecord) (webhook.Delivery, bool) {
		return d.Delivery(), true
	})
}

// due restricts a filter to deliveries that are pending and due.
func due(filter bson.D, now time.Time) bson.D {
	return append(pending(filter), bson.E{Key: "dueAt", Value: bson.D{{Key: "$lte", Value: store.UTC(now)}}})
}

// StoredWebhookBytes implements [store.WebhookDeliveries].
func (s *Store) StoredWebhookBytes(ctx context.Context, companyID string) (int64, error) {
	usage, err := s.sumSizes(ctx, webhookDeliveries, bson.D{{Key: "companyId", Value: companyID}})
	return usage.Bytes, err
}

// DueWebhookCompanies implements [store.WebhookDeliveries]. A group without accumulators is a distinct, which
// FerretDB v1 does not support with a time limit.
func (s *Store) DueWebhookCompanies(ctx context.Context, now time.Time) (companies []string, err error) {
	pipeline := mongo.Pipeline{
		{{Key: "$match", Value: due(bson.D{}, now)}},
		{{Key: "$group", Value: bson.D{{Key: "_id", Value: "$companyId"}}}},
	}
	var found []struct {
		ID string `bson:"_id"`
	}
	err = s.do(ctx, "listing companies of "+string(webhookDeliveries), func(ctx context.Context) error {
		cursor, err := s.in(webhookDeliveries).Aggregate(ctx, pipeline)
		if err != nil {
			return err
		}
		return cursor.All(ctx, &found)
	})
	for _, company := range found {
		companies = append(companies, company.ID)
	}
	return companies, err
}

// DueWebhookDeliveries implements [store.WebhookDeliveries].
func (s *Store) DueWebhookDeliveries(
	ctx context.Context, companyID string, now time.Time, except []string, limit int,
) ([]webhook.Due, error) {
	q := listQuery{
		filter: due(bson.D{{Key: "companyId", Value: companyID}}, now),
		sort:   bson.D{asc("dueAt")},
		limit:  limit,
	}
	if len(except) > 0 {
		q.filter = append(
			q.filter,
			bson.E{Key: "$nor", Value: bson.A{bson.D{{Key: "endpointId", Value: bson.D{{Key: "$in", Value: except}}}}}},
		)
	}
	return list(ctx, s, webhookDeliveries, q,
		func(d store.WebhookDeliveryRecord) (webhook.Due, bool) {
			return webhook.Due{ID: d.ID, EndpointID: d.EndpointID}, true
		})
}

func setDue(at time.Time) bson.D {
	return bson.D{{Key: "$set", Value: bson.D{{Key: "dueAt", Value: store.UTC(at)}}}}
}

// ClaimWebhookDelivery implements [store.WebhookDeliveries].
func (s *Store) ClaimWebhookDelivery(
	ctx context.Context,
	id string,
	now, until time.Time,
) (webhook.Delivery, bool, error) {
	d, err := modify[store.WebhookDeliveryRecord](ctx, s, webhookDeliveries, due(byID(id), now), setDue(until))
	if apperr.Is(err, apperr.NotFound) {
		return webhook.Delivery{}, false, nil
	}
	return d.Delivery(), err == nil, err
}

// pending restricts a filter to pending deliveries.
func pending(filter bson.D) bson.D {
	return append(filter, bson.E{Key: "status", Value: webhook.Pending})
}

// EndWebhookAttempt implements [store.WebhookDeliveries].
func (s *Store) EndWebhookAttempt(ctx context.Context, id string, a *webhook.Attempt, o webhook.Outcome) error {
	logged := bson.D{}
	if a != nil {
		logged = bson.D{
			{Key: "$inc", Value: bson.D{{Key: "tries", Value: 1}, {Key: "size", Value: a.Size()}}},
			{Key: "$push", Value: bson.D{{Key: "attempts", Value: bson.D{
				{Key: "$each", Value: bson.A{store.WebhookAttemptRecordOf(*a)}},
				{Key: "$slice", Value: -webhook.MaxAttempts},
			}}}},
		}
	}
	set, unset := bson.D{{Key: "status", Value: o.Status}, {Key: "reason", Value: o.Reason}}, bson.D{}
	for _, t := range []struct {
		field string
		value time.Time
	}{{"dueAt", o.DueAt}, {"expiresAt", o.ExpiresAt}} {
		if t.value.IsZero() {
			unset = append(unset, bson.E{Key: t.field, Value: ""})
		} else {
			set = append(set, bson.E{Key: t.field, Value: store.UTC(t.value)})
		}
	}
	change := append(bson.D{{Key: "$set", Value: set}}, logged...)
	if len(unset) > 0 {
		change = append(change, bson.E{Key: "$unset", Value: unset})
	}
	matched, err := s.updateOne(ctx, webhookDeliveries, pending(byID(id)), change)
	if err != nil || matched || a == nil {
		return err
	}
	_, err = s.update(ctx, webhookDeliveries, id, logged)
	return err
}

// ReplayWebhookDelivery implements [store.WebhookDeliveries].
func (s *Store) ReplayWebhookDelivery(ctx context.Context, id string, at time.Time) (bool, error) {
	ended := append(
		byID(id),
		bson.E{Key: "status", Value: bson.D{{Key: "$in", Value: bson.A{webhook.Delivered, webhook.Failed}}}},
	)
	replayed, err := s.updateOne(ctx, webhookDeliveries, ended, bson.D{
		{Key: "$set", Value: bson.D{
			{Key: "status", Value: webhook.Pending},
			{Key: "dueAt", Value: store.UTC(at)},
			{Key: "tries", Value: 0},
			{Key: "reason", Value: ""},
		}},
		{Key: "$unset", Value: bson.D{{Key: "expiresAt", Value: ""}}},
	})
	if err != nil || replayed {
		return replayed, err
	}
	_, err = s.WebhookDelivery(ctx, id)
	return false, err
}

// FirstWebhookDelivery implements [store.WebhookDeliveries].
func (s *Store) FirstWebhookDelivery(ctx context.Context, endpointID, orderKey string) (webhook.InOrder, error) {
	if orderKey == "" {
		return webhook.InOrder{}, apperr.WebhookDeliveryNotFound.New()
	}
	q := listQuery{
		filter: pending(bson.D{{Key: "endpointId", Value: endpointID}, {Key: "orderKey", Value: orderKey}}),
		sort:   bson.D{asc("position")},
		limit:  1,
		fields: bson.D{{Key: "_id", Value: 1}, {Key: "position", Value: 1}},
	}
	found, err := list(ctx, s, webhookDeliveries, q, func(d store.WebhookDeliveryRecord) (webhook.InOrder, bool) {
		return webhook.InOrder{ID: d.ID, OrderNumber: d.OrderNumber}, true
	})
	if err == nil && len(found) == 0 {
		err = apperr.WebhookDeliveryNotFound.New()
	}
	if err != nil {
		return webhook.InOrder{}, err
	}
	return found[0], nil
}
