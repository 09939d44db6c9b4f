package bot

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
)

// doneData is the data of the last event of a stream, as in the chat-completions protocol.
const doneData = "[DONE]"

var (
	errTooLarge  = errors.New("the stream is too large")
	errBrokenOff = errors.New("the answer broke off")
)

// isEventStream reports whether a response is a stream of server-sent events.
func isEventStream(r *http.Response) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "text/event-stream"
}

// serverEvent is one server-sent event.
type serverEvent struct {
	name string // empty: message
	data []byte
}

// eventReader reads server-sent events (HTML Standard, "Server-sent events", "Interpreting an event stream"),
// up to a limit of bytes. A line has at most maxAnswer bytes. It ignores ids and reconnection times.
type eventReader struct {
	lines *bufio.Scanner
	left  int
	first bool
	cr    bool // the previous line ended with CR, so a following LF belongs to it
}

func newEventReader(r io.Reader, limit int) *eventReader {
	e := &eventReader{left: limit, first: true}
	e.lines = bufio.NewScanner(r)
	e.lines.Buffer(make([]byte, 0, 4<<10), min(limit, maxAnswer))
	e.lines.Split(e.split)
	return e
}

// split ends a line at LF, CR or CRLF.
func (e *eventReader) split(data []byte, atEOF bool) (advance int, token []byte, err error) {
	skip := 0
	if e.cr && len(data) > 0 {
		e.cr = false
		if data[0] == '\n' {
			skip = 1
			data = data[1:]
		}
	}
	if i := bytes.IndexAny(data, "\r\n"); i >= 0 {
		e.cr = data[i] == '\r'
		return skip + i + 1, data[:i], nil
	}
	return skip, nil, nil // a line without line end is dropped
}

// next returns the next event that has data. At the end of the stream it returns io.EOF and drops an event
// that no empty line ends.
func (e *eventReader) next() (serverEvent, error) {
	var event serverEvent
	hasData := false
	for e.lines.Scan() {
		line := e.lines.Bytes()
		e.left -= len(line) + 1
		if e.left < 0 {
			return serverEvent{}, errTooLarge
		}
		if e.first {
			e.first = false
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		if len(line) == 0 {
			if hasData {
				return event, nil
			}
			event = serverEvent{}
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "event":
			event.name = string(value)
		case "data":
			if hasData {
				event.data = append(event.data, '\n')
			}
			event.data = append(event.data, value...)
			hasData = true
		}
	}
	switch err := e.lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return serverEvent{}, errTooLarge
	case err != nil:
		return serverEvent{}, err
	}
	return serverEvent{}, io.EOF
}
