//go:build race

package socketgateway_test

// raced is true under the race detector, which takes several times the memory.
const raced = true
