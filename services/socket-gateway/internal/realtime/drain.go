package realtime

import (
	"context"
	"time"
)

// drainStep is the interval at which sockets are closed while a gateway drains.
const drainStep = 20 * time.Millisecond

// closer is a socket whose client reconnects when the connection closes.
type closer interface{ CloseConnection() }

// drain closes sockets evenly over the duration within, so that their clients do not all reconnect at once.
// If ctx is done, it closes the rest immediately.
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
			sleep(ctx, drainStep)
		}
		if ctx.Err() != nil {
			within = 0
		}
	}
}
