package sqlite_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/testkit/fulldisk"
	"github.com/parley-chat/parley/testkit/storetest"
)

func TestDiskFull(t *testing.T) {
	t.Parallel()
	fulldisk.Run(t, fillDisk)
}

func fillDisk(t *testing.T) {
	ctx, now := t.Context(), time.Now()
	s := storetest.Open(t)
	registered, err := s.Register(ctx, store.Registration{Visitor: chat.Visitor{ID: uuid.NewString()}})
	v := registered.Visitor
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
	restore := fulldisk.Limit(t, 2<<20)
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
	restore()
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
