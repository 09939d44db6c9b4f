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

// Records stores what has been uploaded; see [store.Files].
type Records interface {
	PutFile(ctx context.Context, f chat.StoredFile) error
	DeleteFile(ctx context.Context, id string) error
	FileUsage(ctx context.Context, of store.FileOwner, now time.Time) (store.FileUsage, error)
}

// Quota bounds the bytes of stored files; zero: unlimited.
type Quota struct {
	Visitor     int64 // sent by a visitor
	Application int64 // sent by visitors and agents of an application
	Company     int64 // of all its applications
}

// quotas enforces the quotas. An upload reserves its size before the file is read; the reservation is a record that expires, so
// that a crash never takes quota for good.
type quotas struct {
	records Records
	quota   Quota
	now     func() time.Time

	mu    sync.Mutex
	known *lru.Cache[store.FileOwner, usage] // of applications and companies
}

type usage struct {
	bytes  int64
	readAt time.Time
}

// bound is the quota of one owner of a file.
type bound struct {
	owner   store.FileOwner
	most    int64
	message string
}

func newQuotas(records Records, quota Quota, now func() time.Time) *quotas {
	known, err := lru.New[store.FileOwner, usage](keptUsages)
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

// check compares the sums, which include the upload, with the quotas. An agent's files count for the application and the company.
func (q *quotas) check(ctx context.Context, f chat.StoredFile) error {
	if q.quota.Visitor > 0 && f.SenderID == f.ChatUserID {
		used, err := q.records.FileUsage(ctx, store.FileOwner{Sender: f.SenderID}, q.now())
		if err != nil {
			return err
		}
		if used.Bytes > q.quota.Visitor {
			return quotaExceeded("The visitor's files are as large as they may be.")
		}
	}
	var counted []store.FileOwner
	for _, b := range q.shared(f) {
		used, err := q.usage(ctx, b.owner, f.Size)
		if err == nil {
			counted = append(counted, b.owner)
		}
		if err == nil && b.most > 0 && used > b.most {
			err = quotaExceeded(b.message)
		}
		if err != nil {
			q.add(-f.Size, counted...)
			return err
		}
	}
	return nil
}

// shared returns the quotas that several senders share.
func (q *quotas) shared(f chat.StoredFile) []bound {
	return []bound{
		{store.FileOwner{Application: f.AppID}, q.quota.Application, "The application's files are as large as they may be."},
		{store.FileOwner{Company: f.CompanyID}, q.quota.Company, "The company's files are as large as they may be."},
	}
}

// usage returns the owner's sum, including the upload of that size, whose reservation is stored.
func (q *quotas) usage(ctx context.Context, owner store.FileOwner, size int64) (int64, error) {
	q.mu.Lock()
	u, ok := q.known.Get(owner)
	if ok && q.now().Sub(u.readAt) < usageAge {
		u.bytes += size
		q.known.Add(owner, u)
		q.mu.Unlock()
		return u.bytes, nil
	}
	q.mu.Unlock()
	now := q.now()
	read, err := q.records.FileUsage(ctx, owner, now)
	if err != nil {
		return 0, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.known.Add(owner, usage{read.Bytes, now})
	return read.Bytes, nil
}

func (q *quotas) add(bytes int64, owners ...store.FileOwner) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, owner := range owners {
		if u, ok := q.known.Get(owner); ok {
			u.bytes += bytes
			q.known.Add(owner, u)
		}
	}
}

// change adds bytes to the sums of all owners of a file.
func (q *quotas) change(f chat.StoredFile, bytes int64) {
	for _, b := range q.shared(f) {
		q.add(bytes, b.owner)
	}
}

// settle replaces the reservation by the record of the stored file.
func (q *quotas) settle(ctx context.Context, f chat.StoredFile, reserved int64) error {
	if err := q.records.PutFile(ctx, f); err != nil {
		return err
	}
	q.drop(ctx, reservedPrefix+f.ID)
	q.change(f, f.Size-reserved)
	return nil
}

// release removes the reservation.
func (q *quotas) release(ctx context.Context, f chat.StoredFile) {
	q.drop(ctx, reservedPrefix+f.ID)
	q.change(f, -f.Size)
}

// forget frees the quota of a stored file.
func (q *quotas) forget(ctx context.Context, f chat.StoredFile) {
	q.drop(ctx, f.ID)
	q.change(f, -f.Size)
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
