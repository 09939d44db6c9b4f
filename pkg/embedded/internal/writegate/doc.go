// Package writegate is a proxy for MongoDB's wire protocol that lets one write at a time through to an engine.
//
// The embedded engine carries out an update as a read, a change in memory and a write, without isolation: of two updates of one
// document at once, one is lost. MongoDB promises that each update of a document is atomic, and our store builds on that. So
// the gate holds a lock from a write's request until its reply. Reads pass freely. (The engine's database takes one writer at
// a time in any case, so nothing is lost but the overlap of parsing.)
//
// Read message.go first (what can be said of a message, pure functions), then gate.go.
package writegate
