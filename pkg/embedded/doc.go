// Package embedded runs the engines that Parley stands on inside this process: NATS with JetStream, Redis, and a server that
// speaks MongoDB's wire protocol. The real drivers talk to them over real sockets; nothing is mocked.
//
// It is linked only by standalone and by tests: the engines are heavy, and a service that runs on engines of its own must
// not carry them. One file per engine: nats.go, redis.go, mongodb.go (with idindex.go). Each Start returns when the engine answers, and each
// Stop returns when it is gone, so that a test can stop an engine in the middle of its traffic and start it again on the same
// address and folder.
package embedded
