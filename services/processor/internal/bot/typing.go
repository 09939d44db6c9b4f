package bot

import (
	"sync"
	"time"

	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
)

// typingDelay is how long a bot works before the indicator appears: an immediate answer needs none.
const typingDelay = 500 * time.Millisecond

// typingRepeat is the interval of the signals, below their lifetime, so that losing one is not visible.
const typingRepeat = 4 * time.Second

// WithTyping turns the typing indicator on while the bot waits for its answers. It returns b.
func (b *Bot) WithTyping(signal func(event.Signal) error) *Bot {
	b.signal = signal
	return b
}

// typing signals that the bot is typing until stop is called, which may be called repeatedly. The answer's message ends the
// indicator; without an answer it expires.
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
