package bot

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
)

const (
	// typingDelay is how long a bot works before the indicator appears: an immediate answer needs none.
	typingDelay = 500 * time.Millisecond
	// typingRepeat is the interval of the signals, below their lifetime, so that losing one is not visible.
	typingRepeat = 4 * time.Second
	// retryWait is longer than the bus waits before a retry for which the error sets no time.
	retryWait = 10 * time.Second
	// maxTyping bounds the indicators of a process. Above it, as in an outage of the bot's server, further
	// visitors see none.
	maxTyping = 1000
)

// Close ends all typing indicators. No message may be handled any more.
func (b *Bot) Close() { b.typists.close() }

// typists holds the indicators of the messages that the bot works on, by message id. An indicator begins with
// the first try of a message and lasts over the retries, until the answer, the failure, or an agent who takes
// the chat.
type typists struct {
	mu   sync.Mutex
	byID map[string]*typist
}

// typist signals from its own goroutine until cancel is called.
type typist struct {
	cancel context.CancelFunc
	ended  chan struct{}
	expiry *time.Timer // stopped during a try
}

// typing begins the indicator of a message, or continues it with another try.
func (b *Bot) typing(e event.VisitorMessageAccepted, name string) {
	t := &b.typists
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.byID[e.Message.ID]; ok {
		known.expiry.Stop()
		return
	}
	if b.cfg.Signal == nil || len(t.byID) >= maxTyping {
		return
	}
	if t.byID == nil {
		t.byID = make(map[string]*typist)
	}
	ctx, cancel := context.WithCancel(context.Background())
	fresh := &typist{cancel: cancel, ended: make(chan struct{})}
	fresh.expiry = time.AfterFunc(time.Hour, func() { t.stop(e.Message.ID) })
	fresh.expiry.Stop()
	t.byID[e.Message.ID] = fresh
	go func() {
		defer close(fresh.ended)
		b.signalTyping(ctx, e, name)
	}()
}

// signalTyping signals until ctx ends or an agent has the chat.
func (b *Bot) signalTyping(ctx context.Context, e event.VisitorMessageAccepted, name string) {
	timer := time.NewTimer(typingDelay)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if silent, _ := b.agentInControl(ctx, e.ChatID); silent || ctx.Err() != nil {
			return
		}
		_ = b.cfg.Signal(event.Typing{ // a lost one is repeated
			CompanyID: e.CompanyID, AppID: e.AppID, ChatUserID: e.ChatUserID,
			Side: subject.SideSupport, Name: name, At: b.cfg.Now(),
		})
		timer.Reset(typingRepeat)
	}
}

// tried ends the indicator after a try without an error, and otherwise keeps it until the retry. If none
// follows, because another process has taken the message over, the indicator expires.
func (t *typists) tried(messageID string, err error) {
	if err == nil {
		t.stop(messageID)
		return
	}
	wait := retryWait
	if coded, ok := errors.AsType[*apperr.Error](err); ok {
		wait += coded.RetryAfter
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.byID[messageID]; ok {
		known.expiry.Reset(wait)
	}
}

// stop ends the indicator of a message. No signal follows its return. It may be called repeatedly.
func (t *typists) stop(messageID string) {
	t.mu.Lock()
	known, ok := t.byID[messageID]
	delete(t.byID, messageID)
	t.mu.Unlock()
	if ok {
		known.end()
	}
}

func (t *typists) close() {
	t.mu.Lock()
	all := t.byID
	t.byID = nil
	t.mu.Unlock()
	for _, known := range all {
		known.end()
	}
}

func (t *typist) end() {
	t.expiry.Stop()
	t.cancel()
	<-t.ended
}
