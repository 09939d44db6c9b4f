package socketgateway_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/parley-chat/parley/testkit/chattest"
)

// A socket is the visitor's: the gateway knows nothing of chats and so cannot refuse it for their state. That a visitor
// without any chat connects is shown by every test here: none of them has one.
func TestSocketIsNoMatterOfTheChatsState(t *testing.T) {
	t.Parallel()
	for state, answer := range chattest.Answers(t, "../../docs/lifecycle.md", "socket connect") {
		if answer != "connected" {
			t.Errorf("%s: the table says %q, want connected", state, answer)
		}
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "./cmd/socket-gateway").Output()
	if err != nil {
		t.Fatalf("listing the packages of the binary: %v", err)
	}
	if strings.Contains(string(out), "parley/pkg/store\n") {
		t.Error("the gateway links the store, want no dependency on it")
	}
}
