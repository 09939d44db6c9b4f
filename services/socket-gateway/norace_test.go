//go:build !race

package socketgateway_test

const raced = false
