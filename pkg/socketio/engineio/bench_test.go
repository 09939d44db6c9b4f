package engineio

import (
	"io"
	"net"
	"net/http/httptest"
	"testing"
)

// sink is an accepted connection whose client discards all input.
func sinks(b *testing.B, n int) []*Session {
	opened := make(chan *Session, n)
	srv := NewServer(Options{}, func(s *Session) Handler {
		opened <- s
		return discard{}
	})
	hs := httptest.NewServer(srv)
	b.Cleanup(func() {
		_ = srv.Close()
		hs.Close()
	})
	sessions := make([]*Session, n)
	for i := range sessions {
		conn, err := net.Dial("tcp", hs.Listener.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { conn.Close() })
		_, _ = io.WriteString(conn, "GET /?EIO=4&transport=websocket HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
		go io.Copy(io.Discard, conn)
		sessions[i] = <-opened
	}
	return sessions
}

type discard struct{}

func (discard) OnMessage([]byte, bool) error { return nil }
func (discard) OnClose(Reason)               {}

var benchText = []byte(`2/message,["message",{"id":"0194f0b5","type":"TEXT","data":{"text":"hello there, how are you?"},"isFromSupport":true},"12345"]`)

// BenchmarkFanOut sends one message, encoded once, to many sessions; time and allocations are per
// session.
func BenchmarkFanOut(b *testing.B) {
	sessions := sinks(b, 200)
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; {
		m := NewMessage(benchText)
		for _, s := range sessions {
			_ = s.Send(m)
			i++
		}
	}
}

// BenchmarkBareLoop is the baseline of FanOut: plain writes of the same bytes.
func BenchmarkBareLoop(b *testing.B) {
	sessions := sinks(b, 200)
	m := NewMessage(benchText)
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; {
		for _, s := range sessions {
			_, _ = s.ws.conn.Write(m.wire)
			i++
		}
	}
}

func BenchmarkNewMessage(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		NewMessage(benchText)
	}
}

func BenchmarkFeed(b *testing.B) {
	frame := clientFrame(true, opText, []byte(`42["say","hello there"]`))
	a := assembler{maxPayload: 1 << 20}
	buf := make([]byte, len(frame))
	b.ReportAllocs()
	for b.Loop() {
		copy(buf, frame)
		_ = a.feed(buf, func(opcode, []byte) error { return nil })
	}
}
