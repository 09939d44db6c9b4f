package engineio

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParsePacket(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		in     string
		binary bool
		want   Packet
		err    error
	}{
		{in: "4hello", want: Packet{Type: MessageType, Data: []byte("hello")}},
		{in: "2probe", want: Packet{Type: Ping, Data: []byte("probe")}},
		{in: "6", want: Packet{Type: Noop}},
		{in: "\x01\x02", binary: true, want: Packet{Type: MessageType, Binary: true, Data: []byte{1, 2}}},
		{in: "", binary: true, want: Packet{Type: MessageType, Binary: true}},
		{in: "", err: ErrPacket},
		{in: "7", err: ErrPacket},
		{in: "abc", err: ErrPacket},
	} {
		got, err := ParsePacket([]byte(tc.in), tc.binary)
		if !errors.Is(err, tc.err) || !samePacket(got, tc.want) {
			t.Errorf("%q: got %v, %v, want %v, %v", tc.in, got, err, tc.want, tc.err)
		}
	}
}

func samePacket(a, b Packet) bool {
	return a.Type == b.Type && a.Binary == b.Binary && bytes.Equal(a.Data, b.Data)
}

func TestPayloadExamples(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		body string
		want []Packet
	}{
		{"4hello\x1e2\x1e4world", []Packet{{MessageType, false, []byte("hello")}, {Ping, false, nil}, {MessageType, false, []byte("world")}}},
		{"4hello\x1ebAQIDBA==", []Packet{{MessageType, false, []byte("hello")}, {MessageType, true, []byte{1, 2, 3, 4}}}},
	} {
		var got []Packet
		if err := EachPacket([]byte(tc.body), func(p Packet) error { got = append(got, p); return nil }); err != nil {
			t.Fatalf("%q: %v", tc.body, err)
		}
		var again []byte
		for i, p := range got {
			if !samePacket(p, tc.want[i]) {
				t.Errorf("%q: got %v, want %v", tc.body, p, tc.want[i])
			}
			again = AppendPayloadPacket(again, p)
		}
		if string(again) != tc.body {
			t.Errorf("got %q, want %q", again, tc.body)
		}
	}
	for _, bad := range []string{"", "abc", "4a\x1e", "b=", "\x1e4a", "4\xff"} {
		if err := EachPacket([]byte(bad), func(Packet) error { return nil }); !errors.Is(err, ErrPacket) {
			t.Errorf("%q: got %v, want ErrPacket", bad, err)
		}
	}
}

func FuzzPayload(f *testing.F) {
	f.Add([]byte("4hello\x1e2\x1e4world"))
	f.Add([]byte("4hello\x1ebAQIDBA=="))
	f.Add([]byte("\x1e\x1e"))
	f.Add([]byte(""))
	f.Add([]byte("b"))
	f.Add([]byte("bAQ"))                     // without padding
	f.Add([]byte("bAQID\n\r"))               // base64 decoders pass over these
	f.Add([]byte("4\xff\x1e4"))              // no UTF-8
	f.Add([]byte("7\x1e4a"))                 // no such type
	f.Add([]byte("4\x1e\x1e4"))              // an empty packet in between
	f.Add([]byte("0{}\x1e1\x1e3probe\x1e6")) // every other type
	f.Fuzz(func(t *testing.T, body []byte) {
		var again []byte
		err := EachPacket(body, func(p Packet) error { again = AppendPayloadPacket(again, p); return nil })
		if err != nil {
			return
		}
		var third []byte
		if err := EachPacket(again, func(p Packet) error { third = AppendPayloadPacket(third, p); return nil }); err != nil || !bytes.Equal(again, third) {
			t.Errorf("got %q, %v, want %q", third, err, again)
		}
	})
}

// clientFrame encodes a masked frame.
func clientFrame(fin bool, op opcode, data []byte) []byte {
	head := appendFrameHeader(nil, op, len(data))
	if !fin {
		head[0] &^= 0x80
	}
	head[1] |= 0x80
	mask := [4]byte{0x11, 0x22, 0x33, 0x44}
	masked := bytes.Clone(data)
	unmask(masked, mask)
	return append(append(head, mask[:]...), masked...)
}

type received struct {
	op   opcode
	data string
}

// feedAll feeds in to an assembler in pieces.
func feedAll(in []byte, maxPayload int, cut func(left int) int) (got []received, err error) {
	a := assembler{maxPayload: maxPayload, deflaters: &deflaters{}}
	for len(in) > 0 && err == nil {
		n := cut(len(in))
		err = a.feed(bytes.Clone(in[:n]), func(op opcode, data []byte) error {
			got = append(got, received{op, string(data)})
			return nil
		})
		in = in[n:]
	}
	return got, err
}

func TestAssemblerTakesAnyCut(t *testing.T) {
	t.Parallel()
	var in []byte
	var want []received
	add := func(op opcode, data string) {
		in = append(in, clientFrame(true, op, []byte(data))...)
		want = append(want, received{op, data})
	}
	add(opText, "4hello")
	add(opBinary, strings.Repeat("x", 126))
	add(opBinary, strings.Repeat("y", 70000))
	in = append(in, clientFrame(false, opText, []byte("4fr"))...)
	add(opPing, "between")
	in = append(in, clientFrame(false, opContinuation, nil)...)
	in = append(in, clientFrame(true, opContinuation, []byte("agments é"))...)
	want = append(want, received{opText, "4fragments é"})
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.SampledFrom([]int{1, 7, 4096, len(in)}).Draw(t, "most")
		pieces := rand.New(rand.NewPCG(1, rapid.Uint64().Draw(t, "seed")))
		got, err := feedAll(in, 100000, func(left int) int { return min(left, 1+pieces.IntN(most)) })
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("got %d messages, %v, want %d", len(got), err, len(want))
		}
	})
}

func TestAssemblerRefuses(t *testing.T) {
	t.Parallel()
	unmasked := appendFrameHeader(nil, opText, 1)
	reserved := clientFrame(true, opText, []byte("4"))
	reserved[0] |= 0x40
	huge := binary.BigEndian.AppendUint64([]byte{0x81, 0xff}, 1<<63)
	for name, tc := range map[string]struct {
		in  []byte
		err error
	}{
		"unmasked":            {append(unmasked, '4'), errFrame},
		"reserved bit":        {reserved, errFrame},
		"unknown opcode":      {clientFrame(true, 3, nil), errFrame},
		"long control":        {clientFrame(true, opPing, make([]byte, 126)), errFrame},
		"fragmented control":  {clientFrame(false, opPing, nil), errFrame},
		"lone continuation":   {clientFrame(true, opContinuation, nil), errFrame},
		"message in message":  {append(clientFrame(false, opText, []byte("4")), clientFrame(true, opText, []byte("4"))...), errFrame},
		"announced too large": {huge, errTooBig},
		"too large":           {clientFrame(true, opText, make([]byte, 1001)), errTooBig},
		"too large in parts":  {append(clientFrame(false, opText, make([]byte, 600)), clientFrame(true, opContinuation, make([]byte, 600))...), errTooBig},
		"no UTF-8":            {clientFrame(true, opText, []byte("4\xff")), errUTF8},
	} {
		if _, err := feedAll(tc.in, 1000, func(left int) int { return left }); !errors.Is(err, tc.err) {
			t.Errorf("%s: got %v, want %v", name, err, tc.err)
		}
	}
}

func FuzzAssembler(f *testing.F) {
	f.Add(clientFrame(true, opText, []byte("4hello")), uint8(3))
	f.Add(append(clientFrame(false, opText, []byte("4a")), clientFrame(true, opContinuation, []byte("b"))...), uint8(1))
	f.Add(binary.BigEndian.AppendUint64([]byte{0x81, 0xff}, 1<<63), uint8(200))
	f.Add(binary.BigEndian.AppendUint64([]byte{0x82, 0xff}, 500), uint8(7)) // the longest that is taken
	// a long form for a short length
	f.Add([]byte{0x81, 0xfe, 0, 1, 0, 0, 0, 0, '4'}, uint8(0))
	f.Add([]byte{0x81, 1, '4'}, uint8(0)) // no mask
	// extensions that nobody knows
	f.Add([]byte{0xb1, 0x80, 0, 0, 0, 0}, uint8(0))
	f.Add(clientFrame(false, opPing, nil), uint8(0))                                            // a control frame in pieces
	f.Add(clientFrame(true, opClose, []byte{3}), uint8(0))                                      // half a status
	f.Add(clientFrame(true, opContinuation, []byte("x")), uint8(0))                             // of nothing
	f.Add(append(clientFrame(false, opText, nil), clientFrame(true, opText, nil)...), uint8(0)) // a message in another
	f.Add(append(clientFrame(false, opText, []byte("\xe2")), clientFrame(true, opContinuation, []byte("\x82\xac"))...), uint8(0))
	short := clientFrame(true, opText, new(deflaters).appendDeflated(nil, make([]byte, 499)))
	short[0] |= rsv1
	f.Add(short, uint8(2))
	long := clientFrame(true, opBinary, new(deflaters).appendDeflated(nil, make([]byte, 501)))
	long[0] |= rsv1
	f.Add(long, uint8(2))
	f.Fuzz(func(t *testing.T, in []byte, most uint8) {
		whole, err1 := feedAll(in, 500, func(left int) int { return left })
		parts, err2 := feedAll(in, 500, func(left int) int { return min(left, int(most)+1) })
		if fmt.Sprint(whole, err1) != fmt.Sprint(parts, err2) {
			t.Errorf("got %v, %v in parts, want %v, %v", parts, err2, whole, err1)
		}
	})
}

func TestMessageForms(t *testing.T) {
	t.Parallel()
	m := NewMessage([]byte("51-x"), []byte{1, 2}, make([]byte, 70000))
	if got := string(m.appendPayload(nil)[:12]); got != "451-x\x1ebAQI=\x1e" {
		t.Errorf("got %q", got)
	}
	a, _, err := parseServerFrames(m.wire)
	if err != nil || len(a) != 3 || a[0].data != "451-x" || len(a[2].data) != 70000 {
		t.Errorf("got %d frames, %v", len(a), err)
	}
}

// parseServerFrames masks server frames so that the assembler accepts them.
func parseServerFrames(wire []byte) (got []received, rest []byte, err error) {
	for len(wire) > 0 {
		n, size := int(wire[1]), 2
		switch n {
		case 126:
			n, size = int(binary.BigEndian.Uint16(wire[2:])), 4
		case 127:
			n, size = int(binary.BigEndian.Uint64(wire[2:])), 10
		}
		got = append(got, received{opcode(wire[0] & 0xf), string(wire[size : size+n])})
		wire = wire[size+n:]
	}
	return got, wire, nil
}
