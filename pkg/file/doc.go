// Package file has the rules of uploaded files: the type by content (kind.go), the name (name.go), the unguessable id with the
// expiry (id.go), and the storage interface (file.go).
//
// natsfile keeps files in the JetStream object store, s3file in S3; filetest is the contract that both fulfil. Invariants:
//
//   - No file is ever whole in memory: a store reads what it is given piece by piece, and serves from any offset.
//   - A file is there once Put has returned nil, and then never changes. A Put that fails leaves nothing behind; where even the
//     cleaning up fails, or the process is killed in the middle, Sweep finds what is left.
//   - The id contains the expiry. After that the file is not served, and the next Sweep removes its bytes.
//   - What a sender says about a file (its name, its type) is never believed: the content decides.
package file
