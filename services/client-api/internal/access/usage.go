package access

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

const (
	usageTick   = 5 * time.Second // maximum delay until a token's first use is stored
	usagePeriod = time.Minute     // minimum time between two writes for one token
	usageFlush  = 3 * time.Second // timeout of the last writes at shutdown
)

// Ledger stores when access tokens were last used. A write never moves a time back.
type Ledger interface {
	ChangeAccessToken(ctx context.Context, hash string, change store.TokenChange) error
}

// Usage records when access tokens are used and stores it outside the request: soon after a token's first
// use, then at most once a minute. It is safe for concurrent use.
type Usage struct {
	ledger Ledger
	log    *slog.Logger
	now    func() time.Time

	mu   sync.Mutex
	seen map[string]use // by hash
}

type use struct {
	at      time.Time // last use
	noted   bool      // the last use is stored
	written time.Time // last write
}

// NewUsage returns a Usage that writes while Run runs.
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

// Run writes until ctx is done, and then what is still due.
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

// due returns unwritten uses of tokens whose last write is at least a period ago, and drops tokens without a
// use since then.
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

// write stops at the first failure: unwritten uses stay due.
func (u *Usage) write(ctx context.Context, due map[string]time.Time) {
	for hash, at := range due {
		err := u.ledger.ChangeAccessToken(ctx, hash, store.TokenChange{UsedAt: at})
		if err != nil && !apperr.Is(err, apperr.NotFound) {
			u.log.DebugContext(ctx, "writing the last use of access tokens failed, it is retried", "error", err)
			return
		}
		u.mu.Lock()
		s := u.seen[hash]
		u.seen[hash] = use{at: s.at, noted: s.at.Equal(at), written: u.now()}
		u.mu.Unlock()
	}
}
