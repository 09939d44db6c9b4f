// Package embedded runs NATS with JetStream, and Redis, inside this process. The real clients talk to them over real sockets; nothing
// is mocked.
//
// Only standalone and tests link it: the engines are heavy, and a service that runs on external ones must not carry them. One file per
// engine: nats.go, redis.go. Each Start returns when the engine answers, and each Stop returns when it has stopped, so that a test can
// stop an engine in the middle of its traffic and start it again on the same address and folder.
package embedded
