package bus

import (
	"context"
	"sync/atomic"
)

// partition is a partition that this replica reads, with what is in hand of it.
type partition struct {
	group  *group
	slot   slot
	ledger *ledger
	cancel context.CancelFunc

	look     chan struct{} // holds at most one: the other replicas have changed
	stopping atomic.Bool

	// The queue guards these.
	running    int // tasks that are being run
	released   bool
	idle       chan struct{} // closes when the partition has been released and none runs
	unfinished []*task       // that ran at the release and would have to run again
}

func newPartition(g *group, s slot, l *ledger, cancel context.CancelFunc) *partition {
	return &partition{
		group: g, slot: s, ledger: l, cancel: cancel,
		look: make(chan struct{}, 1), idle: make(chan struct{}),
	}
}

// stop makes the reader end, and returns at once.
func (p *partition) stop() {
	p.stopping.Store(true)
	p.cancel()
}
