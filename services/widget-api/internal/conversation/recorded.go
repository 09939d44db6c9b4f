package conversation

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
)

const (
	// recorderLag is how long a reader waits for a late recorder: after that the recorder is down, or has
	// given the reply up.
	recorderLag = 10 * time.Second
	// recorderWait bounds one wait; recorderPause is the time before the second read, doubled after each.
	recorderWait  = time.Second
	recorderPause = 5 * time.Millisecond
)

// recorded returns the chat's messages once the recorder has written the last reply. A browser connects its
// socket and then loads the history: a reply sent over the socket just before must be in it, or the visitor
// would see it only at the next load. If the recorder's position is unknown, or the wait takes too long, the
// history is returned as stored. Earlier pages do not wait.
func (d *Service) recorded(ctx context.Context, c chat.Chat, p Page) (page, error) {
	if p.Before != "" {
		return d.read(ctx, c, p)
	}
	reply, at, err := d.cfg.Replies.LastReply(ctx, c.AppID, c.ChatUserID)
	if err != nil || reply.ChatID != c.ID || d.cfg.Now().Sub(at) > recorderLag {
		return d.read(ctx, c, p)
	}
	waiting, stop := context.WithTimeout(ctx, recorderWait)
	defer stop()
	for pause := recorderPause; ; pause *= 2 {
		found, err := d.read(ctx, c, p)
		if err != nil || found.covers(reply.Message) || waiting.Err() != nil {
			return found, err
		}
		found.held.Release() // hold no memory while waiting
		select {
		case <-time.After(pause):
		case <-waiting.Done():
			if ctx.Err() != nil {
				return page{}, ctx.Err()
			}
		}
	}
}
