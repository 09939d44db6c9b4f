package realtime

import (
	"context"
	"time"
)

// drainStep is how often sockets are closed while a gateway drains.
const drainStep = 20 * time.Millisecond

// closer is a socket whose client is to connect elsewhere.
type closer interface{ CloseConnection() }

// drain closes sockets, spread evenly over a time, so that their clients do not reconnect to the other gateways all at once.
func drain[S closer](ctx context.Context, sockets []S, within time.Duration) {
	began := time.Now()
	for closed := 0; closed < len(sockets); {
		due := len(sockets)
		if elapsed := time.Since(began) + drainStep; elapsed < within {
			due = int(float64(len(sockets)) * float64(elapsed) / float64(within))
		}
		for ; closed < due; closed++ {
			sockets[closed].CloseConnection()
		}
		if closed < len(sockets) {
			pause(ctx, drainStep)
		}
		if ctx.Err() != nil {
			within = 0
		}
	}
}
