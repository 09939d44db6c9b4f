package socketio

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
)

func TestParsePacket(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		in   string
		want packet
	}{
		{"0", packet{typ: typeConnect, nsp: []byte("/")}},
		{`0/admin,{"sid":"x"}`, packet{typ: typeConnect, nsp: []byte("/admin"), data: []byte(`{"sid":"x"}`)}},
		{`2["foo"]`, packet{typ: typeEvent, nsp: []byte("/"), data: []byte(`["foo"]`)}},
		{`212["foo"]`, packet{typ: typeEvent, nsp: []byte("/"), id: 12, hasID: true, data: []byte(`["foo"]`)}},
		{`3/admin,13["bar"]`, packet{typ: typeAck, nsp: []byte("/admin"), id: 13, hasID: true, data: []byte(`["bar"]`)}},
		{`51-["baz",{"_placeholder":true,"num":0}]`, packet{typ: typeBinaryEvent, attachments: 1, nsp: []byte("/"), data: []byte(`["baz",{"_placeholder":true,"num":0}]`)}},
		{`61-15["bar",{"_placeholder":true,"num":0}]`, packet{typ: typeBinaryAck, attachments: 1, nsp: []byte("/"), id: 15, hasID: true, data: []byte(`["bar",{"_placeholder":true,"num":0}]`)}},
		{"1/admin,", packet{typ: typeDisconnect, nsp: []byte("/admin")}},
	} {
		got, err := parsePacket([]byte(tc.in), 10)
		if err != nil || !samePacket(got, tc.want) {
			t.Errorf("%s: got %+v, %v, want %+v", tc.in, got, err, tc.want)
		}
		if again := appendPacket(nil, got); string(again) != tc.in {
			t.Errorf("got %s, want %s", again, tc.in)
		}
	}
	for _, bad := range []string{"", "7", "abc", "5[]", "50-[]", "511-[]", "5-[]", "5x-[]", "299999999999999999999[]"} {
		if p, err := parsePacket([]byte(bad), 10); !errors.Is(err, errPacket) {
			t.Errorf("%s: got %+v, %v, want an error", bad, p, err)
		}
	}
	if p, err := parsePacket([]byte("0/random"), 10); err != nil || string(p.nsp) != "/random" {
		t.Errorf("namespace without a comma: got %+v, %v", p, err)
	}
}

func samePacket(a, b packet) bool {
	return a.typ == b.typ && a.attachments == b.attachments && bytes.Equal(a.nsp, b.nsp) && a.id == b.id && a.hasID == b.hasID && bytes.Equal(a.data, b.data)
}

func FuzzPacket(f *testing.F) {
	for _, s := range []string{"0", `0/admin,{"a":1}`, `52-/n,1["e",{"_placeholder":true,"num":1}]`, "3/x,", "2/a,9999999999999999999", "0/,/",
		"", "5", "5-", "511-[]", "51", "6-1[]", "2", "2/", "2/,", "20[]", "2-1[]", "0{", "1/a?b=c,", "47", "\xff", `4{"message":"x"}`, "3/n,0[]"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := parsePacket(text, 10)
		if err != nil || len(p.data) > 0 && p.data[0] != '[' && p.data[0] != '{' {
			return // no packet of ours has other data; it could be taken for a namespace or an id
		}
		again, err := parsePacket(appendPacket(nil, p), 10)
		if err != nil || !samePacket(p, again) {
			t.Errorf("%q: got %+v, %v, want %+v", text, again, err, p)
		}
	})
}

// FuzzDecoder decodes texts and attachments; accepted packets must be usable and encodable.
func FuzzDecoder(f *testing.F) {
	f.Add(`51-["e",{"_placeholder":true,"num":0}]`, []byte{1}, []byte{2})
	f.Add(`52-3["e",{"a":[{"_placeholder":true,"num":1}]},{"_placeholder":true,"num":0}]`, []byte{1}, []byte{2})
	f.Add(`51-["e",{"_placeholder":true,"num":-1}]`, []byte{1}, []byte{2})
	f.Add(`61-1[{"_placeholder":true,"num":1e99}]`, []byte{1}, []byte{2})
	f.Add(`2["e",{"_placeholder":true,"num":0}]`, []byte{}, []byte{})
	f.Add(`52-["e",{"_placeholder":true,"num":0},{"_placeholder":true,"num":0}]`, []byte{1}, []byte{2}) // one twice
	f.Add(`51-["e",{"num":0,"_placeholder":true}]`, []byte{1}, []byte{2})                               // another order
	f.Add(`51-["e",{"_placeholder":false,"num":0},"_placeholder"]`, []byte{1}, []byte{2})
	f.Add(`51-["e",{"_placeholder":true,"num":"0"}]`, []byte{1}, []byte{2})
	f.Add(`50-["e"]`, []byte{1}, []byte{2})
	f.Add(`599-["e"]`, []byte{1}, []byte{2})
	f.Add(`51-{"_placeholder":true,"num":0}`, []byte{1}, []byte{2})
	f.Add(`2["connect"]`, []byte{}, []byte{})
	f.Add(`2[{}]`, []byte{}, []byte{})
	f.Fuzz(func(t *testing.T, text string, a, b []byte) {
		d := decoder{maxAttachments: 10}
		p, complete, err := d.addText([]byte(text))
		var attachments [][]byte
		for _, data := range [][]byte{a, b} {
			if err == nil && !complete {
				p, attachments, complete, err = d.addBinary(data)
			}
		}
		if err != nil || !complete {
			return
		}
		_, args, err := decodeEvent(p.data, attachments)
		if err != nil {
			return
		}
		for i := range args.Len() {
			var v any
			_ = args.Decode(i, &v)
			args.Bytes(i)
		}
		if _, _, err := encodeEvent("again", args.Values()); err != nil && json.Valid(p.data) && bytes.Equal(bytes.ToValidUTF8(p.data, nil), p.data) {
			t.Errorf("%q: %v", text, err)
		}
	})
}

func TestDecoderRefuses(t *testing.T) {
	t.Parallel()
	d := decoder{maxAttachments: 1}
	if _, _, _, err := d.addBinary([]byte{1}); err == nil {
		t.Error("attachment without a packet: got no error, want one")
	}
	if _, complete, err := d.addText([]byte(`51-["e"]`)); err != nil || complete {
		t.Fatal(complete, err)
	}
	if _, _, err := d.addText([]byte("2[]")); err == nil {
		t.Error("text instead of an attachment: got no error, want one")
	}
	for _, bad := range []string{`[]`, `{}`, `[1`, `["connect"]`, `[null]`, `[{}]`, ``, `null`} {
		if _, _, err := decodeEvent([]byte(bad), nil); err == nil {
			t.Errorf("%s: got no error", bad)
		}
	}
}

func TestEncodeEvent(t *testing.T) {
	t.Parallel()
	data, attachments, err := encodeEvent("e", []any{json.RawMessage(`{ "a" : 1.0 }`), "<é>", []byte{1}, map[string]any{"x": []any{[]byte{2}}}, struct{ A int }{1}, nil})
	want := `["e",{ "a" : 1.0 },"<é>",{"_placeholder":true,"num":0},{"x":[{"_placeholder":true,"num":1}]},{"A":1},null]`
	if err != nil || string(data) != want || len(attachments) != 2 {
		t.Errorf("got %s, %v, %v, want %s", data, attachments, err, want)
	}
	for _, bad := range []any{json.RawMessage("{"), json.RawMessage("\"\xff\""), json.RawMessage(""), make(chan int)} {
		if _, _, err := encodeEvent("e", []any{bad}); !errors.Is(err, ErrEncode) {
			t.Errorf("%v: got %v, want ErrEncode", bad, err)
		}
	}
}

func BenchmarkEncodeMessage(b *testing.B) {
	record := json.RawMessage(`{"id":"0194f0b5","type":"TEXT","data":{"text":"hello there, how are you?"},"isFromSupport":true}`)
	b.ReportAllocs()
	for b.Loop() {
		data, attachments, _ := encodeEvent("message", []any{record, "12345"})
		encodeMessage(packet{typ: typeEvent, nsp: []byte("/message"), data: data}, attachments)
	}
}

func BenchmarkDecodeEvent(b *testing.B) {
	text := []byte(`2/message,["say",{"text":"hello there, how are you?"}]`)
	b.ReportAllocs()
	for b.Loop() {
		p, _ := parsePacket(text, 10)
		_, _, _ = decodeEvent(p.data, nil)
	}
}
