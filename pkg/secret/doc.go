// Package secret encrypts secrets at rest with keys from a file (SECRETS_KEY_FILE) that only the services
// hold that need them.
//
// Reading order: keyset.go (encrypt, decrypt, reload), keyfile.go (the file and the steps of a rotation). The
// encryption is the AEAD of Tink (AES-256-GCM); this package adds no cryptography. Which fields of which
// records are encrypted: package [github.com/parley-chat/parley/pkg/store/encrypted].
package secret
