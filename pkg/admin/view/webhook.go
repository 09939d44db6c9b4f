package view

import (
	"maps"
	"slices"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/webhook"
)

// Endpoint is a webhook endpoint without its secrets.
type Endpoint struct {
	ID             string         `json:"id"`
	CompanyID      string         `json:"companyId"`
	URL            string         `json:"url"`
	Description    string         `json:"description"`
	Events         []string       `json:"events"`  // empty: all
	Headers        []string       `json:"headers"` // names only: the values may be secrets
	Ordered        bool           `json:"ordered"`
	Signatures     []webhook.Kind `json:"signatures"`
	PublicKeys     []string       `json:"publicKeys"`
	CreatedAt      chat.Time      `json:"createdAt"`
	Status         string         `json:"status"`
	DisabledAt     chat.Time      `json:"disabledAt,omitzero"`
	DisabledReason string         `json:"disabledReason,omitempty"`
	FailingSince   chat.Time      `json:"failingSince,omitzero"`
	Warnings       int            `json:"warnings"`
}

// EndpointOf returns the view of an endpoint.
func EndpointOf(e webhook.Endpoint, now time.Time) Endpoint {
	return Endpoint{
		ID:             e.ID,
		CompanyID:      e.CompanyID,
		URL:            e.URL,
		Description:    e.Description,
		Events:         append([]string{}, e.Events...),
		Headers:        append([]string{}, slices.Sorted(maps.Keys(e.Headers))...),
		Ordered:        e.Ordered,
		Signatures:     append([]webhook.Kind{}, e.Kinds(now)...),
		PublicKeys:     append([]string{}, e.PublicKeys(now)...),
		CreatedAt:      chat.Time(e.CreatedAt),
		Status:         e.Status(),
		DisabledAt:     chat.Time(e.DisabledAt),
		DisabledReason: e.DisabledReason,
		FailingSince:   chat.Time(e.FailingSince),
		Warnings:       e.Warnings,
	}
}

// Verifiers returns what receivers verify signatures with, which is shown once: of each new secret the secret
// itself (whsec_) or the public key (whpk_).
func Verifiers(fresh []webhook.Secret) []string { return ListOf(fresh, webhook.Secret.Verifier) }

// Delivery is the delivery of an event to an endpoint.
type Delivery struct {
	ID            string    `json:"id"`
	EndpointID    string    `json:"endpointId"`
	EventType     string    `json:"eventType"`
	Status        string    `json:"status"`
	Reason        string    `json:"reason,omitempty"`
	CreatedAt     chat.Time `json:"createdAt"`
	NextAttemptAt chat.Time `json:"nextAttemptAt,omitzero"`
	Body          string    `json:"body"`
	Attempts      []Attempt `json:"attempts"`
}

// Attempt is one request of a delivery, and its answer.
type Attempt struct {
	At            chat.Time `json:"at"`
	URL           string    `json:"url"`
	DurationMS    int64     `json:"durationMs"`
	StatusCode    int       `json:"statusCode,omitempty"`
	Answer        string    `json:"answer,omitempty"`
	Error         string    `json:"error,omitempty"`
	NextAttemptAt chat.Time `json:"nextAttemptAt,omitzero"`
}

// DeliveryOf returns the view of a delivery.
func DeliveryOf(d webhook.Delivery) Delivery {
	return Delivery{
		ID:            d.ID,
		EndpointID:    d.EndpointID,
		EventType:     d.EventType,
		Status:        d.Status,
		Reason:        d.Reason,
		CreatedAt:     chat.Time(d.CreatedAt),
		NextAttemptAt: chat.Time(d.DueAt),
		Body:          d.Body,
		Attempts:      ListOf(d.Attempts, AttemptOf),
	}
}

// AttemptOf returns the view of an attempt.
func AttemptOf(a webhook.Attempt) Attempt {
	return Attempt{
		At:            chat.Time(a.At),
		URL:           a.URL,
		DurationMS:    a.Duration.Milliseconds(),
		StatusCode:    a.StatusCode,
		Answer:        a.Answer,
		Error:         a.Error,
		NextAttemptAt: chat.Time(a.NextAt),
	}
}
