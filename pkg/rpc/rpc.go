// Package rpc carries what services say to each other over core NATS, beside the streams of pkg/bus:
// questions that one process answers, and announcements to the processes that listen. Nothing is stored: a
// disconnected process misses it.
//
// announce.go holds announcements, invalidate.go those of caches. ask.go holds questions; origins.go,
// reading.go, stop.go, ready.go and sync.go have one each.
//
// Questions are plain requests instead of nats.go/micro services: each service has a NATS account of its own,
// and the $SRV subjects of micro would need exports and imports between all of them
// (deploy/nats/accounts.conf).
package rpc

import "github.com/nats-io/nats.go"

// Conn asks and answers questions and makes announcements over a NATS connection, which it does not own. It
// is safe for concurrent use.
type Conn struct{ nats *nats.Conn }

// New returns a Conn over a connection, which may be disconnected.
func New(conn *nats.Conn) *Conn { return &Conn{nats: conn} }
