package engineio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// rawSocket opens a raw WebSocket over an unbuffered pipe, in virtual time.
func (h *harness) rawSocket() (net.Conn, *Session) {
	h.t.Helper()
	conn, err := h.dialRaw()
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { conn.Close() })
	_, _ = io.WriteString(conn, "GET /engine.io/?EIO=4&transport=websocket HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	var head []byte
	for one := make([]byte, 1); !bytes.HasSuffix(head, []byte("\"maxPayload\":1000000}")); head = append(head, one[0]) {
		if _, err := conn.Read(one); err != nil {
			h.t.Fatal(err)
		}
	}
	s := <-h.opened
	s.Confirm()
	return conn, s
}

// TestOnePongWaits: at most one pong is queued for a client that sends pings and does not read (RFC 6455 §5.5.3).
func TestOnePongWaits(t *testing.T) {
	inBubble(t, Options{MaxFrames: -1}, func(t *testing.T, h *harness) {
		conn, s := h.rawSocket()
		pings := bytes.Repeat(clientFrame(true, opPing, []byte("x")), 1000)
		for range 10 {
			if _, err := conn.Write(pings); err != nil {
				t.Fatal(err)
			}
		}
		last := clientFrame(true, opPing, []byte("last"))
		if _, err := conn.Write(last); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got, most := s.Buffered(), 2*(messageOverhead+maxFrameHeader); got > most {
			t.Errorf("got %d bytes that wait after 10,000 pings, want at most %d", got, most)
		}
		var pongs []byte
		for one := make([]byte, 1); !bytes.HasSuffix(pongs, []byte("\x8a\x04last")); pongs = append(pongs, one[0]) {
			if _, err := conn.Read(one); err != nil {
				t.Fatalf("got %q, %v, want a pong of the last ping", pongs, err)
			}
		}
		if most := len("\x8a\x01x\x8a\x01x\x8a\x04last"); len(pongs) > most {
			t.Errorf("got %q, want those that were on their way and that of the last ping", pongs)
		}
	})
}

func TestFramesOfASecond(t *testing.T) {
	inBubble(t, Options{MaxFrames: 100}, func(t *testing.T, h *harness) {
		conn, _ := h.rawSocket()
		frames := bytes.Repeat(clientFrame(true, opText, []byte("3")), 100)
		for range 3 {
			if _, err := conn.Write(frames); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		h.wantOpen()
		_, _ = conn.Write(append(frames, frames[:7]...)) // it may be cut
		h.wantClosed(ReasonTransportError)

		q, _ := h.openPolling()
		packets := "3" + strings.Repeat("\x1e3", 99)
		h.want("POST", q, packets, 200, "ok")
		time.Sleep(time.Second)
		h.want("POST", q, packets, 200, "ok")
		h.wantRefusal("POST", q, "3", 400, 3)
		h.wantClosed(ReasonTransportError)
	})
}

// TestFragmentsAreFrames sends a message in empty fragments.
func TestFragmentsAreFrames(t *testing.T) {
	inBubble(t, Options{MaxFrames: 100}, func(t *testing.T, h *harness) {
		conn, _ := h.rawSocket()
		_, _ = conn.Write(append(clientFrame(false, opText, []byte("4")), bytes.Repeat(clientFrame(false, opContinuation, nil), 100)...))
		h.wantClosed(ReasonTransportError)
	})
}

// TestTinyProgressEnds has a client that reads so slowly that each write is in time but the backlog is not.
func TestTinyProgressEnds(t *testing.T) {
	inBubble(t, Options{WriteTimeout: 10 * time.Second}, func(t *testing.T, h *harness) {
		conn, s := h.rawSocket()
		m, start := NewMessage([]byte("tiny")), time.Now()
		for range 3 {
			_ = s.Send(m)
		}
		one := make([]byte, m.Size())
		for range 30 {
			time.Sleep(time.Second)
			if _, err := io.ReadFull(conn, one); err != nil || s.Send(m) != nil {
				break
			}
		}
		h.wantClosed(ReasonSlow)
		if lasted := time.Since(start); lasted > 12*time.Second {
			t.Errorf("closed after %v, want 10 s", lasted)
		}
	})
}

// TestBacklogHasItsTime has a client that reads a full batch within each timeout.
func TestBacklogHasItsTime(t *testing.T) {
	inBubble(t, Options{WriteTimeout: 10 * time.Second, PingTimeout: time.Minute}, func(t *testing.T, h *harness) {
		conn, s := h.rawSocket()
		m := NewMessage(make([]byte, writeBatchSize-maxFrameHeader-1))
		for range 6 {
			if err := s.Send(m); err != nil {
				t.Fatal(err)
			}
		}
		whole := make([]byte, m.Size())
		for range 6 {
			time.Sleep(9 * time.Second)
			if _, err := io.ReadFull(conn, whole); err != nil {
				t.Fatal(err)
			}
		}
		h.wantOpen()
	})
}

func TestUnfinishedMessageIsClosed(t *testing.T) {
	for name, begun := range map[string][]byte{
		"a frame":    clientFrame(true, opText, []byte("4hello"))[:8],
		"a fragment": clientFrame(false, opText, []byte("4hello")),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{PartialTimeout: 10 * time.Second}, func(t *testing.T, h *harness) {
				conn, _ := h.rawSocket()
				start := time.Now()
				if _, err := conn.Write(begun); err != nil {
					t.Fatal(err)
				}
				go io.Copy(io.Discard, conn)
				time.Sleep(9 * time.Second)
				h.wantOpen()
				h.wantClosed(ReasonTransportError)
				wantSince(t, "close", start, 10*time.Second)
			})
		})
	}
}

// TestManyMessagesMayEndWithAPiece sends messages so that there is always an incomplete one.
func TestManyMessagesMayEndWithAPiece(t *testing.T) {
	inBubble(t, Options{PartialTimeout: 10 * time.Second}, func(t *testing.T, h *harness) {
		conn, _ := h.rawSocket()
		go io.Copy(io.Discard, conn)
		frame := clientFrame(true, opText, []byte("3"))
		_, _ = conn.Write(frame[:3])
		for range 4 {
			time.Sleep(8 * time.Second)
			_, _ = conn.Write(append(bytes.Clone(frame[3:]), clientFrame(true, opText, []byte("3"))[:3]...))
			frame = clientFrame(true, opText, []byte("3"))
		}
		h.wantOpen()
	})
}

func TestUnfinishedBodyIsClosed(t *testing.T) {
	inBubble(t, Options{PartialTimeout: 10 * time.Second}, func(t *testing.T, h *harness) {
		q, s := h.openPolling()
		s.Confirm()
		body, rest := io.Pipe()
		defer rest.Close()
		start, ended := time.Now(), make(chan error, 1)
		go func() {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, h.url+q, body)
			res, err := h.client.Do(req)
			if err == nil {
				res.Body.Close()
			}
			ended <- err
		}()
		_, _ = io.WriteString(rest, "4hel")
		time.Sleep(9 * time.Second)
		h.wantOpen()
		h.wantClosed(ReasonTransportClose)
		wantSince(t, "close", start, 10*time.Second)
		rest.CloseWithError(errors.New("given up"))
		<-ended
	})
}

// TestSmallMessagesCountWhatTheyCost sends one-byte messages to a client that does not poll.
func TestSmallMessagesCountWhatTheyCost(t *testing.T) {
	inBubble(t, Options{SendBuffer: 1 << 20}, func(t *testing.T, h *harness) {
		_, s := h.openPolling()
		n := 0
		for ; s.Send(NewMessage([]byte("x"))) == nil; n++ {
		}
		if most := 1 << 20 / messageOverhead; n > most {
			t.Errorf("got %d messages that waited, want at most %d", n, most)
		}
		h.wantClosed(ReasonSlow)
	})
}

func TestUnconfirmedSessionsHaveABudget(t *testing.T) {
	address := "a"
	opts := Options{MaxUnconfirmed: 5, MaxUnconfirmedPerAddress: 2, OpenTimeout: 10 * time.Second, Address: func(*http.Request) string { return address }}
	inBubble(t, opts, func(t *testing.T, h *harness) {
		open := func(from string) (string, *Session) {
			address = from
			return h.openPolling()
		}
		wantUnknown := func(q string) {
			t.Helper()
			h.wantClosed(ReasonUnconfirmed)
			h.wantRefusal("GET", q, "", 400, 1)
		}
		_, inside := open("a")
		inside.Confirm()
		first, _ := open("a")
		open("a")
		h.wantOpen()
		open("a")
		wantUnknown(first) // the oldest of its address
		oldest := ""
		for i, from := range []string{"b", "c", "d", "e"} {
			q, _ := open(from)
			if i == 0 {
				oldest = q
			}
		}
		h.wantClosed(ReasonUnconfirmed) // the oldest of all
		h.want("POST", oldest, "4x", 200, "ok")
		if got := h.srv.ConfirmedCount(); got != 1 {
			t.Errorf("got %d confirmed, want 1", got)
		}
		time.Sleep(11 * time.Second)
		for range 5 {
			h.wantClosed(ReasonUnconfirmed) // in their time
		}
		h.wantOpen()
		if n := h.srv.unconfirmed.all.Len() + len(h.srv.unconfirmed.byAddress); n != 0 {
			t.Errorf("got %d entries left, want none", n)
		}
		inside.Unconfirm()
		time.Sleep(9 * time.Second)
		h.wantOpen()
		h.wantClosed(ReasonUnconfirmed)
		if total, _ := h.srv.SessionCount(); total != 0 || h.srv.ConfirmedCount() != 0 {
			t.Errorf("got %d sessions, %d confirmed, want none", total, h.srv.ConfirmedCount())
		}
	})
}

func TestRequestKeepsLittle(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Options{KeepHeaders: []string{"Origin"}, DropQuery: true})
	req, _ := http.NewRequest(http.MethodGet, h.url+"&transport=polling&x="+strings.Repeat("y", 1000), nil)
	req.Header.Set("Origin", "https://"+strings.Repeat("z", 50_000))
	res, err := h.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	r := (<-h.opened).Request()
	if len(r.Query()) != 0 || len(r.query) != 0 {
		t.Errorf("got %v, want no query", r.Query())
	}
	if got := r.Header().Get("Origin"); len(got) != maxKeptHeader || len(fmt.Sprint(r.lines)) > maxKeptHeader+20 {
		t.Errorf("got %d bytes of Origin, want %d", len(got), maxKeptHeader)
	}
}
