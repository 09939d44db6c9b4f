package http

import (
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

const (
	// minRate is the minimum rate of a client in bytes a second, patience how long it may stall in addition.
	minRate  = 4 << 10
	patience = 20 * time.Second
	// answerTime is the remaining time for storing and answering after an upload has used all of its time.
	answerTime = 30 * time.Second
)

// pace bounds how long a client may take, so that a slow one does not hold a slot for hours.
type pace struct {
	connection *http.ResponseController
	started    time.Time
	atMost     time.Duration // zero: only the rate counts
	bytes      int64
}

// newPace replaces the connection's deadlines, which are those of small bodies. Test servers without deadlines are left alone.
func newPace(c echo.Context, atMost time.Duration) *pace {
	return &pace{connection: http.NewResponseController(c.Response().Writer), started: time.Now(), atMost: atMost}
}

// beforeRead also reserves time for the answer.
func (p *pace) beforeRead() {
	deadline := p.deadline()
	_ = p.connection.SetReadDeadline(deadline)
	_ = p.connection.SetWriteDeadline(deadline.Add(answerTime))
}

// arrived ends the read deadline: the body is complete.
func (p *pace) arrived() { _ = p.connection.SetReadDeadline(time.Time{}) }

func (p *pace) beforeWrite() { _ = p.connection.SetWriteDeadline(p.deadline()) }

// deadline returns when the client must have made progress: the time of the bytes so far at the minimum rate.
func (p *pace) deadline() time.Time {
	allowed := patience + time.Duration(p.bytes/minRate)*time.Second
	if p.atMost > 0 {
		allowed = min(allowed, p.atMost)
	}
	return p.started.Add(allowed)
}

func (p *pace) moved(n int) { p.bytes += int64(n) }

// write sends all of b; the client must keep reading.
func (p *pace) write(w io.Writer, b []byte) error {
	p.beforeWrite()
	n, err := w.Write(b)
	p.moved(n)
	return err
}
