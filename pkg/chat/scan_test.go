package chat

import (
	"bytes"
	"encoding/json"
	"testing"
)

// The scanner must find the same members as encoding/json.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":1}`, ` { "a" : [ 1 , {"b":"]"} ] , "c\u0064" : "\\\"" } `, `{"a":1,"a":2}`, `{"":"","x":true,"y":null,"z":-1e9}`, `[]`, `[1,[2],"3",{"4":5}]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		data = skipSpace(data)
		if !json.Valid(data) {
			return
		}
		switch data[0] {
		case '{':
			compareMembers(t, data)
		case '[':
			compareElements(t, data)
		}
	})
}

func compareMembers(t *testing.T, data []byte) {
	var want map[string]json.RawMessage
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatalf("reading %s: %v", data, err)
	}
	for name, value := range want {
		if bytes.ContainsRune([]byte(name), '\ufffd') {
			continue // encoding/json has replaced invalid UTF-8; our names never contain any
		}
		if got := memberOf(data, name); !bytes.Equal(got, value) {
			t.Errorf("member %q of %s: got %s, want %s", name, data, got, value)
		}
	}
	if _, there := want["absent"]; !there && memberOf(data, "absent") != nil {
		t.Errorf("got a member that %s does not have", data)
	}
}

func compareElements(t *testing.T, data []byte) {
	var want []json.RawMessage
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatalf("reading %s: %v", data, err)
	}
	var got [][]byte
	for e := range elements(data) {
		got = append(got, e)
	}
	if len(got) != len(want) {
		t.Fatalf("elements of %s: got %q, want %q", data, got, want)
	}
	for i := range got {
		if !bytes.Equal(got[i], want[i]) {
			t.Errorf("element %d of %s: got %s, want %s", i, data, got[i], want[i])
		}
	}
}
