package bot

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func allEvents(r io.Reader) (all []string, err error) {
	events := newEventReader(r, maxAnswer)
	for {
		e, err := events.next()
		if err != nil {
			return all, err
		}
		all = append(all, e.name+"|"+string(e.data))
	}
}

// The examples of the HTML Standard, and all kinds of line ends, also split between two reads.
func TestServerSentEvents(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"data: YHOO\ndata: +2\ndata: 10\n\n":                               "|YHOO\n+2\n10",
		": test stream\n\ndata: first event\nid: 1\n\ndata:second\nid\n\n": "|first event;|second",
		"data\n\ndata\ndata\n\ndata:":                                      "|;|\n",
		"data:test\n\ndata: test\n\n":                                      "|test;|test",
		"event: add\r\ndata: 1\r\n\r\nevent: remove\r\rdata: 2\r\r":        "add|1;|2",
		"\ufeffdata: bom\n\n":                                              "|bom",
		"data: lost":                                                       "",
		"":                                                                 "",
	} {
		for name, r := range map[string]io.Reader{"at once": strings.NewReader(body), "byte by byte": iotest.OneByteReader(strings.NewReader(body))} {
			got, err := allEvents(r)
			if strings.Join(got, ";") != want || !errors.Is(err, io.EOF) {
				t.Errorf("%q %s: got %q and %v, want %q", body, name, got, err, want)
			}
		}
	}
}

func TestEventStreamIsBounded(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"a line": "data: " + strings.Repeat("x", maxAnswer+1), "many events": strings.Repeat("data: "+strings.Repeat("x", 1000)+"\n\n", maxAnswer/1000+1),
	} {
		if _, err := allEvents(strings.NewReader(body)); !errors.Is(err, errTooLarge) {
			t.Errorf("%s: got %v, want it too large", name, err)
		}
	}
}

// The events do not depend on how the stream is split into reads, and contain no invented line ends.
func FuzzServerSentEvents(f *testing.F) {
	f.Add("data: {\"text\":\"a\"}\n\nevent: done\r\ndata: [DONE]\r\n\r\n")
	f.Add("\ufeff:\r\rdata\n\ndata:\x00\xff\r\n")
	f.Fuzz(func(t *testing.T, body string) {
		whole, err := allEvents(strings.NewReader(body))
		pieces, again := allEvents(iotest.OneByteReader(strings.NewReader(body)))
		if strings.Join(whole, "\x1e") != strings.Join(pieces, "\x1e") || !errors.Is(err, io.EOF) && !errors.Is(err, errTooLarge) || !errors.Is(again, io.EOF) && !errors.Is(again, errTooLarge) {
			t.Errorf("got %q (%v) at once and %q (%v) byte by byte", whole, err, pieces, again)
		}
		for _, e := range whole {
			if strings.Contains(e, "\r") || !strings.Contains(body, "data") {
				t.Errorf("got the event %q of %q", e, body)
			}
		}
	})
}
