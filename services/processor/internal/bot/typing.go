package bot

import (
	"sync"
	"time"

	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
)

// typingDelay is how long a bot works before it shows as typing: an immediate answer needs no announcement.
const typingDelay = 500 * time.Millisecond

// typingRepeat is between two signals: below the life of one, so that a lost one is not seen.
const typingRepeat = 4 * time.Second

// WithTyping makes the bot show as typing while it waits for its answers. It returns b.
func (b *Bot) WithTyping(signal func(event.Signal) error) *Bot {
	b.signal = signal
	return b
}

// typing shows the bot as typing until stop is called, which may be called repeatedly. The answer's message ends the indicator; without an
// answer it expires.
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
