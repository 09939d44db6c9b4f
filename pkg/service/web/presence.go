package web

import (
	"time"

	"github.com/parley-chat/parley/pkg/presence"
	"github.com/parley-chat/parley/pkg/redisclient"
	"github.com/parley-chat/parley/pkg/service"
)

// presenceTimeout bounds how long a request waits for presence.
const presenceTimeout = 250 * time.Millisecond

// Presence returns kept, or else presence in Redis. Without a URL it returns nil: presence is unknown.
func Presence(p *service.Process, kept presence.Store, redisURL string) (presence.Store, error) {
	if kept != nil || redisURL == "" {
		return kept, nil
	}
	client, err := redisclient.New(redisURL, redisclient.Timeouts{Dial: presenceTimeout, Command: presenceTimeout})
	if err != nil {
		return nil, err
	}
	p.OnClose(client.Close)
	return presence.NewRedis(client), nil
}
