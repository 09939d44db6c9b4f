// Package webhook delivers events to the endpoints of companies as Standard Webhooks.
//
// Reading order: fanout.go turns an event of the bus into deliveries, one for each endpoint that wants it; events.go has the mapping. A delivery
// is a record of the store from then on. dispatcher.go runs deliveries: those that were just made, and those that are due
// (poll.go). lane.go bounds what one endpoint gets at a time. attempt.go is one request; guard.go says where it may go; schedule.go when the
// next one is due; health.go what a failing endpoint comes to.
//
// Invariants:
//
//   - A delivery is in the store before its event is acknowledged. It leaves the queue with an answer of 2xx, or with its last failure.
//   - A delivery's id follows from the event and the endpoint, so an event that is read twice is one delivery, with one webhook-id.
//   - A processor attempts only what it has claimed. A claim is a lease: when the process dies, the delivery is due again at its end.
//   - An endpoint has at most its lane's share of the requests that run at once, and a lane that is full or paused holds up no other.
package webhook
