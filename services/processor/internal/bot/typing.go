package bot

import (
	"sync"
	"time"

	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
)

// typingDelay is how long a bot thinks before the visitor is told that it does: an answer that comes at once needs no announcement.
const typingDelay = 500 * time.Millisecond

// typingRepeat is between two signals: below the life of one, so that a lost one is not seen.
const typingRepeat = 4 * time.Second

// WithTyping makes the bot tell visitors that it types while it waits for its answers. It returns b.
func (b *Bot) WithTyping(signal func(event.Signal) error) *Bot {
	b.signal = signal
	return b
}

// typing tells the visitor that the bot types until stop is called, which may be more than once. The answer's message ends what the visitor sees; without an answer it
// ends by itself.
func (b *Bot) typing(e event.VisitorMessageAccepted, name string) (stop func()) {
	if b.signal == nil {
		return func() {}
	}
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		timer := time.NewTimer(typingDelay)
		defer timer.Stop()
		for {
			select {
			case <-done:
				return
			case <-timer.C:
			}
			_ = b.signal(event.Typing{ // a lost one is repeated
				CompanyID: e.CompanyID, AppID: e.AppID, ChatUserID: e.ChatUserID, Side: subject.SideSupport, Name: name, At: b.now(),
			})
			timer.Reset(typingRepeat)
		}
	}()
	return sync.OnceFunc(func() {
		close(done)
		<-ended
	})
}
