package storetest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/secret"
)

// keyFile is the key file of every test's store: several processes of a test open the same one.
const keyFile = `{
  "keys": {
    "2412240527": {
      "createdAt": "2026-01-01T00:00:00Z"
    }
  },
  "keyset": {
    "primaryKeyId": 2412240527,
    "key": [
      {
        "keyData": {
          "typeUrl": "type.googleapis.com/google.crypto.tink.AesGcmKey",
          "value": "GiAVfoKvDxq+cXKoVaAVVZDTlwGU9EmzAm7JYSD0Q6EnEw==",
          "keyMaterialType": "SYMMETRIC"
        },
        "status": "ENABLED",
        "keyId": 2412240527,
        "outputPrefixType": "TINK"
      }
    ]
  }
}
`

// Keys returns the keys with which [Open] encrypts secrets.
func Keys() *secret.KeySet {
	keys, err := secret.Parse([]byte(keyFile))
	if err != nil {
		panic("storetest: " + err.Error()) // of a constant
	}
	return keys
}

// KeyFile returns the path of a copy of the key file, for services that open a store of the test themselves.
func KeyFile(t testing.TB) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "secrets-key.json")
	if err := os.WriteFile(path, []byte(keyFile), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// RotatedKeys returns the keys of [Keys] after a rotation: a new key encrypts, the old one decrypts.
func RotatedKeys(t testing.TB) *secret.KeySet {
	t.Helper()
	path := KeyFile(t)
	file := get[*secret.KeyFile](t)(secret.Open(path))
	get[secret.KeyInfo](t)(file.Add(noon))
	must(t, file.Promote(noon.Add(secret.Propagation+time.Second)))
	return get[*secret.KeySet](t)(secret.Load(path))
}
