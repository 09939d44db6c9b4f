//go:build !race

package panel_test

const raced = false
