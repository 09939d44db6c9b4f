//go:build race

package store_test

const scale = 10
