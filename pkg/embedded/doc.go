// Package embedded runs NATS with JetStream in this process. Clients connect to it over real sockets.
//
// Only standalone and tests link it: the server is large, and a service that uses an external one must not include it.
// Start returns when the server is ready, and Stop returns when it has stopped, so that a test can stop the server
// under load and restart it with the same address and directory.
package embedded
