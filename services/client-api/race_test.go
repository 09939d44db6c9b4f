//go:build race

package clientapi_test

// raced says that the race detector slows everything down several times.
const raced = true
