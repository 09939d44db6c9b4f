//go:build race

package clientapi_test

// raced is true under the race detector, which slows everything down several times.
const raced = true
