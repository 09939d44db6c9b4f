// Package webhook delivers events to the endpoints of companies as Standard Webhooks.
//
// Reading order: service.go turns an event of the bus into deliveries, one for each subscribed endpoint, and
// runs them; events.go has the mapping, and stored.go bounds how much a company stores. From then on a
// delivery is a record of the store. poll.go starts deliveries that are due. limiter.go limits the requests
// of one endpoint and of one company. attempt.go is one request; package guard restricts its addresses;
// schedule.go computes the next attempt; health.go warns about and disables failing endpoints.
//
// Invariants:
//
//   - A delivery is in the store before its event is acknowledged, unless the company's part of the store is full
//     (stored.go). It leaves the queue with an answer of 2xx,
//     or with its last failure.
//   - A delivery's id follows from the event and the endpoint, so an event that is read twice is one
//     delivery, with one webhook-id.
//   - A processor attempts only deliveries that it has claimed. A claim is a lease: if the process dies, the
//     delivery is due again when the lease ends.
//   - An endpoint has at most its limiter's share of the concurrent requests, and a limiter that is full or
//     paused delays no other.
//   - A company has at most its share of the concurrent requests
//     (services/processor/internal/fairshare), and some are free for the next company.
package webhook
