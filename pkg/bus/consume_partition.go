package bus

// What a partition owns however it is read: its ledger, the context of its handlers, and its end.

import (
	"context"
	"sync/atomic"
	"time"
)

// partition is a partition that this replica reads, with its tasks. It begins with its reader and ends when
// the last running handler has returned.
type partition struct {
	group   *group
	durable durable
	ledger  *ledger
	cancel  context.CancelFunc // of the reader

	handlerCtx context.Context    // of the handlers' calls; child of the group's
	interrupt  context.CancelFunc // cancels handlerCtx

	membersChanged chan struct{} // capacity 1: the members of the group have changed
	stopping       atomic.Bool

	// Guarded by the queue's mu.
	runningTasks int
	released     bool
	idle         chan struct{} // closed when the partition is released and no task runs
	unfinished   []*task       // tasks that were running at the release and need a retry
}

func newPartition(handlerCtx context.Context, g *group, d durable, l *ledger, cancel context.CancelFunc) *partition {
	p := &partition{
		group: g, durable: d, ledger: l, cancel: cancel,
		membersChanged: make(chan struct{}, 1), idle: make(chan struct{}),
	}
	p.handlerCtx, p.interrupt = context.WithCancel(handlerCtx)
	return p
}

// stop cancels the reader without waiting for it.
func (p *partition) stop() {
	p.stopping.Store(true)
	p.cancel()
}

// awaitHandlers returns when the running handlers of the released partition have ended. After the consumer's
// HandoverGrace it cancels their context.
func (p *partition) awaitHandlers() {
	defer p.interrupt()
	if grace := p.group.cfg.HandoverGrace; grace > 0 {
		timer := time.AfterFunc(grace, p.interrupt)
		defer timer.Stop()
	}
	<-p.idle
}
