package bus

import (
	"maps"
	"testing"
)

// A partition that is released and assigned again while a session runs gets no deliveries from that session:
// the session has passed deliveries that the previous reader left unhandled.
func TestReaderOfAnEarlierSessionGetsNothing(t *testing.T) {
	t.Parallel()
	p := &offsetConsumer{readers: make(map[int]*offsetReader), changed: make(chan struct{}, 1)}
	newReader := func(received uint64) *offsetReader {
		return &offsetReader{partition: newPartition(t.Context(), nil, durable{number: 3}, nil, nil), all: p, received: received}
	}
	before, after := newReader(5), newReader(5)
	p.add(before)
	p.sessionReaders, p.highWater = maps.Clone(p.readers), 9
	if got := p.reader(3); got != before || p.arrived(before) != 9 {
		t.Errorf("got %p, arrived %d, want the reader of the session, at 9", got, p.arrived(before))
	}
	p.remove(before)
	if got := p.reader(3); got != nil || before.received != 9 {
		t.Errorf("got %p, received %d, want no reader, and the removed one at 9", got, before.received)
	}
	p.add(after)
	if got := p.reader(3); got != nil || p.arrived(after) != 5 {
		t.Errorf("got %p, arrived %d, want the new reader at 5", got, p.arrived(after))
	}
}

// A replica uses a consumer with filters unless its lag is large or it reads all partitions.
func TestConsumerFits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		filtered bool
		reads    int
		pending  uint64
		want     bool
	}{
		{filtered: true, reads: 1, pending: catchUpFrom, want: true},
		{filtered: true, reads: 1, pending: catchUpFrom + 1},
		{reads: 1, pending: caughtUpAt + 1, want: true},
		{reads: 1, pending: caughtUpAt},
		{reads: 2, want: true},
	} {
		p := &offsetConsumer{count: 2, filtered: c.filtered, sessionReaders: make(map[int]*offsetReader)}
		for number := range c.reads {
			p.sessionReaders[number] = nil
		}
		if got := p.consumerFits(c.pending); got != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
	}
}
