package store

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
)

// record is a message as it is stored: the text that also goes over the wire ([chat.Message.AppendJSON]). It keeps data byte
// for byte (but for blanks around the whole of it), and one string costs the embedded engine half of what a document with the
// same fields does.
func record(m chat.Message) string { return string(m.AppendJSON(nil)) }

func parseRecord(text string) (m chat.Message, err error) {
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return m, fmt.Errorf("reading a message record: %w", err)
	}
	return m, nil
}

// stored is a record of which only its place in the history is known yet: of a bucket of a hundred a page may show ten.
type stored struct {
	id   string
	at   time.Time
	text string
}

// readHead reads the head of a record, in the form in which record writes it; any other costs more.
func readHead(text string) (stored, error) {
	if id, rest, ok := cutString(text, `{"id":"`); ok {
		if created, _, ok := cutString(rest, `,"createdAt":"`); ok {
			if at, err := time.Parse(time.RFC3339, created); err == nil {
				return stored{id, at, text}, nil
			}
		}
	}
	m, err := parseRecord(text)
	return stored{m.ID, m.CreatedAt, text}, err
}

// cutString returns the string that stands in text behind a start, if nothing in it is escaped, and what follows it.
func cutString(text, start string) (value, rest string, ok bool) {
	text, ok = strings.CutPrefix(text, start)
	end := strings.IndexAny(text, `"\\`)
	if !ok || end < 0 || text[end] != '"' {
		return "", "", false
	}
	return text[:end], text[end+1:], true
}

// inOrder puts messages in the order of the history ([chat.CompareMessages]), each once: a greeting that was also appended is in
// two buckets.
func inOrder(all []stored) []stored {
	slices.SortFunc(all, compareStored)
	return slices.CompactFunc(all, func(a, b stored) bool { return a.id == b.id })
}

func compareStored(a, b stored) int {
	return cmp.Or(a.at.Compare(b.at), strings.Compare(a.id, b.id))
}

func parseAll(all []stored) ([]chat.Message, error) {
	messages := make([]chat.Message, 0, len(all))
	for _, e := range all {
		m, err := parseRecord(e.text)
		if err != nil {
			return nil, err
		}
		messages = append(messages, m)
	}
	return messages, nil
}
