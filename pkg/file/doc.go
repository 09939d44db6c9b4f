// Package file is what visitors upload: what it is by its content (kind.go), what it may be called (name.go), under which
// unguessable id it is kept and until when (id.go), and the port that keeps it (file.go).
//
// natsfile keeps files in the JetStream object store, s3file in S3; filetest is the contract that both fulfil. Invariants:
//
//   - No file is ever whole in memory: a store reads what it is given piece by piece, and serves from any offset.
//   - A file is there once Put has returned nil, and then never changes. A Put that fails leaves nothing behind; where even the
//     cleaning up fails, or the process is killed in the middle, Sweep finds what is left.
//   - The id says when the file expires. After that moment nobody serves it, and the next Sweep removes its bytes.
//   - What a sender says about a file (its name, its type) is never believed: the content decides.
package file
