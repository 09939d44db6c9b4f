// Package credential creates and verifies Parley's two credentials.
//
// A company's access token (accesstoken.go) is a random secret that is stored as a hash. A visitor's token is a JWT
// signed with Ed25519 (RFC 8037): keyset.go holds the keys of the signing service, remote.go those of a service that
// only verifies, visitor.go encodes and decodes the claims, verifier.go verifies tokens. Invariants:
//
//   - The algorithm is fixed; a token's header cannot select another.
//   - Every invalid token yields the same error and message: a caller learns nothing about the cause.
//   - A verified token is accepted until its exp at most, and only while its key is in the set.
package credential
