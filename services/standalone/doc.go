// Standalone runs all of Parley in one process: an embedded NATS with JetStream, a SQLite store, the five
// services with the same code as in their own binaries, and a demo page.
//
// standalone            everything; prints how to use it
// standalone engines    only the engines; prints the settings of the services for them
//
// Reading order: config.go, app.go (the wiring, top to bottom), engines.go, services.go, then internal/:
// datadir (the folder .parley and its lock), supervisor, seed (the demo company and demo.json), router (one
// address for Widget API, sockets and demo page), demo (the page), guide (the printed instructions). The
// end-to-end tests of the whole project are in e2e.
//
// Invariants: every port is bound before anything starts, so that a busy one changes nothing; an event that
// is answered with a 2xx is on disk; components stop in the opposite order of their dependencies, so that the
// engines stop last.
package main
