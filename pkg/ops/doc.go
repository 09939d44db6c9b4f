// Package ops is what every service shows to its operators: liveness, readiness, metrics and profiles (server.go), its log
// (log.go), and how it starts and ends as a process (main.go).
package ops
