// Package parleyctl is the operator's command line: it looks at a running Parley and changes what no API changes.
//
// It talks to MongoDB and NATS with the same settings as the services. Reading order: command.go (the tree of commands and the
// way in and out), settings.go and connect.go (where Parley is), output.go (tables and JSON), exit.go (the one table of exit
// codes), confirm.go; then a file per noun, each with its commands and with what they show.
//
// Invariants:
//
//   - Changes of cached records invalidate the caches; they take effect within a second.
//   - Nothing is taken from a stream: readers are ephemeral. Only `streams apply` touches the streams' settings.
//   - A secret is written to standard output when it is made, and never again. Keys do not leave their file.
//   - Destructive commands ask for confirmation, or need --yes without a terminal.
//   - Text from users is printed without control characters.
package parleyctl
