package mongodb_test

import (
	"testing"

	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/mongodb"
	"github.com/parley-chat/parley/pkg/store/storetest"
	testkit "github.com/parley-chat/parley/testkit/mongodb"
)

// opener opens stores on databases of their own.
func opener(e testkit.Engine) storetest.Opener {
	return func(t testing.TB, options ...storetest.Options) store.Store {
		t.Helper()
		return e.Open(t, e.Database(t), func(c *mongodb.Config) {
			for _, o := range options {
				c.IdleClose = o.IdleClose
			}
		})
	}
}

// TestContract has the store pass the suite of every engine.
func TestContract(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, e testkit.Engine) { storetest.Run(t, opener(e)) })
}
