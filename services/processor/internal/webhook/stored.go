package webhook

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/parley-chat/parley/pkg/webhook"
)

const (
	// sumEvery is how often the stored deliveries of a company are added up. In between, this process adds
	// its own; those of other processors, and attempts, are missing until the next sum.
	sumEvery = time.Minute
	// crowdedRetention is how long ended deliveries of a company are kept while it stores more than half of
	// what it may: the log becomes shorter before an event is lost.
	crowdedRetention = time.Hour
)

// stored adds up the stored deliveries of companies. It is safe for concurrent use.
type stored struct {
	limit  int64 // bytes of a company
	store  Store
	now    func() time.Time
	logger *slog.Logger

	mu sync.Mutex // guards of
	of map[string]*storedBytes
}

type storedBytes struct {
	bytes int64
	at    time.Time // of the sum
}

// hasRoom reports whether the company may store another delivery.
func (s *stored) hasRoom(ctx context.Context, companyID string) (bool, error) {
	bytes, err := s.sum(ctx, companyID)
	return bytes < s.limit, err
}

func (s *stored) sum(ctx context.Context, companyID string) (int64, error) {
	s.mu.Lock()
	known := s.of[companyID]
	if known == nil {
		known = &storedBytes{}
		s.of[companyID] = known
	}
	due := s.now().Sub(known.at) >= sumEvery
	if due { // others use the known sum in the meantime
		known.at = s.now()
	}
	bytes := known.bytes
	s.mu.Unlock()
	if !due {
		return bytes, nil
	}
	bytes, err := s.store.StoredWebhookBytes(ctx, companyID)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		known.at = time.Time{}
		return 0, err
	}
	known.bytes = bytes
	if bytes >= s.limit {
		s.logger.LogAttrs(
			ctx, slog.LevelWarn, "new webhook deliveries of a company are dropped: it stores too much",
			slog.String("companyId", companyID), slog.Int64("bytes", bytes),
		)
	}
	return bytes, nil
}

// added counts a new delivery.
func (s *stored) added(d webhook.Delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.of[d.CompanyID]; known != nil {
		known.bytes += d.Size()
	}
}

// retention returns how long the company's ended deliveries are kept.
func (s *stored) retention(companyID string, own time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.of[companyID]; known != nil && known.bytes >= s.limit/2 {
		return min(own, crowdedRetention)
	}
	return own
}
