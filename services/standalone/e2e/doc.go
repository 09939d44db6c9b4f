// Package e2e tests Parley from outside, as its users meet it: built binaries as child processes, plain HTTP and NATS clients, the
// official socket.io-client in Node, and a real browser with the widget.
//
// Reading order: process_test.go (children and how they end), place_test.go (an address book of one running Parley, and its
// clients), socket_test.go with sockets.mjs (the official client), then the tests: session_test.go (the main path), errors_test.go
// and token_test.go (refusals), abuse_test.go (malformed and hostile requests), crash_test.go (stop, kill, start again),
// deployment_test.go (services and engines as separate processes, and their faults), widget_test.go with
// widget.mjs and widget_scenarios.mjs (the chat widget in a browser).
//
// Every HTTP answer is checked against the OpenAPI document that the server serves.
package e2e
