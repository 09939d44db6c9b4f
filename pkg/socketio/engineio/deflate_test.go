package engineio

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

func TestNegotiateDeflate(t *testing.T) {
	t.Parallel()
	const none, both = "", "permessage-deflate; server_no_context_takeover; client_no_context_takeover"
	for offer, want := range map[string]string{
		"":                   none,
		"x-other":            none,
		"permessage-deflate": both,
		"permessage-deflate; client_max_window_bits":                                     both, // browsers
		"permessage-deflate; client_max_window_bits=10; server_no_context_takeover":      both,
		"permessage-deflate; client_max_window_bits=16":                                  none,
		"permessage-deflate; client_no_context_takeover; client_no_context_takeover":     none,
		"permessage-deflate; client_no_context_takeover=1":                               none,
		"permessage-deflate; server_max_window_bits=15":                                  both + "; server_max_window_bits=15",
		"permessage-deflate; server_max_window_bits=10":                                  none,
		"permessage-deflate; server_max_window_bits=10, permessage-deflate":              both, // its second choice
		"permessage-deflate; unknown":                                                    none,
		"x-other; permessage-deflate, permessage-deflate; server_max_window_bits=\"15\"": both + "; server_max_window_bits=15",
	} {
		if got := negotiateDeflate([]string{offer}); got != want {
			t.Errorf("%q: got %q, want %q", offer, got, want)
		}
	}
}

func (h *harness) dialCompressed(mode websocket.CompressionMode) (*websocket.Conn, *http.Response) {
	h.t.Helper()
	conn, res, err := websocket.Dial(h.t.Context(), h.url+"&transport=websocket", &websocket.DialOptions{CompressionMode: mode, CompressionThreshold: 1})
	if err != nil {
		h.t.Fatal(err)
	}
	conn.SetReadLimit(1 << 24)
	h.t.Cleanup(func() { conn.CloseNow() })
	h.read(conn) // the open packet
	return conn, res
}

func TestCompression(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Options{CompressFrom: 100})
	for _, mode := range []websocket.CompressionMode{websocket.CompressionNoContextTakeover, websocket.CompressionContextTakeover, websocket.CompressionDisabled} {
		conn, res := h.dialCompressed(mode)
		if got := res.Header.Get("Sec-WebSocket-Extensions") != ""; got != (mode != websocket.CompressionDisabled) {
			t.Errorf("mode %v: got extensions %q", mode, res.Header.Get("Sec-WebSocket-Extensions"))
		}
		for _, text := range []string{"4short", "4" + strings.Repeat("long ", 50_000), "4" + strings.Repeat("é", 200), "4"} {
			h.write(conn, text)
			if got := h.read(conn); got != text {
				t.Fatalf("mode %v: got %d bytes, want %d", mode, len(got), len(text))
			}
		}
		if err := conn.Write(t.Context(), websocket.MessageBinary, make([]byte, 5000)); err != nil {
			t.Fatal(err)
		}
		if got := h.read(conn); got != string(make([]byte, 5000)) {
			t.Errorf("mode %v: got %d bytes, want 5000 zeros", mode, len(got))
		}
		h.wantNothingBuffered(<-h.opened)
	}
}

func TestCompressionIsOffByDefault(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Options{})
	if _, res := h.dialCompressed(websocket.CompressionNoContextTakeover); res.Header.Get("Sec-WebSocket-Extensions") != "" {
		t.Errorf("got extensions %q, want none", res.Header.Get("Sec-WebSocket-Extensions"))
	}
}

// TestInflationIsBounded sends a decompression bomb.
func TestInflationIsBounded(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Options{CompressFrom: 1, MaxPayload: 100_000})
	conn, _ := h.dialCompressed(websocket.CompressionNoContextTakeover)
	_ = conn.Write(t.Context(), websocket.MessageText, append([]byte("4"), bytes.Repeat([]byte("0"), 50_000_000)...))
	h.wantClosed(ReasonTransportError)
	if _, _, err := conn.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusMessageTooBig {
		t.Errorf("got %v, want the status for too much", err)
	}
}

// TestBroadcastIsCompressedOnce sends one message to several sessions and checks that they share the compressed bytes.
func TestBroadcastIsCompressedOnce(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Options{CompressFrom: 100})
	text := strings.Repeat("to all ", 100)
	m := NewMessage([]byte(text), make([]byte, 1000), []byte("few"))
	var first *[]byte
	for range 3 {
		conn, _ := h.dialCompressed(websocket.CompressionNoContextTakeover)
		if err := (<-h.opened).Send(m); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"4" + text, string(make([]byte, 1000)), "few"} {
			if got := h.read(conn); got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
		}
		if first == nil {
			first = m.deflated.Load()
		}
		if got := m.deflated.Load(); got != first || len(*got) > m.Size()/5 {
			t.Errorf("got different bytes, or %d compressed bytes for %d", len(*got), m.Size())
		}
	}
}

func TestAssemblerRefusesCompression(t *testing.T) {
	t.Parallel()
	compressed := func(frame []byte) []byte {
		frame[0] |= rsv1
		return frame
	}
	hello := new(deflaters).appendDeflated(nil, []byte("hello"))
	for name, frames := range map[string][][]byte{
		"a control frame": {compressed(clientFrame(true, opPing, nil))},
		"a continuation":  {compressed(clientFrame(false, opText, hello[:2])), compressed(clientFrame(true, opContinuation, hello[2:]))},
		"no deflate":      {compressed(clientFrame(true, opText, []byte("\xff\xff\xff\xff")))},
	} {
		a := assembler{maxPayload: 1000, deflaters: &deflaters{}}
		if err := a.feed(bytes.Join(frames, nil), func(opcode, []byte) error { return nil }); err == nil {
			t.Errorf("compressed %s: got no error", name)
		}
	}
	a := assembler{maxPayload: 1000}
	if err := a.feed(compressed(clientFrame(true, opText, hello)), func(opcode, []byte) error { return nil }); err == nil {
		t.Error("without negotiation: got no error")
	}
}

func FuzzInflate(f *testing.F) {
	d := &deflaters{}
	f.Add(d.appendDeflated(nil, []byte("4hello")))
	f.Add(d.appendDeflated(nil, make([]byte, 100_000)))
	f.Add([]byte{})
	f.Add([]byte{0x01, 0x00, 0x00, 0xff, 0xff, 0x00})
	f.Add([]byte{0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 4096
		content, err := d.inflate(data, limit)
		if err != nil {
			return
		}
		if len(content) > limit {
			t.Fatalf("got %d bytes, want at most %d", len(content), limit)
		}
		again, err := d.inflate(d.appendDeflated(nil, content), limit)
		if err != nil || !bytes.Equal(again, content) {
			t.Errorf("got %q, %v, want %q", again, err, content)
		}
	})
}

func BenchmarkCompress(b *testing.B) {
	d := &deflaters{}
	text := bytes.Repeat(benchText, 4)
	b.ReportAllocs()
	for b.Loop() {
		NewMessage(text).compress(d, 1)
	}
}
