// Package webhook holds the domain types of outgoing webhooks and their rules: an endpoint of a company (endpoint.go), the events that it may
// receive (event.go), a delivery with its attempts (delivery.go), and the signature of Standard Webhooks (signature.go).
//
// The processor delivers (services/processor/internal/webhook), pkg/admin manages, pkg/store keeps.
package webhook
