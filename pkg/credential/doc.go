// Package credential creates and verifies Parley's three credentials.
//
//   - A company's access token (accesstoken.go) is a random secret that is stored as a hash.
//   - A visitor's token is a JWT that Parley signs with Ed25519 (RFC 8037): keyset.go holds the keys of the signing
//     service, remote.go those of a service that only verifies, rotate.go changes the file of the keys, visitor.go
//     encodes and decodes the claims, verifier.go verifies tokens.
//   - A proof of identity (identity.go) says who a visitor is in the company's own system. The company's server
//     creates it with a secret of the application: an identityToken, a JWT signed with HS256, or a userHash.
//
// Invariants:
//
//   - The algorithm is fixed; a token's header cannot select another.
//   - Every invalid access token or visitor token yields the same error and message: a caller learns nothing about the
//     cause. Only the holder of an authentic one learns that it has expired or was revoked. An invalid proof of
//     identity yields a message for the company's developers, which reveals no secret.
//   - A verified visitor token is accepted until its exp at most, and only while its key is in the set.
package credential
