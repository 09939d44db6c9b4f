// Package webhook defines outgoing webhooks and their rules: an endpoint of a company (endpoint.go), the events it may
// receive (event.go), a delivery with its attempts (delivery.go), and the signature of Standard Webhooks
// (signature.go).
//
// The processor delivers (services/processor/internal/webhook), pkg/admin manages endpoints, and pkg/store stores them.
package webhook
