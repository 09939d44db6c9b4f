package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/webhook"
)

func endpoint(companyID string) webhook.Endpoint {
	return webhook.Endpoint{
		ID: newID(), CompanyID: companyID, URL: "https://example.com/hook?a=<é>", Secrets: []webhook.Secret{webhook.NewSecret(webhook.HMAC, at(0))},
		CreatedAt: at(0),
	}
}

func delivery(e webhook.Endpoint, number int64) webhook.Delivery {
	return webhook.Delivery{
		ID: newID(), CompanyID: e.CompanyID, EndpointID: e.ID, EventType: webhook.TypeMessageReceived, Body: `{"n":1e999, "é":"<"}`,
		OrderNumber: number, CreatedAt: at(time.Duration(number) * time.Second), Status: webhook.Pending, DueAt: at(time.Duration(number) * time.Second),
	}
}

func testWebhookEndpoints(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	company := newID()
	e := endpoint(company)
	e.Events, e.Headers, e.Ordered = []string{webhook.TypeChatClosed}, map[string]string{"X-B": "2", "Authorization": "Bearer x"}, true
	e.Description = "CRM <é>"
	rotated := webhook.NewSecret(webhook.Ed25519, at(0))
	rotated.ExpiresAt = at(time.Hour)
	e.Secrets = append(e.Secrets, rotated)
	_, err := s.WebhookEndpoint(ctx, e.ID)
	wantReason(t, "an unknown endpoint", err, apperr.NotFound, "WEBHOOK_ENDPOINT_NOT_FOUND")
	wantCode(t, "an endpoint without a URL", s.CreateWebhookEndpoint(ctx, webhook.Endpoint{ID: newID(), Secrets: e.Secrets}), apperr.Invalid)
	must(t, s.CreateWebhookEndpoint(ctx, e))
	want(t, "an endpoint", get[webhook.Endpoint](t)(s.WebhookEndpoint(ctx, e.ID)), e)
	other := endpoint(company)
	must(t, s.CreateWebhookEndpoint(ctx, other))
	must(t, s.CreateWebhookEndpoint(ctx, endpoint(newID())))
	both := []webhook.Endpoint{e, other}
	slices.SortFunc(both, func(a, b webhook.Endpoint) int { return slices.Compare([]byte(a.ID), []byte(b.ID)) })
	want(t, "a company's endpoints", get[[]webhook.Endpoint](t)(s.WebhookEndpoints(ctx, company, store.Page{})), both)
	want(t, "a page", get[[]webhook.Endpoint](t)(s.WebhookEndpoints(ctx, company, store.Page{After: both[0].ID, Limit: 1})), both[1:])
	want(t, "all endpoints", len(get[[]webhook.Endpoint](t)(s.WebhookEndpoints(ctx, "", store.Page{}))), 3)

	changed := e
	changed.DisabledAt, changed.DisabledReason, changed.FailingSince, changed.Warnings, changed.WarnedAt = at(3*time.Hour), webhook.DisabledFailing, at(time.Hour), 3, at(2*time.Hour)
	must(t, s.UpdateWebhookEndpoint(ctx, changed))
	wantReason(t, "an update of an old revision", s.UpdateWebhookEndpoint(ctx, changed), apperr.Conflict, "CHANGED_MEANWHILE")
	changed.Revision++
	want(t, "a changed endpoint", get[webhook.Endpoint](t)(s.WebhookEndpoint(ctx, e.ID)), changed)
	changed.URL = "ftp://example.com"
	wantCode(t, "an update with a wrong URL", s.UpdateWebhookEndpoint(ctx, changed), apperr.Invalid)
	wantCode(t, "an update of an unknown endpoint", s.UpdateWebhookEndpoint(ctx, endpoint(company)), apperr.NotFound)

	d := delivery(e, 1)
	get[bool](t)(s.InsertWebhookDelivery(ctx, d))
	must(t, s.DeleteWebhookEndpoint(ctx, e.ID))
	wantCode(t, "an endpoint that was deleted", s.DeleteWebhookEndpoint(ctx, e.ID), apperr.NotFound)
	_, err = s.WebhookDelivery(ctx, d.ID)
	wantReason(t, "the delivery of an endpoint that was deleted", err, apperr.NotFound, "WEBHOOK_DELIVERY_NOT_FOUND")

	c := chat.Company{ID: newID(), Name: "Acme", WebhookRetention: 90 * time.Second}
	must(t, s.PutCompany(ctx, c))
	want(t, "a company's retention", get[chat.Company](t)(s.Company(ctx, c.ID)), c)
}

// deliveries returns a page of deliveries.
func deliveries(t *testing.T, s store.Store, f store.WebhookFilter, p store.Page) []webhook.Delivery {
	t.Helper()
	found, _, err := s.WebhookDeliveries(t.Context(), f, p)
	must(t, err)
	return found
}

func testWebhookDeliveries(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	first, second := endpoint(newID()), endpoint(newID())
	second.CompanyID = first.CompanyID
	var all []webhook.Delivery
	for n := range 4 {
		d := delivery(first, int64(n))
		if n == 3 {
			d = delivery(second, int64(n))
			d.Status, d.Reason, d.DueAt, d.EventType = webhook.Failed, webhook.ReasonDisabled, time.Time{}, webhook.TypeChatClosed
		}
		want(t, "a new delivery", get[bool](t)(s.InsertWebhookDelivery(ctx, d)), true)
		want(t, "a delivery again", get[bool](t)(s.InsertWebhookDelivery(ctx, d)), false)
		all = append(all, d)
	}
	want(t, "a delivery", get[webhook.Delivery](t)(s.WebhookDelivery(ctx, all[1].ID)), all[1])

	ids := func(found []webhook.Delivery) (ids []string) {
		for _, d := range found {
			ids = append(ids, d.ID)
		}
		return ids
	}
	for name, test := range map[string]struct {
		filter store.WebhookFilter
		page   store.Page
		want   []string
	}{
		"a company":    {store.WebhookFilter{CompanyID: first.CompanyID}, store.Page{}, []string{all[3].ID, all[2].ID, all[1].ID, all[0].ID}},
		"an endpoint":  {store.WebhookFilter{EndpointID: first.ID}, store.Page{Limit: 2}, []string{all[2].ID, all[1].ID}},
		"a page":       {store.WebhookFilter{EndpointID: first.ID, CompanyID: first.CompanyID}, store.Page{After: all[1].ID, Limit: 2}, []string{all[0].ID}},
		"a status":     {store.WebhookFilter{CompanyID: first.CompanyID, Status: webhook.Failed}, store.Page{Limit: 1}, []string{all[3].ID}},
		"a reason":     {store.WebhookFilter{CompanyID: first.CompanyID, Reason: webhook.ReasonExhausted}, store.Page{}, nil},
		"a type":       {store.WebhookFilter{CompanyID: first.CompanyID, EventType: webhook.TypeChatClosed}, store.Page{}, []string{all[3].ID}},
		"a time":       {store.WebhookFilter{CompanyID: first.CompanyID, From: at(time.Second), To: at(3 * time.Second)}, store.Page{}, []string{all[2].ID, all[1].ID}},
		"other things": {store.WebhookFilter{CompanyID: newID()}, store.Page{}, nil},
	} {
		want(t, "deliveries of "+name, ids(deliveries(t, s, test.filter, test.page)), test.want)
	}
	_, _, err := s.WebhookDeliveries(ctx, store.WebhookFilter{EndpointID: first.ID}, store.Page{After: all[3].ID})
	wantCode(t, "a page after another endpoint's delivery", err, apperr.NotFound)
	_, _, err = s.WebhookDeliveries(ctx, store.WebhookFilter{CompanyID: newID()}, store.Page{After: all[3].ID})
	wantCode(t, "a page after another company's delivery", err, apperr.NotFound)

	due := func(seconds int, except ...string) (ids []string) {
		for _, d := range get[[]webhook.Due](t)(s.DueWebhookDeliveries(ctx, first.CompanyID, at(time.Duration(seconds)*time.Second), except, 10)) {
			ids = append(ids, d.ID)
		}
		return ids
	}
	want(t, "what is due", due(1), []string{all[0].ID, all[1].ID})

	companies := func(seconds int) []string {
		found := get[[]string](t)(s.DueWebhookCompanies(ctx, at(time.Duration(seconds)*time.Second)))
		return slices.Sorted(slices.Values(found))
	}
	want(t, "companies before anything is due", companies(-1), nil)
	want(t, "companies with due deliveries", companies(0), []string{first.CompanyID})
	later := delivery(endpoint(newID()), 5)
	get[bool](t)(s.InsertWebhookDelivery(ctx, later))
	want(t, "companies before another is due", companies(4), []string{first.CompanyID})
	want(t, "companies with another", companies(5), slices.Sorted(slices.Values([]string{first.CompanyID, later.CompanyID})))
	want(t, "what is due of one company", due(5), []string{all[0].ID, all[1].ID, all[2].ID})
	stored := func(companyID string) int64 { return get[int64](t)(s.StoredWebhookBytes(ctx, companyID)) }
	bytes := int64(0)
	for _, d := range all {
		bytes += d.Size()
	}
	want(t, "the bytes of a company's deliveries", stored(first.CompanyID), bytes)
	want(t, "the bytes of nobody's deliveries", stored(newID()), 0)
	want(t, "what is due without an endpoint", due(10, newID(), first.ID), nil)

	// One of several processors claims a delivery, and no other claims it before the lease ends.
	results := together(t, 8, func(int) (bool, error) {
		d, claimed, err := s.ClaimWebhookDelivery(ctx, all[0].ID, at(time.Second), at(time.Minute))
		if claimed && (d.ID != all[0].ID || !d.DueAt.Equal(at(time.Minute))) {
			err = fmt.Errorf("got %+v", d)
		}
		return claimed, err
	})
	want(t, "claims", count(results), 1)
	want(t, "what is due after the claim", due(1), []string{all[1].ID})
	want(t, "what is due when the lease has ended", due(60)[2], all[0].ID)
	must(t, s.EndWebhookAttempt(ctx, all[1].ID, nil, webhook.Postponed(at(time.Hour))))
	want(t, "what is due after the postponement", due(60), []string{all[2].ID, all[0].ID})

	failed := webhook.Attempt{At: at(time.Second), URL: first.URL, Duration: 1500 * time.Microsecond, StatusCode: 503, Answer: "é<", NextAt: at(time.Hour)}
	must(t, s.EndWebhookAttempt(ctx, all[0].ID, &failed, webhook.Outcome{Status: webhook.Pending, DueAt: at(time.Hour)}))
	expected := all[0]
	expected.DueAt, expected.Tries, expected.Attempts = at(time.Hour), 1, []webhook.Attempt{failed}
	want(t, "a failed attempt", get[webhook.Delivery](t)(s.WebhookDelivery(ctx, all[0].ID)), expected)
	ended := webhook.Attempt{At: at(time.Hour), URL: first.URL, StatusCode: 204}
	tomorrow := store.UTC(time.Now().Add(24 * time.Hour))
	must(t, s.EndWebhookAttempt(ctx, all[0].ID, &ended, webhook.Outcome{Status: webhook.Delivered, ExpiresAt: tomorrow}))
	expected.Status, expected.DueAt, expected.Tries, expected.ExpiresAt = webhook.Delivered, time.Time{}, 2, tomorrow
	expected.Attempts = append(expected.Attempts, ended)
	want(t, "the bytes with two attempts", stored(first.CompanyID), bytes+failed.Size()+ended.Size())
	want(t, "a delivered one", get[webhook.Delivery](t)(s.WebhookDelivery(ctx, all[0].ID)), expected)
	// A processor may be late after its lease has ended: its attempt is logged and changes nothing else.
	must(t, s.EndWebhookAttempt(ctx, all[0].ID, &failed, webhook.Outcome{Status: webhook.Pending, DueAt: at(time.Hour)}))
	expected.Tries, expected.Attempts = 3, append(expected.Attempts, failed)
	want(t, "a late attempt", get[webhook.Delivery](t)(s.WebhookDelivery(ctx, all[0].ID)), expected)
	must(t, s.EndWebhookAttempt(ctx, newID(), &failed, webhook.Outcome{Status: webhook.Pending}))
	must(t, s.EndWebhookAttempt(ctx, all[2].ID, nil, webhook.Outcome{Status: webhook.Failed, Reason: webhook.ReasonDisabled, ExpiresAt: tomorrow}))
	if d := get[webhook.Delivery](t)(s.WebhookDelivery(ctx, all[2].ID)); d.Status != webhook.Failed || d.Reason != webhook.ReasonDisabled || d.Tries != 0 || len(d.Attempts) != 0 {
		t.Errorf("given up without an attempt: got %+v", d)
	}
	must(t, s.EndWebhookAttempt(ctx, all[2].ID, nil, webhook.Postponed(at(0))))

	want(t, "a replay", get[bool](t)(s.ReplayWebhookDelivery(ctx, all[0].ID, at(2*time.Hour))), true)
	want(t, "a replay of a pending one", get[bool](t)(s.ReplayWebhookDelivery(ctx, all[0].ID, at(3*time.Hour))), false)
	_, err = s.ReplayWebhookDelivery(ctx, newID(), at(0))
	wantCode(t, "a replay of an unknown one", err, apperr.NotFound)
	expected.Status, expected.DueAt, expected.Tries, expected.ExpiresAt = webhook.Pending, at(2*time.Hour), 0, time.Time{}
	want(t, "a replayed one", get[webhook.Delivery](t)(s.WebhookDelivery(ctx, all[0].ID)), expected)
	want(t, "what is due at last", due(10_000), []string{all[1].ID, all[0].ID})
}

func testWebhookOrder(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	e := endpoint(newID())
	var all []webhook.Delivery
	for n := range 3 {
		d := delivery(e, int64(n))
		d.OrderKey, d.DueAt = "chat", at(time.Hour)
		get[bool](t)(s.InsertWebhookDelivery(ctx, d))
		all = append(all, d)
	}
	first := func() webhook.InOrder { return get[webhook.InOrder](t)(s.FirstWebhookDelivery(ctx, e.ID, "chat")) }
	want(t, "the first", first(), webhook.InOrder{ID: all[0].ID, OrderNumber: 0})
	_, err := s.FirstWebhookDelivery(ctx, e.ID, "another chat")
	wantCode(t, "the first of another chat", err, apperr.NotFound)
	_, err = s.FirstWebhookDelivery(ctx, newID(), "chat")
	wantCode(t, "the first of another endpoint", err, apperr.NotFound)
	get[bool](t)(s.InsertWebhookDelivery(ctx, delivery(e, 0)))
	_, err = s.FirstWebhookDelivery(ctx, e.ID, "")
	wantCode(t, "the first without an order", err, apperr.NotFound)

	must(t, s.EndWebhookAttempt(ctx, all[0].ID, nil, webhook.Outcome{Status: webhook.Delivered}))
	want(t, "the first when one has ended", first(), webhook.InOrder{ID: all[1].ID, OrderNumber: 1})
	must(t, s.EndWebhookAttempt(ctx, first().ID, nil, webhook.Postponed(at(0))))
	for n, dueAt := range []time.Time{1: at(0), 2: at(time.Hour)} {
		if d := get[webhook.Delivery](t)(s.WebhookDelivery(ctx, all[n].ID)); n > 0 && !d.DueAt.Equal(dueAt) {
			t.Errorf("delivery %d: got due at %s, want %s", n, d.DueAt, dueAt)
		}
	}
}
