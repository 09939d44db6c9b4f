//go:build !race

package store_test

// scale divides how much the long tests do: the race detector makes the embedded engine ten times slower.
const scale = 1
