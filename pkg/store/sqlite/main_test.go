package sqlite_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t testing.TB, o ...storetest.Options) store.Store { return storetest.Open(t, o...) })
}
