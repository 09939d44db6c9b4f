// Package ops provides what every service offers its operators: liveness, readiness, metrics and profiles (server.go),
// logging (log.go), and process start and shutdown (main.go).
package ops
