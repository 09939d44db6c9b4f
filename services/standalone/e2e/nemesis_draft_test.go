package e2e

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/parley-chat/parley/testkit/nemesis"
)

// follow puts a message that is being written together, as docs/browser-client.md describes it. When the last part
// follows on all others, the text is complete.
func (b *browserTab) follow(t *testing.T, argument json.RawMessage) {
	var p shownPart
	if err := json.Unmarshal(argument, &p); err != nil {
		t.Errorf("%s: decoding %s: %v", b.name, argument, err)
		return
	}
	if b.has(p.MessageID) || p.Done && p.MessageID != b.draft.id {
		return
	}
	whole := p.Done && b.draft.precedes(p)
	b.draft.take(t, p)
	if whole {
		b.addDraft(true)
	}
}

// has reports whether the client has the message itself.
func (b *browserTab) has(messageID string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.seen, func(r record) bool { return r.ID == messageID })
}

// replaceDraft ends what the client has put together: the message has arrived.
func (b *browserTab) replaceDraft(messageID string) {
	if messageID == b.draft.id && !b.draft.done {
		b.addDraft(false)
	}
}

func (b *browserTab) addDraft(whole bool) {
	b.of.world.record.AddDraft(nemesis.Draft{
		Client: b.name, ChatID: b.of.chatID, MessageID: b.draft.id, Text: b.draft.text, Whole: whole, At: time.Now(),
	})
}
