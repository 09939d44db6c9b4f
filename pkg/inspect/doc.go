// Package inspect examines the streams for operators: the progress of consumers, dead letters, the path of a
// message, and live events. It never affects consumers. parleyctl and the panel display its results.
//
// event.go: events in display form, and the filter of live events. deadletter.go: dead letters. stream.go: streams and
// consumers. trace.go: the path of a message.
package inspect
