package sqlite

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/parley-chat/parley/pkg/chat"
)

// Messages of an earlier version get their totals when the file is opened.
func TestMigrationTotals(t *testing.T) {
	t.Parallel()
	const messageTotals = 11 // the version that adds them
	scripts, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "parley.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := connect(path, writerSettings)
	if err != nil {
		t.Fatal(err)
	}
	if err := migrate(c, scripts[:messageTotals-1]); err != nil {
		t.Fatal(err)
	}
	err = c.script(`
		INSERT INTO chats (id, company_id, app_id, chat_user_id, channel) VALUES ('a', '', '', 'a', ''), ('b', '', '', 'b', '');
		INSERT INTO messages (chat, created_at, id, from_support, type, sender, data) VALUES
			(1, 2, 'x', 1, '', '', ''), (1, 1, 'z', 1, '', '', ''), (1, 1, 'y', 0, '', '', ''), (2, 1, 'w', 1, '', '', '');`)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), Config{Path: path, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	for _, test := range []struct {
		after            string
		company, visitor int
	}{{"", 2, 1}, {"y", 2, 0}, {"z", 1, 0}} {
		cursor := chat.ReadCursor{MessageID: test.after}
		if test.after != "" {
			_, m, err := s.FindMessage(t.Context(), test.after)
			if err != nil {
				t.Fatal(err)
			}
			cursor.At = m.CreatedAt
		}
		for fromSupport, want := range map[bool]int{true: test.company, false: test.visitor} {
			got, err := s.CountUnread(t.Context(), "a", fromSupport, cursor, 100)
			if err != nil || got != want {
				t.Errorf("after %q, fromSupport %v: got %d, %v, want %d", test.after, fromSupport, got, err, want)
			}
		}
	}
}
