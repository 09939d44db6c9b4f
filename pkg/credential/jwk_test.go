package credential

import (
	"encoding/json"
	"strings"
	"testing"
)

// The key of RFC 8037, appendix A.
const (
	rfc8037X          = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
	rfc8037D          = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"
	rfc8037Thumbprint = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
)

// A kid is an argument of parleyctl, which would parse a leading dash as a flag. One thumbprint in 64 begins with one.
func TestGeneratedKeyIDsAreArguments(t *testing.T) {
	t.Parallel()
	for range 1000 {
		if j, err := generateJWK(); err != nil || strings.HasPrefix(j.KeyID, "-") {
			t.Fatalf("got %q, %v", j.KeyID, err)
		}
	}
}

func TestThumbprintOfTheKeyInRFC8037(t *testing.T) {
	t.Parallel()
	keys, err := parseJWKS([]byte(`{"keys":[{"kty":"OKP","crv":"Ed25519","d":"` + rfc8037D + `","x":"` + rfc8037X + `"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := thumbprint(keys[0].public); got != rfc8037Thumbprint {
		t.Errorf("thumbprint: got %s, want %s (appendix A.3)", got, rfc8037Thumbprint)
	}
	if keys[0].id != rfc8037Thumbprint {
		t.Errorf("id of a key without kid: got %s, want its thumbprint", keys[0].id)
	}
}

func TestGeneratedKeySetCanBeReadBack(t *testing.T) {
	t.Parallel()
	data, err := GenerateKeySet()
	if err != nil {
		t.Fatal(err)
	}
	keys, err := parseJWKS(data)
	if err != nil {
		t.Fatal(err)
	}
	if len(keys) != 1 || keys[0].private == nil || keys[0].id != thumbprint(keys[0].public) {
		t.Errorf("generated set: got %d keys with id %q, want one private key named by its thumbprint", len(keys), keys[0].id)
	}
}

func TestPublishedKeysHaveNoPrivatePart(t *testing.T) {
	t.Parallel()
	set := newKeySet(t, newKey(t), newKey(t))
	var published struct {
		Keys []map[string]any `json:"keys"`
	}
	if err := json.Unmarshal(set.JWKS(), &published); err != nil {
		t.Fatal(err)
	}
	if len(published.Keys) != 2 {
		t.Fatalf("published keys: got %d, want 2", len(published.Keys))
	}
	for _, k := range published.Keys {
		if _, ok := k["d"]; ok {
			t.Error("a published key: got a private part, want none")
		}
		if k["kty"] != "OKP" || k["crv"] != "Ed25519" || k["alg"] != "EdDSA" || k["use"] != "sig" || k["kid"] == "" {
			t.Errorf("a published key: got %v, want kty, crv, alg, use and kid", k)
		}
	}
}

func TestInvalidKeySetsAreRejectedWithAReason(t *testing.T) {
	t.Parallel()
	const private = `"kty":"OKP","crv":"Ed25519","d":"` + rfc8037D + `","x":"` + rfc8037X + `"`
	for name, test := range map[string]struct{ set, want string }{
		"empty file":     {``, "not a JWK Set"},
		"not JSON":       {`-----BEGIN PRIVATE KEY-----`, "not a JWK Set"},
		"no keys":        {`{"keys":[]}`, "no Ed25519 key"},
		"only RSA":       {`{"keys":[{"kty":"RSA","n":"AQ","e":"AQAB"}]}`, "no Ed25519 key"},
		"only X25519":    {`{"keys":[{"kty":"OKP","crv":"X25519","x":"` + rfc8037X + `"}]}`, "no Ed25519 key"},
		"for encryption": {`{"keys":[{` + private + `,"use":"enc"}]}`, "no Ed25519 key"},
		"short x":        {`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AQID"}]}`, "key 1: x is not"},
		"short d":        {`{"keys":[{"kty":"OKP","crv":"Ed25519","d":"AQID","x":"` + rfc8037X + `"}]}`, "key 1: d is not"},
		"d of another":   {`{"keys":[{"kty":"OKP","crv":"Ed25519","d":"` + rfc8037X + `","x":"` + rfc8037X + `"}]}`, "do not belong together"},
		"public first":   {`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"` + rfc8037X + `"}]}`, "cannot sign"},
		"same key twice": {`{"keys":[{` + private + `},{` + private + `}]}`, "key 2: duplicate kid"},
	} {
		_, err := ParseKeySet([]byte(test.set))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got error %v, want one with %q", name, err, test.want)
			continue
		}
		if strings.Contains(err.Error(), rfc8037D) {
			t.Errorf("%s: the error repeats the private key", name)
		}
	}
}

func TestKeysOfOtherTypesAreIgnored(t *testing.T) {
	t.Parallel()
	keys, err := parseJWKS([]byte(`{"keys":[{"kty":"RSA","n":"AQ","e":"AQAB"},{"kty":"OKP","crv":"Ed25519","x":"` + rfc8037X + `"}]}`))
	if err != nil || len(keys) != 1 {
		t.Errorf("a mixed set: got %d keys and error %v, want one key", len(keys), err)
	}
}
