package realtime

import (
	"encoding/json"
	"testing"
)

// What is recognised without a JSON decoder is what the decoder would have read.
func FuzzReadHandshake(f *testing.F) {
	for _, seed := range []string{
		`{"token":"a.b-c_d"}`, `{"token":""}`, `{"token":"a","pid":"p","offset":"7"}`, `{"token":"a\u0062"}`, `{"token":"\"}`, `{"token":"a"}"}`,
		`{"token":"\xc3\xb3"}`, `{"token":"\xff"}`, `{"token":7}`, `{"token":"a"} `, `{}`, `[]`, `{"token":"a","token":"b"}`, "{\"token\":\"\x00\"}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, auth []byte) {
		var want handshake
		if json.Unmarshal(auth, &want) != nil {
			want = handshake{Token: want.Token, PID: "malformed"}
		}
		if got := readHandshake(auth); got != want {
			t.Errorf("%q: got %+v, want %+v", auth, got, want)
		}
	})
}
