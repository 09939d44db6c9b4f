// Package parleyctl is the operator's command line: it inspects a running Parley and makes changes that no API makes.
//
// It connects to MongoDB and NATS with the same settings as the services. Reading order: command.go (the
// command tree and its entry point), settings.go and connect.go (addresses and connections), resource.go
// (what commands on records have in common), output.go (tables and JSON), exit.go (the one table of exit
// codes), confirm.go; then a file per noun, with its commands and their tables. The JSON of records is that
// of the panel, package view.
//
// Invariants:
//
//   - Changes of cached records invalidate the caches; they take effect within a second.
//   - No command consumes events: readers are ephemeral. Only `streams apply` changes the streams' settings.
//   - A secret is written to standard output when it is created, and never again. Private keys do not leave their file.
//   - Destructive commands ask for confirmation, or need --yes without a terminal.
//   - Text from users is printed without control characters.
package parleyctl
