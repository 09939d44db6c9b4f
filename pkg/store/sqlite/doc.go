// Package sqlite is the store of one machine: one file, in WAL mode.
//
// Reading order: sqlite.go (opening and closing), migrations (the tables), conn.go (statements and columns), writer.go, pool.go;
// then a file per noun. schema.go brings a file to the newest version, sweep.go removes what expires, backup.go checks and
// copies a file, portable.go moves a deployment.
//
// Invariants:
//
//   - One goroutine of a process writes. All writes that wait go into one transaction, so that one fsync serves all of them. A
//     write is answered after its transaction's commit.
//   - synchronous=FULL: a commit returns after the fsync of the log. What was acknowledged survives a kill -9 and, as far as the disk
//     obeys fsync, a power failure.
//   - Readers have connections of their own. They never wait for the writer, and it does not wait for them.
//   - Several processes may open one file. Each write transaction begins with BEGIN IMMEDIATE, so that decisions are made on
//     what is stored, not on a snapshot.
package sqlite
