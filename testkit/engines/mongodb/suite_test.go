package mongodb_test

import (
	"testing"

	testkit "github.com/parley-chat/parley/testkit/engines/mongodb"
)

// TestContract runs the suite of every engine.
func TestContract(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, e testkit.Engine) { e.Suite().Run(t) })
}
