package access

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
)

const (
	usageTick   = 5 * time.Second // how soon a token's first use is in the store
	usagePeriod = time.Minute     // at least so long between two writes for one token
	usageFlush  = 3 * time.Second // what the last writes may take at the stop
)

// Ledger keeps when access tokens were last used. Its write never moves a time back.
type Ledger interface {
	AccessTokenUsed(ctx context.Context, hash string, at time.Time) error
}

// Usage notes when access tokens are used, and writes it down beside the requests: soon after a token's first use, then at
// most once a minute. It is safe for concurrent use.
type Usage struct {
	ledger Ledger
	log    *slog.Logger
	now    func() time.Time

	mu   sync.Mutex
	seen map[string]use // by hash
}

type use struct {
	at      time.Time // of the last use
	noted   bool      // that one is in the ledger
	written time.Time // when the ledger was last written
}

// NewUsage returns a usage that is written down while Run runs.
func NewUsage(ledger Ledger, log *slog.Logger, now func() time.Time) *Usage {
	return &Usage{ledger: ledger, log: log, now: now, seen: make(map[string]use)}
}

// Note records that a request used the token. An invalid token does not count as used.
func (u *Usage) Note(t chat.AccessToken) {
	now := u.now()
	if !t.Valid(now) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.seen[t.Hash] = use{at: now, written: u.seen[t.Hash].written}
}

// Run writes down until ctx is done, and then what is left.
func (u *Usage) Run(ctx context.Context) {
	tick := time.NewTicker(usageTick)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			u.write(ctx, u.due(usagePeriod))
			continue
		case <-ctx.Done():
		}
		rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), usageFlush)
		defer cancel()
		u.write(rest, u.due(0))
		return
	}
}

// due returns what is not in the ledger, of the tokens that were last written at least a period ago, and forgets those of
// which nothing has been heard since.
func (u *Usage) due(period time.Duration) map[string]time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	due := make(map[string]time.Time)
	now := u.now()
	for hash, s := range u.seen {
		if now.Sub(s.written) < period {
			continue
		}
		if s.noted {
			delete(u.seen, hash)
			continue
		}
		due[hash] = s.at
	}
	return due
}

// write gives up at the first failure: what is not written stays due.
func (u *Usage) write(ctx context.Context, due map[string]time.Time) {
	for hash, at := range due {
		if err := u.ledger.AccessTokenUsed(ctx, hash, at); err != nil && !apperr.Is(err, apperr.NotFound) {
			u.log.DebugContext(ctx, "when access tokens were last used is written later", "error", err)
			return
		}
		u.mu.Lock()
		s := u.seen[hash]
		u.seen[hash] = use{at: s.at, noted: s.at.Equal(at), written: u.now()}
		u.mu.Unlock()
	}
}
