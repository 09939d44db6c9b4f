package webhook

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// countEvery is how often the stored deliveries of a company are counted. In between, this process adds
	// its own; those of other processors are missing until the next count.
	countEvery = time.Minute
	// crowdedRetention is how long ended deliveries of a company are kept while it stores more than half of
	// what it may: the log becomes shorter before an event is lost.
	crowdedRetention = time.Hour
)

// stored counts the stored deliveries of companies. It is safe for concurrent use.
type stored struct {
	most   int
	store  Store
	now    func() time.Time
	logger *slog.Logger

	mu sync.Mutex
	of map[string]*storedCount
}

type storedCount struct {
	n  int
	at time.Time // of the count
}

// hasRoom reports whether the company may store another delivery.
func (s *stored) hasRoom(ctx context.Context, companyID string) (bool, error) {
	n, err := s.count(ctx, companyID)
	return n < s.most, err
}

func (s *stored) count(ctx context.Context, companyID string) (int, error) {
	s.mu.Lock()
	known := s.of[companyID]
	if known == nil {
		known = &storedCount{}
		s.of[companyID] = known
	}
	due := s.now().Sub(known.at) >= countEvery
	if due { // others use the known count in the meantime
		known.at = s.now()
	}
	n := known.n
	s.mu.Unlock()
	if !due {
		return n, nil
	}
	n, err := s.store.CountWebhookDeliveries(ctx, companyID, s.most)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		known.at = time.Time{}
		return 0, err
	}
	known.n = n
	if n >= s.most {
		s.logger.LogAttrs(
			ctx, slog.LevelWarn, "new webhook deliveries of a company are dropped: it stores too many",
			slog.String("companyId", companyID), slog.Int("stored", n),
		)
	}
	return n, nil
}

// added counts a new delivery.
func (s *stored) added(companyID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.of[companyID]; known != nil {
		known.n++
	}
}

// retention returns how long the company's ended deliveries are kept.
func (s *stored) retention(companyID string, own time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.of[companyID]; known != nil && known.n >= s.most/2 {
		return min(own, crowdedRetention)
	}
	return own
}
