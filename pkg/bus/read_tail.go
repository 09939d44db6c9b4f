package bus

// Several ranges merged and followed, for parleyctl tail and the panel.

import (
	"context"
	"iter"
	"sync"
)

// Tail merges ranges of several streams: first the stored messages in the order in which they were stored,
// then, if the ranges follow, new messages as they arrive.
func (b *Bus) Tail(ctx context.Context, ranges ...Range) iter.Seq2[Delivery, error] {
	return func(yield func(Delivery, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		t := newTail(len(ranges))
		defer t.running.Wait()
		defer cancel()
		for i, r := range ranges {
			t.running.Go(func() { t.feed(ctx, t.sources[i], b.read(ctx, r)) })
		}
		t.run(yield)
	}
}

// tail merges sources. Only the goroutine of run uses it, except for the channels.
type tail struct {
	running sync.WaitGroup
	sources []chan sourced // stored messages of each source; closed after the last
	present chan sourced   // new messages of all sources
}

type sourced struct {
	delivery Delivery
	err      error
}

func newTail(sources int) *tail {
	t := &tail{present: make(chan sourced)}
	for range sources {
		t.sources = append(t.sources, make(chan sourced))
	}
	return t
}

// feed sends the stored messages of a source to its own channel, closes that, and sends new ones to present.
func (t *tail) feed(ctx context.Context, source chan sourced, readings iter.Seq2[reading, error]) {
	into := source
	defer func() {
		if into == source {
			close(source)
		}
	}()
	for r, err := range readings {
		if !r.opened && !send(ctx, into, sourced{r.Delivery, err}) {
			return
		}
		if into == source && err == nil && r.pending == 0 {
			into = t.present
			close(source)
		}
	}
}

func send(ctx context.Context, into chan<- sourced, s sourced) bool {
	select {
	case into <- s:
		return true
	case <-ctx.Done():
		return false
	}
}

// run yields the stored messages, oldest first, and then new ones until all feeds have ended.
func (t *tail) run(yield func(Delivery, error) bool) {
	ended := make(chan struct{})
	go func() { defer close(ended); t.running.Wait() }()
	if !t.past(yield) {
		return
	}
	for {
		select {
		case s := <-t.present:
			if !yield(s.delivery, s.err) || s.err != nil {
				return
			}
		case <-ended:
			return
		}
	}
}

// past merges the stored messages of all sources by time, holding the next one of each. New messages of a
// source wait until all sources have caught up.
func (t *tail) past(yield func(Delivery, error) bool) bool {
	heads := make([]*sourced, len(t.sources))
	for {
		oldest := -1
		for i, source := range t.sources {
			if heads[i] == nil {
				s, more := <-source
				if !more {
					continue
				}
				heads[i] = &s
			}
			if oldest < 0 || heads[i].delivery.Time.Before(heads[oldest].delivery.Time) {
				oldest = i
			}
		}
		if oldest < 0 {
			return true
		}
		s := heads[oldest]
		heads[oldest] = nil
		if !yield(s.delivery, s.err) || s.err != nil {
			return false
		}
	}
}
