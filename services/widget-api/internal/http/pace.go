package http

import (
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

const (
	// minRate is what a client must send or take in the long run, in bytes a second, and patience how long it may hang beside that.
	minRate  = 4 << 10
	patience = 20 * time.Second
	// answerTime is what is left for storing and answering when an upload has taken all of its time.
	answerTime = 30 * time.Second
)

// pace bounds how long a client may take, so that it cannot hold a place for hours by sending or taking a byte now and then.
type pace struct {
	connection *http.ResponseController
	started    time.Time
	atMost     time.Duration // zero: no more bound than the rate
	bytes      int64
}

// newPace takes over the connection's deadlines, which are those of small bodies. Servers without deadlines, such as those of
// tests, go without.
func newPace(c echo.Context, atMost time.Duration) *pace {
	return &pace{connection: http.NewResponseController(c.Response().Writer), started: time.Now(), atMost: atMost}
}

// beforeRead leaves time for the answer as well.
func (p *pace) beforeRead() {
	deadline := p.deadline()
	_ = p.connection.SetReadDeadline(deadline)
	_ = p.connection.SetWriteDeadline(deadline.Add(answerTime))
}

// arrived ends the waiting for the client: now it waits for us.
func (p *pace) arrived() { _ = p.connection.SetReadDeadline(time.Time{}) }

func (p *pace) beforeWrite() { _ = p.connection.SetWriteDeadline(p.deadline()) }

// deadline is when the client must have moved on: after the time that what it has moved may take at the slowest.
func (p *pace) deadline() time.Time {
	allowed := patience + time.Duration(p.bytes/minRate)*time.Second
	if p.atMost > 0 {
		allowed = min(allowed, p.atMost)
	}
	return p.started.Add(allowed)
}

func (p *pace) moved(n int) { p.bytes += int64(n) }

// write sends all of b; the client must keep on taking.
func (p *pace) write(w io.Writer, b []byte) error {
	p.beforeWrite()
	n, err := w.Write(b)
	p.moved(n)
	return err
}
