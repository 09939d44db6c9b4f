//go:build !race

package clientapi_test

const raced = false
