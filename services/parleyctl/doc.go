// Package parleyctl is the operator's command line: it looks at a running Parley and changes what no API changes.
//
// It talks to MongoDB and NATS with the same settings as the services. Reading order: command.go (the tree of commands and the
// way in and out), settings.go and connect.go (where Parley is), output.go (tables and JSON), exit.go (the one table of exit
// codes), confirm.go; then a file per noun, each with its commands and with what they show.
//
// Invariants:
//
//   - What changes something that services cache tells them so; it holds within a second.
//   - Nothing is taken from a stream: readers are ephemeral. Only `streams apply` touches the streams' settings.
//   - A secret is written to standard output when it is made, and never again. Keys do not leave their file.
//   - What destroys asks, or wants --yes where nobody can be asked.
//   - Text of others is shown without its control characters.
package parleyctl
