package store

import (
	"maps"
	"slices"
	"time"

	"github.com/parley-chat/parley/pkg/webhook"
)

// This file has webhook endpoints and deliveries as both engines store them: headers ordered by name, times in
// milliseconds. The JSON names are those of SQLite's columns, which hold headers, secrets and attempts as JSON; the
// others are those of MongoDB's documents.

// WebhookEndpointRecord is a [webhook.Endpoint] as engines store it.
type WebhookEndpointRecord struct {
	ID             string                `bson:"_id"`
	CompanyID      string                `bson:"companyId"`
	URL            string                `bson:"url"`
	Description    string                `bson:"description"`
	Events         []string              `bson:"events,omitempty"`  // null: all
	Headers        []WebhookHeaderRecord `bson:"headers,omitempty"` // by name; null: none
	Secrets        []WebhookSecretRecord `bson:"secrets"`           // newest first
	Ordered        bool                  `bson:"ordered"`
	CreatedAt      time.Time             `bson:"createdAt"`
	DisabledAt     time.Time             `bson:"disabledAt,omitempty"`
	DisabledReason string                `bson:"disabledReason,omitempty"`
	FailingSince   time.Time             `bson:"failingSince,omitempty"`
	Warnings       int                   `bson:"warnings,omitempty"`
	WarnedAt       time.Time             `bson:"warnedAt,omitempty"`
	Revision       int64                 `bson:"revision"`
}

// WebhookHeaderRecord is a header of an endpoint.
type WebhookHeaderRecord struct {
	Name  string `json:"name" bson:"name"`
	Value string `json:"value" bson:"value"`
}

// WebhookSecretRecord is a secret of an endpoint.
type WebhookSecretRecord struct {
	Value     string    `json:"value" bson:"value"`
	CreatedAt time.Time `json:"createdAt" bson:"createdAt"`
	ExpiresAt time.Time `json:"expiresAt" bson:"expiresAt,omitempty"`
}

// WebhookDeliveryRecord is a [webhook.Delivery] as engines store it.
type WebhookDeliveryRecord struct {
	ID          string                 `bson:"_id"`
	CompanyID   string                 `bson:"companyId"`
	EndpointID  string                 `bson:"endpointId"`
	EventType   string                 `bson:"eventType"`
	ChatID      string                 `bson:"chatId,omitempty"`
	Body        string                 `bson:"body"` // JSON text
	OrderKey    string                 `bson:"orderKey,omitempty"`
	OrderNumber int64                  `bson:"position"`
	CreatedAt   time.Time              `bson:"createdAt"`
	Status      string                 `bson:"status"`
	Reason      string                 `bson:"reason,omitempty"`
	DueAt       time.Time              `bson:"dueAt,omitempty"`
	Tries       int                    `bson:"tries"`
	Attempts    []WebhookAttemptRecord `bson:"attempts,omitempty"` // oldest first; null: none
	ExpiresAt   time.Time              `bson:"expiresAt,omitempty"`
	Size        int64                  `bson:"size"` // bytes that count for it and all its attempts
}

// WebhookAttemptRecord is an attempt of a delivery.
type WebhookAttemptRecord struct {
	At         time.Time     `json:"at" bson:"at"`
	URL        string        `json:"url" bson:"url"`
	Duration   time.Duration `json:"duration" bson:"duration"` // nanoseconds
	StatusCode int           `json:"statusCode" bson:"statusCode"`
	Answer     string        `json:"answer" bson:"answer,omitempty"`
	Error      string        `json:"error" bson:"error,omitempty"`
	NextAt     time.Time     `json:"nextAt" bson:"nextAt,omitempty"`
}

// WebhookEndpointRecordOf returns the record of an endpoint, with times as every engine stores them.
func WebhookEndpointRecordOf(e webhook.Endpoint) WebhookEndpointRecord {
	r := WebhookEndpointRecord{
		ID:             e.ID,
		CompanyID:      e.CompanyID,
		URL:            e.URL,
		Description:    e.Description,
		Events:         e.Events,
		Ordered:        e.Ordered,
		CreatedAt:      UTC(e.CreatedAt),
		DisabledAt:     UTC(e.DisabledAt),
		DisabledReason: e.DisabledReason,
		FailingSince:   UTC(e.FailingSince),
		Warnings:       e.Warnings,
		WarnedAt:       UTC(e.WarnedAt),
		Revision:       e.Revision,
	}
	if len(e.Events) == 0 {
		r.Events = nil
	}
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
		r.Headers = append(r.Headers, WebhookHeaderRecord{Name: name, Value: e.Headers[name]})
	}
	for _, s := range e.Secrets {
		r.Secrets = append(
			r.Secrets,
			WebhookSecretRecord{Value: s.Value, CreatedAt: UTC(s.CreatedAt), ExpiresAt: UTC(s.ExpiresAt)},
		)
	}
	return r
}

// Endpoint returns the endpoint of a record.
func (r WebhookEndpointRecord) Endpoint() webhook.Endpoint {
	e := webhook.Endpoint{
		ID:             r.ID,
		CompanyID:      r.CompanyID,
		URL:            r.URL,
		Description:    r.Description,
		Events:         r.Events,
		Ordered:        r.Ordered,
		CreatedAt:      UTC(r.CreatedAt),
		DisabledAt:     UTC(r.DisabledAt),
		DisabledReason: r.DisabledReason,
		FailingSince:   UTC(r.FailingSince),
		Warnings:       r.Warnings,
		WarnedAt:       UTC(r.WarnedAt),
		Revision:       r.Revision,
	}
	for _, h := range r.Headers {
		if e.Headers == nil {
			e.Headers = map[string]string{}
		}
		e.Headers[h.Name] = h.Value
	}
	for _, s := range r.Secrets {
		e.Secrets = append(
			e.Secrets,
			webhook.Secret{Value: s.Value, CreatedAt: UTC(s.CreatedAt), ExpiresAt: UTC(s.ExpiresAt)},
		)
	}
	return e
}

// WebhookAttemptRecordOf returns the record of an attempt.
func WebhookAttemptRecordOf(a webhook.Attempt) WebhookAttemptRecord {
	a.At, a.NextAt = UTC(a.At), UTC(a.NextAt)
	return WebhookAttemptRecord(a)
}

// WebhookDeliveryRecordOf returns the record of a delivery, with times as every engine stores them.
func WebhookDeliveryRecordOf(d webhook.Delivery) WebhookDeliveryRecord {
	r := WebhookDeliveryRecord{
		ID:          d.ID,
		CompanyID:   d.CompanyID,
		EndpointID:  d.EndpointID,
		EventType:   d.EventType,
		ChatID:      d.ChatID,
		Body:        d.Body,
		OrderKey:    d.OrderKey,
		OrderNumber: d.OrderNumber,
		CreatedAt:   UTC(d.CreatedAt),
		Status:      d.Status,
		Reason:      d.Reason,
		DueAt:       UTC(d.DueAt),
		Tries:       d.Tries,
		ExpiresAt:   UTC(d.ExpiresAt),
		Size:        d.Size(),
	}
	for _, a := range d.Attempts {
		r.Attempts = append(r.Attempts, WebhookAttemptRecordOf(a))
		r.Size += a.Size()
	}
	return r
}

// Delivery returns the delivery of a record.
func (r WebhookDeliveryRecord) Delivery() webhook.Delivery {
	d := webhook.Delivery{
		ID:          r.ID,
		CompanyID:   r.CompanyID,
		EndpointID:  r.EndpointID,
		EventType:   r.EventType,
		ChatID:      r.ChatID,
		Body:        r.Body,
		OrderKey:    r.OrderKey,
		OrderNumber: r.OrderNumber,
		CreatedAt:   UTC(r.CreatedAt),
		Status:      r.Status,
		Reason:      r.Reason,
		DueAt:       UTC(r.DueAt),
		Tries:       r.Tries,
		ExpiresAt:   UTC(r.ExpiresAt),
	}
	for _, a := range r.Attempts {
		a.At, a.NextAt = UTC(a.At), UTC(a.NextAt)
		d.Attempts = append(d.Attempts, webhook.Attempt(a))
	}
	return d
}
