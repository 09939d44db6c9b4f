package sqlite_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/testkit/storetest"
)

// A limit of the process on the size of its files stands for a full disk: the write fails in the same place. The test runs in a
// process of its own, so that the limit is nobody else's.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	const variable = "PARLEY_TEST_DISK_FULL"
	if os.Getenv(variable) != "" {
		fillDisk(t)
		return
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDiskFull$", "-test.v")
	child.Env = append(os.Environ(), variable+"=1")
	out, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestDiskFull") {
		t.Errorf("got %v\n%s", err, out)
	}
}

func fillDisk(t *testing.T) {
	signal.Ignore(syscall.SIGXFSZ)
	ctx, now := t.Context(), time.Now()
	s := storetest.Open(t)
	v, err := s.SaveVisitor(ctx, chat.Visitor{ID: uuid.NewString()})
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := s.OpenChat(ctx, v, store.NewChat{Channel: chat.ChannelWidget, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	message := func() chat.Message {
		return chat.Message{ID: uuid.NewString(), CreatedAt: now, Type: chat.Text, Data: json.RawMessage(`"` + strings.Repeat("x", 10_000) + `"`)}
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	full := limit
	full.Cur = 2 << 20
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &full); err != nil {
		t.Fatal(err)
	}
	stored := 0
	for ; ; stored++ {
		err := s.AppendMessage(ctx, c.ID, message())
		if err == nil && stored < 10_000 {
			continue
		}
		if !apperr.Is(err, apperr.Unavailable) || !strings.Contains(err.Error(), "SQLite: appending a message: ") {
			t.Fatalf("on a full disk after %d messages: got %v, want Unavailable and why", stored, err)
		}
		break
	}
	if all, _, err := s.History(ctx, c.ID, store.HistoryQuery{}); err != nil || len(all) != stored {
		t.Errorf("reading on a full disk: got %d messages, %v, want %d", len(all), err, stored)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if err := s.AppendMessage(ctx, c.ID, message()); err != nil {
			t.Fatalf("when there is room again: got %v, want success", err)
		}
		stored++
	}
	if all, _, err := s.History(ctx, c.ID, store.HistoryQuery{}); err != nil || len(all) != stored {
		t.Errorf("when there is room again: got %d messages, %v, want %d", len(all), err, stored)
	}
}
