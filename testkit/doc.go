// Package testkit holds what tests run on, a package for each purpose. Only tests and benchmarks import it;
// depguard enforces that.
//
//	bustest       NATS for tests of package bus
//	redistest     Redis in this process
//	storetest     stores for tests, and the contract suite of package store
//	filetest      the contract suite of package file
//	httpapitest   whether answers match an OpenAPI document
//	abusetest     hostile requests, made from an OpenAPI document
//	chattest      chats in each state of docs/lifecycle.md
//	opstest       what a service's operations server reports
//	tracingtest   the spans of a test, in memory
//	nettest       free addresses, listeners
//	logtest       a log that a test reads
//	timetest      a clock, and polling for a state
//	enginetest    the engines of a service, which a test can stop
//	servicetest   a service that runs, and what its binary links
//	tlstest       certificates
//	fulldisk      a disk that is full
//	nemesis       whether a record of a run broke a promise; faults drawn from a seed
//	proxy         a TCP proxy that delays what passes
//
// testkit and pkg require each other: tests of pkg import testkit, and testkit imports what it tests. No
// packages import each other in a circle, because such tests are external (package bus_test).
//
// FerretDB, PostgreSQL, the tests of pkg/store/mongodb, which need them, and a disk whose power can be cut are a
// module of their own (testkit/engines): no module that requires testkit reads FerretDB's requirements.
package testkit
