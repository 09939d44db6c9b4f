package bus

import (
	"context"
	"sync/atomic"
)

// partition is a partition that this replica reads, with its tasks.
type partition struct {
	group  *group
	slot   slot
	ledger *ledger
	cancel context.CancelFunc

	membersChanged chan struct{} // capacity 1: the members of the group have changed
	stopping       atomic.Bool

	// Guarded by the queue's mu.
	running    int // number of running tasks
	released   bool
	idle       chan struct{} // closed when the partition is released and no task runs
	unfinished []*task       // tasks that were running at the release and need a retry
}

func newPartition(g *group, s slot, l *ledger, cancel context.CancelFunc) *partition {
	return &partition{
		group: g, slot: s, ledger: l, cancel: cancel,
		membersChanged: make(chan struct{}, 1), idle: make(chan struct{}),
	}
}

// stop cancels the reader without waiting for it.
func (p *partition) stop() {
	p.stopping.Store(true)
	p.cancel()
}
