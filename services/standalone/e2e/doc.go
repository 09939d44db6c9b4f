// Package e2e tests Parley from outside, as its users do: built binaries as child processes, plain HTTP and
// NATS clients, the official socket.io-client in Node, and a real browser with the widget.
//
// Reading order: process_test.go (child processes), place_test.go (the addresses of a running Parley, and its
// clients), socket_test.go with sockets.mjs (the official client), then the tests: session_test.go (the main
// path), errors_test.go and token_test.go (errors), abuse_test.go (malformed and hostile requests),
// tenant_test.go and tenant_panel_test.go (another company's ids), crash_test.go (shutdown, kill, restart),
// cut_test.go (power cuts), deployment_test.go (services and engines as separate processes, and their faults),
// widget_test.go, panel_test.go and support_test.go with widget.mjs and the *_scenarios.mjs (the widget and the panel
// in a browser; page.mjs has what they share).
//
// Every HTTP answer is checked against the OpenAPI document that the server serves.
package e2e
