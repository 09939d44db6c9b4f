package e2e

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// eventSource reads server-sent events of the panel, as a browser does.
type eventSource struct {
	events chan serverEvent // closed when the stream has ended
	stop   func()
	lastID string // of the last event that next has returned
}

type serverEvent struct{ id, name, data string }

// openEvents opens an event stream with a session's secret. It ends with the test.
func openEvents(t *testing.T, url, session, lastID string) *eventSource {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	check(t, err)
	r.Header.Set("Cookie", "parley-panel="+session)
	r.Header.Set("Last-Event-ID", lastID)
	var response *http.Response
	eventually(t, "the panel's events", func() error { // the panel may be starting again
		response, err = http.DefaultClient.Do(r)
		return err
	})
	s := &eventSource{events: make(chan serverEvent, 4096), lastID: lastID}
	ended := make(chan struct{})
	s.stop = func() { cancel(); <-ended }
	t.Cleanup(s.stop)
	go func() {
		defer close(ended)
		defer close(s.events)
		defer response.Body.Close()
		_ = readEvents(response.Body, func(e serverEvent) error {
			s.events <- e
			return nil
		})
	}()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("the panel's events: got %s", response.Status)
	}
	return s
}

// readEvents passes the events of a stream to receive until its end.
func readEvents(stream io.Reader, receive func(serverEvent) error) error {
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, 1<<20)
	var e serverEvent
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			e.data = value
		case "": // the end of an event, or a comment
			if e.name == "" {
				continue
			}
			if err := receive(e); err != nil {
				return err
			}
			e = serverEvent{}
		}
	}
	return lines.Err()
}

// next returns the next event, or false if the stream has ended.
func (s *eventSource) next(t *testing.T) (e serverEvent, open bool) {
	t.Helper()
	select {
	case e, open := <-s.events:
		if e.id != "" {
			s.lastID = e.id
		}
		return e, open
	case <-time.After(limit):
		t.Fatal("the panel's events: no event in time")
	}
	return serverEvent{}, false
}
