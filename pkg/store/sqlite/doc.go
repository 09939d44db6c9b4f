// Package sqlite implements the storage contract for one machine: one file, in WAL mode.
//
// Reading order: sqlite.go (opening and closing), migrations (the tables), conn.go (statements and columns), writer.go,
// pool.go; then a file per type; passage.go is the search. schema.go migrates a file to the newest version, sweep.go
// removes expired rows, backup.go checks and copies a file, portable.go moves a deployment.
//
// Invariants:
//
//   - One goroutine of a process writes. All waiting writes go into one transaction, so that one fsync serves
//     all of them. A write returns after its transaction's commit.
//   - synchronous=FULL: a commit returns after the fsync of the WAL. Acknowledged writes survive a kill -9
//     and, as far as the disk honours fsync, a power failure.
//   - Readers have their own connections. They never wait for the writer, nor the writer for them.
//   - Several processes may open one file. Each write transaction begins with BEGIN IMMEDIATE, so that
//     decisions are based on current data, not on a snapshot.
package sqlite
