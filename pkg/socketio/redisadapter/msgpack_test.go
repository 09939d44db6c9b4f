package redisadapter

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/parley-chat/parley/pkg/socketio"
)

var jsonTexts = []string{
	`[]`, `{}`, `null`, `["a",1]`, `[0,-1,127,128,255,256,65535,65536,4294967295,4294967296,18446744073709551615]`,
	`[-32,-33,-128,-129,-32768,-32769,-2147483648,-2147483649,-9223372036854775808]`,
	`[1.5,1e+21,5e-324,0.1,-0]`, `["é\u2028\n\"\\/😀"]`, `{"b":1,"a":{"c":[true,false,null]}}`,
	`[` + strings.Repeat("1,", 15) + `1]`, `[` + strings.Repeat("[],", 70000) + `1]`,
	`{"` + strings.Repeat("k", 300) + `":"` + strings.Repeat("v", 70000) + `"}`,
}

func TestJSONRoundTrip(t *testing.T) {
	t.Parallel()
	for _, text := range jsonTexts {
		packed, _, err := appendJSON(nil, []byte(text), nil)
		if err != nil {
			t.Fatalf("%.60s: %v", text, err)
		}
		var want, got, other any
		if err := msgpack.Unmarshal(packed, &other); err != nil {
			t.Errorf("%.60s: another decoder returns %v", text, err)
		}
		w := &jsonWriter{}
		if _, err := w.value(packed, 0); err != nil {
			t.Fatalf("%.60s: %v", text, err)
		}
		if err := json.Unmarshal(w.dst, &got); err != nil {
			t.Fatal(err)
		}
		_ = json.Unmarshal([]byte(text), &want)
		a, _ := json.Marshal(want)
		b, _ := json.Marshal(got)
		if !bytes.Equal(a, b) {
			t.Errorf("got %.80s, want %.80s", b, a)
		}
	}
}

// fakeLocal is a minimal namespace for encoding.
type fakeLocal struct{ socketio.Local }

func (fakeLocal) Name() string { return "/n" }

func (fakeLocal) HandleBroadcast(*socketio.Broadcast) int { return 1 }

func newTestClassic() *classic {
	return newClassic(&adapter{local: fakeLocal{}, opts: Options{}.withDefaults(), uid: "uid"})
}

func TestClassicIsByteExact(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`["e",{"a":1}]`, `["e", 1.0]`, `["e",1E2,-0]`, `["e","\u0041"]`, `["e",123456789012345678901234567890]`} {
		checkClassic(t, []byte(text))
	}
}

func checkClassic(t *testing.T, text []byte) {
	_, payload, err := newTestClassic().appendBroadcast(nil, "uid", &socketio.Broadcast{Data: text})
	if err != nil {
		return // too deep
	}
	m, err := decodeClassicBroadcast(payload)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if !bytes.Equal(m.Data, text) {
		t.Errorf("got %q, want %q", m.Data, text)
	}
}

func TestClassicPlainMessageIsNotDoubled(t *testing.T) {
	t.Parallel()
	text := []byte(`["message",{"id":"0194","text":"hello","n":[1,2.5]},"12"]`)
	_, payload, err := newTestClassic().appendBroadcast(nil, "uid", &socketio.Broadcast{Data: text})
	if err != nil || payload[0] != 0x93 {
		t.Errorf("got head %x, %v, want three elements", payload[0], err)
	}
}

// TestRoomNames decodes room names as JavaScript may send them.
func TestRoomNames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{`["a",1,-2,1.5]`: {"a", "1", "-2", "1.5"}, `[]`: nil, `null`: nil} {
		packed, _, err := appendJSON(nil, []byte(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, _, err := readStrings(packed, nil); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, %v, want %q", text, got, err, want)
		}
	}
	if got, _, err := readStrings([]byte("\x91\x90"), nil); err == nil {
		t.Errorf("got %q for a list of lists, want an error", got)
	}
}

func FuzzClassicExact(f *testing.F) {
	for _, text := range jsonTexts {
		if len(text) < 1000 {
			f.Add([]byte(text))
		}
	}
	f.Add([]byte("[\"\xff\", 1.50e0, \"\\ud800\"]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if utf8.Valid(text) && json.Valid(text) && len(text) > 2 && text[0] == '[' { // as the namespace ensures
			checkClassic(t, text)
		}
	})
}

func FuzzDecodeClassic(f *testing.F) {
	_, payload, _ := newTestClassic().appendBroadcast(nil, "uid", &socketio.Broadcast{
		Selection: socketio.Selection{Rooms: []string{"a"}, Except: []string{"b"}},
		Data:      []byte(`["e",{"_placeholder":true,"num":0}]`), Attachments: [][]byte{{1}}, Volatile: true,
	})
	f.Add(payload)
	f.Add([]byte{0x93, 0xa1, 'x', 0xdf, 0xff, 0xff, 0xff, 0xff})
	f.Add(bytes.Repeat([]byte{0x91}, 100000))
	f.Add([]byte{0x93, 0xa1, 'x', 0x81, 0xa4, 'd', 'a', 't', 'a', 0x92, 0xa1, 'e', 0xc1, 0x80})        // a head that is none
	f.Add([]byte{0x93, 0xa1, 'x', 0x81, 0xa4, 'd', 'a', 't', 'a', 0x92, 0xa1, 0xff, 0xd4, 0, 0, 0x80}) // no UTF-8, undefined
	f.Add([]byte{0x93, 0xa1, 'x', 0x80, 0x82, 0xa5, 'r', 'o', 'o', 'm', 's', 0xc0, 0xa5, 'f', 'l', 'a', 'g', 's', 0xc0})
	f.Add([]byte{0x94, 0xa1, 'x', 0x80, 0x80, 0xc4, 1, '['}) // exact, and no JSON
	f.Add([]byte{0x91, 0x81, 0x92, 1, 2, 3})                 // a list as a key
	f.Add([]byte{0xcb, 0x7f, 0xf0, 0, 0, 0, 0, 0, 0})        // infinite
	f.Add([]byte{0xdd, 0, 0, 0, 1, 0xc7, 0x0c, 0xff, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, payload []byte) {
		m, err := decodeClassicBroadcast(payload)
		if err == nil && len(m.Data) > 0 && !json.Valid(m.Data) {
			t.Errorf("got %q, which is not JSON", m.Data)
		}
		var q classicRequest
		_, _ = decodeMixed(string(payload), &q)
		var s shardedMessage
		_, _ = decodeMixed(string(payload), &s)
	})
}

// validLocal validates the broadcasts delivered to the namespace.
type validLocal struct {
	fakeLocal
	t *testing.T
}

func (l validLocal) HandleBroadcast(b *socketio.Broadcast) int {
	if !json.Valid(b.Data) || !eventData(b.Data) {
		l.t.Errorf("got %q, which is no event", b.Data)
	}
	return 1
}

// FuzzHandle passes arbitrary payloads to both formats.
func FuzzHandle(f *testing.F) {
	b := &socketio.Broadcast{Selection: socketio.Selection{Rooms: []string{"a"}}, Data: []byte(`["e",1.50,{"_placeholder":true,"num":0}]`)}
	_, inJSON, _ := newSharded(&adapter{local: fakeLocal{}, uid: "other"}).appendBroadcast(nil, "other", b)
	b.Attachments = [][]byte{{1}}
	_, inMsgpack, _ := newSharded(&adapter{local: fakeLocal{}, uid: "other"}).appendBroadcast(nil, "other", b)
	_, classicPayload, _ := newClassic(&adapter{local: fakeLocal{}, uid: "other"}).appendBroadcast(nil, "other", b)
	for _, seed := range []string{
		string(inJSON), string(inMsgpack), string(classicPayload), "", "{", `{"uid":"uid"`, `{"uid":"x","nsp":"/n","type":3}`,
		`{"uid":"x","nsp":"/n","type":3,"data":{"packet":{"data":["e",1,]},"opts":{}}}`,
		`{"uid":"x","nsp":"/n","type":3,"data":{"packet":{"data":["e"]},"opts":{"rooms":[1,null,{"a":2},"\ud800"],"except":null}}}`,
		`{"uid":"x","uid":"y","nsp":"/n","type":8,"data":{"requestId":"1","sockets":[{}]}}`,
		`{"uid":"x","type":5,"opts":{"rooms":"r"}}`, `{"requestId":"1","sockets":null}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, payload string) {
		a := &adapter{local: validLocal{t: t}, opts: Options{}.withDefaults(), uid: "uid"}
		newSharded(a).handle("", payload)
		c := newClassic(a)
		for _, channel := range []string{c.channel, c.channel + "room#", c.request, c.response, c.specific} {
			c.handle(channel, payload)
		}
	})
}

func BenchmarkEncodeBroadcast(b *testing.B) {
	c := newTestClassic()
	msg := &socketio.Broadcast{
		Selection: socketio.Selection{Rooms: []string{"app-user"}},
		Data:      []byte(`["message",{"id":"0194f0b5","type":"TEXT","data":{"text":"hello there, how are you?"},"isFromSupport":true},"12345"]`),
	}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		_, buf, _ = c.appendBroadcast(buf[:0], "other", msg)
	}
}

func BenchmarkDecodeBroadcast(b *testing.B) {
	c := newTestClassic()
	_, payload, _ := c.appendBroadcast(nil, "uid", &socketio.Broadcast{
		Selection: socketio.Selection{Rooms: []string{"app-user"}},
		Data:      []byte(`["message",{"id":"0194f0b5","type":"TEXT","data":{"text":"hello there, how are you?"},"isFromSupport":true},"12345"]`),
	})
	text := string(payload)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = decodeClassicBroadcast([]byte(text))
	}
}

func BenchmarkHandleSharded(b *testing.B) {
	s := newSharded(&adapter{local: fakeLocal{}, opts: Options{}.withDefaults(), uid: "other"})
	_, payload, _ := s.appendBroadcast(nil, "uid", &socketio.Broadcast{
		Selection: socketio.Selection{Rooms: []string{"app-user"}},
		Data:      []byte(`["message",{"id":"0194f0b5","type":"TEXT","data":{"text":"hello there, how are you?"},"isFromSupport":true},"12345"]`),
	})
	text := string(payload)
	s.ownPrefix, s.ownPrefixBinary = "none", "none"
	s.uid = "uid"
	b.ReportAllocs()
	for b.Loop() {
		s.handle("", text)
	}
}
