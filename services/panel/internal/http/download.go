package http

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

// download answers with a JSON file of any length while it is produced. The status is sent with the first
// bytes: an earlier error is answered as usual.
type download struct {
	c    echo.Context
	name string
}

// run answers with what produce writes.
func (d *download) run(produce func(io.Writer) error) error {
	const buffer = 32 << 10
	out := bufio.NewWriterSize(d, buffer)
	err := produce(out)
	if err == nil {
		err = out.Flush()
	}
	switch {
	case err == nil || !d.c.Response().Committed:
	case ctxOf(d.c).Err() != nil:
		panic(http.ErrAbortHandler) // the browser has disconnected or does not read: no error to log
	default:
		// aborts the connection, so that the browser notices that the file is incomplete
		panic(fmt.Errorf("producing a file: %w", err))
	}
	_ = d.deadline(time.Time{}) // of the connection's next response
	return err
}

func (d *download) deadline(at time.Time) error {
	err := http.NewResponseController(d.c.Response()).SetWriteDeadline(at)
	if errors.Is(err, http.ErrNotSupported) { // a test's recorder
		return nil
	}
	return err
}

// Write implements [io.Writer]. A browser that does not read for [writeLimit] is disconnected.
func (d *download) Write(part []byte) (int, error) {
	if err := d.deadline(time.Now().Add(writeLimit)); err != nil {
		return 0, err
	}
	if !d.c.Response().Committed {
		h := d.c.Response().Header()
		h.Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
		h.Set(echo.HeaderContentDisposition, `attachment; filename="`+d.name+`"`)
		d.c.Response().WriteHeader(http.StatusOK)
	}
	return d.c.Response().Write(part)
}
