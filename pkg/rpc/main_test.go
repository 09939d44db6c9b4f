package rpc_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/parley-chat/parley/testkit/bustest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, bustest.LeftByNATS()...) }
