package attachment

import (
	"context"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

const (
	// usageAge is how long an application's sum is cached. This replica adds its own uploads at once; uploads at other replicas
	// may meanwhile exceed the quota.
	usageAge = 5 * time.Second
	// keptUsages bounds the number of cached sums.
	keptUsages = 10_000
	// reservedPrefix marks the record of an upload that is not stored yet; the file's id follows.
	reservedPrefix = "upload-"
	// reservationSlack is how long a reservation outlives the upload's timeout.
	reservationSlack = time.Minute
)

// Records stores what visitors have uploaded; see [store.Files].
type Records interface {
	PutFile(ctx context.Context, f chat.StoredFile) error
	DeleteFile(ctx context.Context, id string) error
	VisitorFiles(ctx context.Context, chatUserID string, now time.Time) (store.FileUsage, error)
	ApplicationFiles(ctx context.Context, appID string, now time.Time) (store.FileUsage, error)
}

// Quota bounds the bytes of stored files; zero: unlimited.
type Quota struct {
	Visitor     int64
	Application int64
}

// quotas enforces the quotas. An upload reserves its size before the file is read; the reservation is a record that expires, so
// that a crash never takes quota for good.
type quotas struct {
	records Records
	quota   Quota
	now     func() time.Time

	mu    sync.Mutex
	known *lru.Cache[string, usage] // by application
}

type usage struct {
	bytes  int64
	readAt time.Time
}

func newQuotas(records Records, quota Quota, now func() time.Time) *quotas {
	known, err := lru.New[string, usage](keptUsages)
	if err != nil {
		panic("attachment: " + err.Error()) // only for a size that is not positive
	}
	return &quotas{records: records, quota: quota, now: now, known: known}
}

// reserve reserves the upload's bytes until settle or release. f has the owner, the id and the maximum size.
func (q *quotas) reserve(ctx context.Context, f chat.StoredFile, within time.Duration) error {
	reservation := f
	reservation.ID = reservedPrefix + f.ID
	reservation.ExpiresAt = q.now().Add(within + reservationSlack)
	if err := q.records.PutFile(ctx, reservation); err != nil {
		return err
	}
	err := q.check(ctx, f)
	if err != nil {
		q.drop(ctx, reservation.ID)
	}
	return err
}

// check compares the sums, which include the upload, with the quotas.
func (q *quotas) check(ctx context.Context, f chat.StoredFile) error {
	if q.quota.Visitor > 0 {
		used, err := q.records.VisitorFiles(ctx, f.ChatUserID, q.now())
		if err != nil {
			return err
		}
		if used.Bytes > q.quota.Visitor {
			return quotaExceeded("The visitor's files are as large as they may be.")
		}
	}
	if q.quota.Application == 0 {
		return nil
	}
	used, err := q.application(ctx, f)
	if err != nil {
		return err
	}
	if used > q.quota.Application {
		q.add(f.AppID, -f.Size)
		return quotaExceeded("The application's files are as large as they may be.")
	}
	return nil
}

// application returns the application's sum, including f.
func (q *quotas) application(ctx context.Context, f chat.StoredFile) (int64, error) {
	q.mu.Lock()
	u, ok := q.known.Get(f.AppID)
	if ok && q.now().Sub(u.readAt) < usageAge {
		u.bytes += f.Size
		q.known.Add(f.AppID, u)
		q.mu.Unlock()
		return u.bytes, nil
	}
	q.mu.Unlock()
	now := q.now()
	read, err := q.records.ApplicationFiles(ctx, f.AppID, now) // includes the reservation
	if err != nil {
		return 0, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.known.Add(f.AppID, usage{read.Bytes, now})
	return read.Bytes, nil
}

func (q *quotas) add(appID string, bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if u, ok := q.known.Get(appID); ok {
		u.bytes += bytes
		q.known.Add(appID, u)
	}
}

// settle replaces the reservation by the record of the stored file.
func (q *quotas) settle(ctx context.Context, f chat.StoredFile, reserved int64) error {
	if err := q.records.PutFile(ctx, f); err != nil {
		return err
	}
	q.drop(ctx, reservedPrefix+f.ID)
	q.add(f.AppID, f.Size-reserved)
	return nil
}

// release removes the reservation.
func (q *quotas) release(ctx context.Context, f chat.StoredFile) {
	q.drop(ctx, reservedPrefix+f.ID)
	q.add(f.AppID, -f.Size)
}

// forget frees the quota of a stored file.
func (q *quotas) forget(ctx context.Context, id, appID string, size int64) {
	q.drop(ctx, id)
	q.add(appID, -size)
}

// drop removes a record, also after the caller has disconnected. If that fails, the record expires.
func (q *quotas) drop(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
	defer cancel()
	_ = q.records.DeleteFile(ctx, id) // it expires
}

func quotaExceeded(message string) error {
	return apperr.FileQuotaExceeded.WithMessage(message)
}
