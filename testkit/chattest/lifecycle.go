// Package chattest tests services against the table in docs/lifecycle.md.
package chattest

import (
	"os"
	"strings"
	"testing"
)

// States are the columns of the table in docs/lifecycle.md: the possible states of a chat.
func States() []string {
	return []string{NoChat, Pending, Active, WindowPassed, Closed, Idle}
}

// The states of the table.
const (
	NoChat       = "no chat"
	Pending      = "pending"
	Active       = "active"
	WindowPassed = "window passed"
	Closed       = "closed"
	Idle         = "idle"
)

// Answers returns the row of the table that begins with subject, by state. path is that of docs/lifecycle.md.
func Answers(t testing.TB, path, subject string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("reading the lifecycle: %v", err)
	}
	states := States()
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != len(states)+1 || strings.TrimSpace(cells[0]) != subject {
			continue
		}
		answers := make(map[string]string, len(states))
		for n, state := range states {
			answers[state] = strings.TrimSpace(cells[n+1])
		}
		return answers
	}
	t.Fatalf("%s has no row for %s with %d states", path, subject, len(states))
	return nil
}
