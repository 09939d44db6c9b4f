package sqlite

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/store"
)

const countRatings = `SELECT app_id, rating_score, count(*) FROM chats
	WHERE company_id = ? AND rating_first_at >= ? GROUP BY app_id, rating_score`

// Ratings implements [store.Chats].
func (s *Store) Ratings(ctx context.Context, companyID string, since time.Time, p store.Page) ([]store.Ratings, error) {
	return scan(ctx, s, "counting ratings", func(c *conn) ([]store.Ratings, error) {
		sums := store.NewRatingSums(p)
		err := c.query(countRatings, func(r *row) bool {
			appID, score, n := r.text(), int(r.int()), int(r.int())
			sums.Add(appID, score, n)
			return true
		}, companyID, since)
		return sums.Sorted(), err
	})
}
