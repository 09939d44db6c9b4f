package idempotency_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/idempotency"
)

func TestKeyOf(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		`"8e03978e-40d5-43dd-bc93-6894a57f9324"`:   "8e03978e-40d5-43dd-bc93-6894a57f9324",
		`8e03978e-40d5-43dd-bc93-6894a57f9324`:     "8e03978e-40d5-43dd-bc93-6894a57f9324",
		`order:1042/shipped`:                       "order:1042/shipped",
		`c29tZSBrZXk=`:                             "c29tZSBrZXk=",
		`"with a space, a comma; and a semicolon"`: "with a space, a comma; and a semicolon",
		`"a \"quoted\" word and a \\"`:             `a "quoted" word and a \`,
		strings.Repeat("k", 255):                   strings.Repeat("k", 255),
	} {
		got, err := idempotency.KeyOf(http.Header{"Idempotency-Key": {value}})
		if err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", value, got, err, want)
		}
	}
}

func TestMalformedKeys(t *testing.T) {
	t.Parallel()
	for _, values := range [][]string{
		{""}, {`""`}, {`"`}, {`"open`}, {`"two" "keys"`}, {`"two","keys"`}, {"two,keys"}, {"two keys"}, {`"key";parameter`}, {"key;parameter"},
		{`"bad \n escape"`}, {`"ends in \`}, {`a"b`}, {`a\b`}, {"caf\u00e9"}, {"\"caf\u00e9\""}, {"tab\t"}, {"\"tab\t\""}, {"\"delete\x7f\""},
		{strings.Repeat("k", 256)}, {`"` + strings.Repeat("k", 256) + `"`}, {"one", "two"}, {"same", "same"}, {},
	} {
		key, err := idempotency.KeyOf(http.Header{"Idempotency-Key": values})
		if e, ok := errors.AsType[*apperr.Error](err); !ok || e.Code != apperr.Invalid || e.Reason != "IDEMPOTENCY_KEY_INVALID" {
			t.Errorf("%q: got %q, %v, want IDEMPOTENCY_KEY_INVALID", values, key, err)
		}
	}
}

// Every accepted key can be encoded as an RFC 8941 string that parses to the same key.
func FuzzKeyOf(f *testing.F) {
	for _, seed := range []string{"", `"k"`, "k", `"a \"b\" \\"`, `"a`, "a,b", `"a";b`, "\x00", "\u00e9"} {
		f.Add(seed)
	}
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	f.Fuzz(func(t *testing.T, value string) {
		key, err := idempotency.KeyOf(http.Header{"Idempotency-Key": {value}})
		if err != nil {
			return
		}
		if key == "" || len(key) > 255 || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r >= 0x7f }) {
			t.Fatalf("accepted the invalid key %q", key)
		}
		again, err := idempotency.KeyOf(http.Header{"Idempotency-Key": {`"` + quoted.Replace(key) + `"`}})
		if err != nil || again != key {
			t.Fatalf("got %q, %v for the quoted %q", again, err, key)
		}
	})
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	same := [][2]string{
		{`{"a":1,"b":[1,{"c":"A"}]}`, `{ "b" : [1, {"c":"\u0041"}], "a":1 }`},
		{`{"n":12345678901234567890}`, `{"n":12345678901234567890}`},
	}
	for _, pair := range same {
		if idempotency.Canonical([]byte(pair[0])) != idempotency.Canonical([]byte(pair[1])) {
			t.Errorf("fingerprints of %s and %s differ, want them equal", pair[0], pair[1])
		}
	}
	other := [][2]string{
		{`{"a":1}`, `{"a":2}`}, {`{"a":1}`, `{"a":"1"}`}, {`[1,2]`, `[2,1]`}, {`{"a":"x y"}`, `{"a":"xy"}`},
		{`{"n":12345678901234567890}`, `{"n":12345678901234567891}`}, // equal as float64
	}
	for _, pair := range other {
		if idempotency.Canonical([]byte(pair[0])) == idempotency.Canonical([]byte(pair[1])) {
			t.Errorf("fingerprints of %s and %s are equal, want them different", pair[0], pair[1])
		}
	}
	lists := [][]string{{}, {""}, {"", ""}, {"ab"}, {"a", "b"}, {"b", "a"}, {"a", "", "b"}}
	seen := map[string]bool{}
	for _, parts := range lists {
		seen[idempotency.Fingerprint(parts...)] = true
	}
	if len(seen) != len(lists) {
		t.Errorf("got %d fingerprints of %d lists", len(seen), len(lists))
	}
	raw := []byte(`{"b":1,"a":2}`)
	if idempotency.Canonical(raw); string(raw) != `{"b":1,"a":2}` {
		t.Errorf("Canonical changed its argument to %s", raw)
	}
}
