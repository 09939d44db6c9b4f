// Package embedded runs NATS with JetStream inside this process. The real clients talk to it over real sockets; nothing
// is mocked.
//
// Only standalone and tests link it: the engine is heavy, and a service that runs on an external one must not carry it. Its
// Start returns when the engine answers, and its Stop returns when it has stopped, so that a test can
// stop an engine in the middle of its traffic and start it again on the same address and folder.
package embedded
