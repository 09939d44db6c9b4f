package form

import (
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/slot"
)

const (
	// minRate is the minimum rate of a client in bytes a second, patience how long it may stall in addition.
	minRate  = 4 << 10
	patience = 20 * time.Second
	// answerTime is the remaining time for storing and answering after an upload has used all of its time.
	answerTime = 30 * time.Second
)

// Direction is what the client must keep up.
type Direction int

// A client sends a body, or receives an answer.
const (
	ForReading Direction = iota
	ForWriting
)

// Pace bounds how long a client may take. It also reports the client's progress to the slot that the request
// holds, which cuts the client off when it is slow while others wait.
type Pace struct {
	connection *http.ResponseController
	started    time.Time
	atMost     time.Duration // zero: only the rate counts
	slot       *slot.Slot
	direction  Direction
	bytes      int64

	mu      sync.Mutex
	stopped bool // cut off: the deadline stays in the past
}

// NewPace replaces the connection's deadlines, which are those of small bodies. Test servers without
// deadlines are left alone.
func NewPace(c echo.Context, atMost time.Duration, held *slot.Slot, d Direction) *Pace {
	p := &Pace{
		connection: http.NewResponseController(c.Response().Writer),
		started:    time.Now(),
		atMost:     atMost,
		slot:       held,
		direction:  d,
	}
	held.Watch(p.stop)
	return p
}

// stop makes the current read or write fail, and all later ones.
func (p *Pace) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	p.set(time.Now())
}

// set sets the deadline of the client. While it sends, time for the answer is reserved too.
func (p *Pace) set(deadline time.Time) {
	if p.direction == ForWriting {
		_ = p.connection.SetWriteDeadline(deadline)
		return
	}
	_ = p.connection.SetReadDeadline(deadline)
	_ = p.connection.SetWriteDeadline(deadline.Add(answerTime))
}

// await begins a read or write.
func (p *Pace) await() {
	p.slot.Await()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.stopped {
		p.set(p.deadline())
	}
}

// moved ends it.
func (p *Pace) moved(n int) {
	p.bytes += int64(n)
	p.slot.Moved(n)
}

// arrived ends the read deadline: the body is complete.
func (p *Pace) arrived() { _ = p.connection.SetReadDeadline(time.Time{}) }

// deadline returns when the client must have made progress: the time of the bytes so far at the minimum rate.
func (p *Pace) deadline() time.Time {
	allowed := patience + time.Duration(p.bytes/minRate)*time.Second
	if p.atMost > 0 {
		allowed = min(allowed, p.atMost)
	}
	return p.started.Add(allowed)
}

// Write sends b to w; the client must keep reading.
func (p *Pace) Write(w io.Writer, b []byte) (int, error) {
	p.await()
	n, err := w.Write(b)
	p.moved(n)
	return n, err
}

// Bytes returns how many bytes have moved.
func (p *Pace) Bytes() int64 { return p.bytes }
