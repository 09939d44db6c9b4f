// Package file defines the rules of uploaded files: the type by content (kind.go), the name (name.go), the unguessable
// id with the expiry (id.go), the storage interface (file.go), and what every upload takes (keep.go).
//
// natsfile stores files in the JetStream object store, s3file in S3; filetest is the contract suite of both.
// Invariants:
//
//   - No file is ever entirely in memory: a store reads its input in chunks, and serves from any offset.
//   - A file exists once Put has returned nil, and then never changes. A failed Put leaves nothing; if the
//     cleanup fails, or the process is killed, Sweep removes the remains.
//   - The id contains the expiry. After it the file is not served, and the next Sweep removes its bytes.
//   - The name and type that a sender declares are not trusted: the content decides.
package file
