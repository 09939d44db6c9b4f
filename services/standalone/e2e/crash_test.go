package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/httpapitest"
)

// A shutdown and a crash, each followed by a restart, preserve everything; so does a shutdown under load.
func TestRestartKeepsEverything(t *testing.T) {
	dir := t.TempDir()
	first := ownStandalone(t, dir)
	v := register(t, first.place, first.widgetAPI(t))
	s := connected(t, first.WidgetBaseURL, v.token, "websocket")
	received := append(v.history(t), v.write(t, "before"))
	reply := s.next(t)
	received = append(received, reply.record)
	checkHistory(t, v, received)
	before := streams(t, first.NATSURL)
	stopped(t, first)

	again := ownStandalone(t, dir)
	if got := again.AccessToken; got != first.AccessToken {
		t.Error("the company has another token after a restart")
	}
	if again.WidgetBaseURL == first.WidgetBaseURL {
		t.Log("the same port again: demo.json's new address was not seen")
	}
	after := streams(t, again.NATSURL)
	for name, count := range before {
		if after[name] < count {
			t.Errorf("stream %s: got %d messages after the restart, want at least %d", name, after[name], count)
		}
	}
	back := &visitor{place: again.place, api: again.widgetAPI(t), token: v.token, email: v.email}
	checkHistory(t, back, received)
	listening := connected(t, again.WidgetBaseURL, v.token, "websocket")
	body := map[string]any{"type": "TEXT", "chatId": reply.ChatID, "data": map[string]string{"text": "after"}}
	id := want[sent](t, http.StatusOK, again.clientAPI(t).call(t, http.MethodPost, "/message/send", body, accessToken(first.AccessToken))).MessageID
	if d := listening.next(t); d.ID != id {
		t.Errorf("socket after the restart: got %s, want the company's message %s and no earlier message", d.ID, id)
	}

	lost := again.dir + "/demo.json" // as if it had crashed between seeding and writing the file
	stopped(t, again)
	check(t, os.Remove(lost))
	healed := ownStandalone(t, dir)
	if healed.CompanyID != first.CompanyID || healed.AccessToken == "" || healed.AccessToken == first.AccessToken {
		t.Errorf("demo.json after it was lost: got company %s, want %s with a new token", healed.CompanyID, first.CompanyID)
	}
	checkPush(t, healed.place, healed.clientAPI(t))
}

func streams(t *testing.T, url string) map[string]uint64 {
	t.Helper()
	js := plainJetStream(t, url)
	counts := map[string]uint64{}
	for _, s := range subject.Streams() {
		stream, err := js.Stream(t.Context(), s.Name)
		check(t, err)
		counts[s.Name] = stream.CachedInfo().State.Msgs
	}
	if counts[subject.Inbound] == 0 || counts[subject.Replies] == 0 {
		t.Errorf("streams: got %v, want messages in INBOUND and REPLIES", counts)
	}
	return counts
}

// stopped stops a standalone and checks for a clean exit without warnings.
func stopped(t *testing.T, s *standalone) {
	t.Helper()
	begun := time.Now()
	code, err := s.stop()
	if err != nil || code != 0 {
		t.Errorf("stop: got code %d, %v, want 0:\n%s", code, err, s.stderr)
	}
	t.Logf("stopped in %v", time.Since(begun).Round(time.Millisecond))
}

func TestKillUnderLoad(t *testing.T) {
	dir := t.TempDir()
	s := ownStandalone(t, dir)
	f := startTraffic(t, s.place)
	f.await(t, "traffic", &f.accepted, 150*rounds())
	check(t, s.kill())
	f.stop()
	f.checkNothingLost(t, ownStandalone(t, dir).place)
}

func TestStopUnderLoad(t *testing.T) {
	dir := t.TempDir()
	s := ownStandalone(t, dir)
	f := startTraffic(t, s.place)
	f.await(t, "traffic", &f.accepted, 150*rounds())
	idle := connected(t, s.WidgetBaseURL, f.visitors[0].token, "polling") // a hanging poll must not delay the shutdown
	stopped(t, s)
	idle.await(t, "disconnect")
	f.stop()
	if errorCount := strings.Count(s.stderr.String(), "level=ERROR"); errorCount > 0 {
		t.Errorf("the shutdown logged %d errors:\n%s", errorCount, s.stderr)
	}
	f.checkNothingLost(t, ownStandalone(t, dir).place)
}

// Requests whose bodies are still arriving when the shutdown begins are answered, and their messages stored.
func TestStopFinishesWhatIsInFlight(t *testing.T) {
	dir := t.TempDir()
	s := ownStandalone(t, dir)
	v := register(t, s.place, s.widgetAPI(t))
	chatID := chatOf(t, s.place, v)
	mine := beginPost(t, s.WidgetBaseURL+"/message", bearer(v.token), `{"type":"TEXT","data":{"text":"in flight"}}`)
	theirs := beginPost(t, s.ClientBaseURL+"/message/send", accessToken(s.AccessToken),
		`{"type":"TEXT","chatId":"`+chatID+`","data":{"text":"in flight"}}`)
	check(t, s.cmd.Process.Signal(syscall.SIGTERM))
	for _, base := range []string{s.WidgetBaseURL, s.ClientBaseURL} {
		eventually(t, "new connections are refused", func() error { return wantRefused(strings.TrimPrefix(base, "http://")) })
	}
	written := want[record](t, http.StatusCreated, mine.finish(t))
	company := want[sent](t, http.StatusOK, theirs.finish(t))
	if code, err := s.end(0); err != nil || code != 0 { // it has its signal: a second one would end it at once
		t.Errorf("stop: got code %d, %v, want 0:\n%s", code, err, s.stderr)
	}

	again := ownStandalone(t, dir)
	back := &visitor{place: again.place, api: again.widgetAPI(t), token: v.token}
	eventually(t, "the history", func() error {
		history := back.history(t)
		for _, id := range []string{written.ID, company.MessageID} {
			if !slices.ContainsFunc(history, func(r record) bool { return r.ID == id }) {
				return fmt.Errorf("%s is missing", id)
			}
		}
		return nil
	})
}

// wantRefused returns an error while addr accepts connections.
func wantRefused(addr string) error {
	if conn, err := net.Dial("tcp", addr); err == nil {
		conn.Close()
		return errors.New("a new connection was accepted")
	}
	return nil
}

// halfPost is a request whose body has arrived only in part.
type halfPost struct {
	conn net.Conn
	rest string
}

func beginPost(t *testing.T, target string, credential header, body string) halfPost {
	t.Helper()
	host, path, _ := strings.Cut(strings.TrimPrefix(target, "http://"), "/")
	conn, err := net.Dial("tcp", host)
	check(t, err)
	t.Cleanup(func() { conn.Close() })
	head := fmt.Sprintf("POST /%s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s: %s\r\nExpect: 100-continue\r\n\r\n",
		path, host, len(body), credential.name, credential.value)
	_, err = io.WriteString(conn, head)
	check(t, err)
	// The server asks for the body once a handler reads it: from then on the request is in flight.
	const wanted = "HTTP/1.1 100 Continue\r\n\r\n"
	got := make([]byte, len(wanted))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != wanted {
		t.Fatalf("got %q, %v, want %q", got, err, wanted)
	}
	_, err = io.WriteString(conn, body[:8])
	check(t, err)
	return halfPost{conn, body[8:]}
}

func (h halfPost) finish(t *testing.T) httpapitest.Response {
	t.Helper()
	_, err := io.WriteString(h.conn, h.rest)
	check(t, err)
	response, err := http.ReadResponse(bufio.NewReader(h.conn), nil)
	check(t, err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	check(t, err)
	return httpapitest.Response{Status: response.StatusCode, Header: response.Header, Body: string(data)}
}

// A busy port ends the process with one clear line.
func TestBusyPort(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer ln.Close()
	busy := ln.Addr().String()
	free := map[string]string{
		"PARLEY_CLIENT_ADDR": "127.0.0.1:0", "PARLEY_WIDGET_ADDR": "127.0.0.1:0", "PARLEY_OPS_ADDR": "127.0.0.1:0",
		"PARLEY_NATS_ADDR": "127.0.0.1:0",
	}
	for _, name := range slices.Sorted(maps.Keys(free)) {
		t.Run(name, func(t *testing.T) {
			settings := []string{"PARLEY_DATA_DIR=" + filepath.Join(t.TempDir(), "data")}
			for other, addr := range free {
				if other == name {
					addr = busy
				}
				settings = append(settings, other+"="+addr)
			}
			wantRefusal(t, settings, busy, name)
		})
	}
}

func TestWrongSettings(t *testing.T) {
	s := commonStandalone(t)
	wantRefusal(t, []string{"PARLEY_CLIENT_ADDR=nonsense", "LOG_LEVEL=loud"}, "PARLEY_CLIENT_ADDR", "LOG_LEVEL")
	wantRefusal(t, []string{"PARLEY_DATA_DIR=" + s.dir, "PARLEY_CLIENT_ADDR=127.0.0.1:0"}, "in use by another standalone")
}

// wantRefusal starts a standalone that must exit at once with code 1 and one line that contains all the words.
func wantRefusal(t *testing.T, settings []string, words ...string) {
	t.Helper()
	c, err := spawn("standalone", settings, program(t, "standalone"))
	check(t, err)
	select {
	case <-c.ended:
	case <-time.After(limit):
		_ = c.kill()
		t.Fatalf("it runs:\n%s", c.stderr)
	}
	output := c.stderr.String()
	if c.code() != 1 || strings.Count(output, "\n") != 1 {
		t.Errorf("got code %d and %q, want 1 and one line", c.code(), output)
	}
	for _, word := range words {
		if !strings.Contains(output, word) {
			t.Errorf("got %q, want %q in it", output, word)
		}
	}
}
