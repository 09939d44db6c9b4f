// Package credential makes and checks Parley's two credentials.
//
// A company's access token (accesstoken.go) is a random secret that is stored as a hash. A visitor's token is a JWT that is
// signed with Ed25519 (RFC 8037): keyset.go holds the keys of the service that signs, remote.go those of a service that only
// verifies, visitor.go reads and writes the claims, verifier.go decides. Invariants:
//
//   - The algorithm is fixed; what a token's header says about it can only make the token fail.
//   - A fault of a token is one error with one message, whatever the fault: a caller learns nothing from it.
//   - A verified token is believed no longer than until its exp, and no longer than its key is in the set.
package credential
