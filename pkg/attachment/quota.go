package attachment

import (
	"context"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/file"
	"github.com/parley-chat/parley/pkg/notice"
	"github.com/parley-chat/parley/pkg/store"
)

const (
	// usageAge is how long the sum of an owner with many senders is cached. This replica adds its own uploads
	// at once; uploads at other replicas may meanwhile exceed the quota.
	usageAge = 5 * time.Second
	// keptUsages bounds the number of cached sums.
	keptUsages = 10_000
	// fileOverhead is what a file counts besides its content: its metadata and headers in the store, so that
	// many tiny files count too.
	fileOverhead = 1 << 10
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

// quotas enforces the quotas and the shares of the store. An upload reserves its size before the file is
// read; the reservation is a record that expires, so that a crash never takes quota for good.
type quotas struct {
	records Records
	store   file.Store
	quota   Quota
	notices *notice.Board
	now     func() time.Time

	// recording is held while records change together with the sums: an upload whose reservation is stored,
	// but not counted yet, would count twice after another one has read the sum.
	recording sync.Mutex

	mu     sync.Mutex                         // guards the fields below; it may be taken while recording is held
	known  *lru.Cache[store.FileOwner, usage] // of addresses, agents, applications and companies
	coming int64                              // bytes of the uploads of this process that are not stored yet
	begun  int64                              // bytes of the uploads that this process has let begin
}

type usage struct {
	bytes  int64
	readAt time.Time
}

func newQuotas(cfg Config) *quotas {
	known, err := lru.New[store.FileOwner, usage](keptUsages)
	if err != nil {
		panic("attachment: " + err.Error()) // only for a size that is not positive
	}
	return &quotas{
		records: cfg.Records, store: cfg.Store, quota: cfg.Quota, notices: cfg.Notices, now: cfg.Now, known: known,
	}
}

// cost returns the bytes that a file of that size counts.
func cost(size int64) int64 { return size + fileOverhead }

// reserve reserves the upload's bytes until settle or release. f has the owners, the id and the maximum size.
func (q *quotas) reserve(ctx context.Context, f chat.StoredFile, within time.Duration) error {
	reservation := f
	reservation.ID = reservedPrefix + f.ID
	reservation.ExpiresAt = q.now().Add(within + reservationSlack)
	coming, begun := q.underWay()
	space, err := q.store.Space(ctx) // without the lock: a server that is away delays only this upload
	if err != nil {
		return err
	}
	q.recording.Lock()
	defer q.recording.Unlock()
	if err := q.records.PutFile(ctx, reservation); err != nil {
		return err
	}
	space.Used += coming + q.begin(f.Size) - begun // with those that have begun meanwhile
	if err = q.check(ctx, f, space); err != nil {
		q.begin(-f.Size)
		q.drop(ctx, reservation.ID)
	}
	return err
}

// underWay returns the bytes of the uploads that are not stored yet, and of all that have begun.
func (q *quotas) underWay() (coming, begun int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.coming, q.begun
}

// begin counts the bytes of an upload that begins, or, if negative, of one that is refused. It returns the
// bytes of all that have begun.
func (q *quotas) begin(bytes int64) (begun int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.coming += bytes
	q.begun += bytes
	return q.begun
}

// end counts the bytes of an upload that has ended.
func (q *quotas) end(bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.coming -= bytes
}

// check compares the sums, which include the upload, with the quotas and the shares of the store. The company
// is told what is refused for reasons that are not the sender's own.
func (q *quotas) check(ctx context.Context, f chat.StoredFile, space file.Space) error {
	if err := q.checkVisitor(ctx, f); err != nil {
		return err
	}
	used, err := q.count(ctx, f)
	if err != nil {
		return err
	}
	if err = used.checkOrigin(f, space); err == nil {
		if err = used.checkCompany(q.quota, space); err != nil {
			q.notices.Tell(ctx, notice.Notice{
				CompanyID: f.CompanyID,
				AppID:     f.AppID,
				Action:    ActionRefused,
				Text:      "files of an application are refused: a quota or the store is full",
			})
		}
	}
	if err != nil {
		q.change(f, -cost(f.Size))
	}
	return err
}

// checkVisitor checks the quota of a visitor. An agent has none.
func (q *quotas) checkVisitor(ctx context.Context, f chat.StoredFile) error {
	if q.quota.Visitor == 0 || f.SenderID != f.ChatUserID {
		return nil
	}
	used, err := q.sum(ctx, store.FileOwner{Sender: f.SenderID})
	if err != nil {
		return err
	}
	if used > q.quota.Visitor {
		return apperr.FileQuotaExceeded.WithMessage("The visitor's files are as large as they may be.")
	}
	return nil
}

// count adds the upload to the sums of its owners, and returns them. Its reservation is stored.
func (q *quotas) count(ctx context.Context, f chat.StoredFile) (used sums, err error) {
	var counted []store.FileOwner
	for owner, bytes := range used.of(f) {
		if *bytes, err = q.usage(ctx, owner, cost(f.Size)); err != nil {
			q.add(-cost(f.Size), counted...)
			return used, err
		}
		counted = append(counted, owner)
	}
	return used, nil
}

// usage returns the owner's sum, including the upload that counts that many bytes, whose reservation is stored.
func (q *quotas) usage(ctx context.Context, owner store.FileOwner, bytes int64) (int64, error) {
	if known, ok := q.addKnown(owner, bytes); ok {
		return known, nil
	}
	now := q.now()
	read, err := q.sum(ctx, owner)
	if err != nil {
		return 0, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.known.Add(owner, usage{read, now})
	return read, nil
}

// addKnown adds the bytes to a sum that is new enough.
func (q *quotas) addKnown(owner store.FileOwner, bytes int64) (sum int64, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	u, ok := q.known.Get(owner)
	if !ok || q.now().Sub(u.readAt) >= usageAge {
		return 0, false
	}
	u.bytes += bytes
	q.known.Add(owner, u)
	return u.bytes, true
}

// sum reads the owner's sum from the records.
func (q *quotas) sum(ctx context.Context, owner store.FileOwner) (int64, error) {
	read, err := q.records.FileUsage(ctx, owner, q.now())
	return read.Bytes + read.Count*fileOverhead, err
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
	var used sums
	for owner := range used.of(f) {
		q.add(bytes, owner)
	}
}

// settle replaces the reservation by the record of the stored file.
func (q *quotas) settle(ctx context.Context, f chat.StoredFile, reserved int64) error {
	q.recording.Lock()
	defer q.recording.Unlock()
	if err := q.records.PutFile(ctx, f); err != nil {
		return err
	}
	q.drop(ctx, reservedPrefix+f.ID)
	q.change(f, f.Size-reserved)
	q.end(reserved)
	return nil
}

// release removes the reservation.
func (q *quotas) release(ctx context.Context, f chat.StoredFile) {
	q.recording.Lock()
	defer q.recording.Unlock()
	q.drop(ctx, reservedPrefix+f.ID)
	q.change(f, -cost(f.Size))
	q.end(f.Size)
}

// forget frees the quota of a stored file.
func (q *quotas) forget(ctx context.Context, f chat.StoredFile) {
	q.recording.Lock()
	defer q.recording.Unlock()
	q.drop(ctx, f.ID)
	q.change(f, -cost(f.Size))
}

// drop removes a record, also after the caller has disconnected. If that fails, the record expires.
func (q *quotas) drop(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
	defer cancel()
	_ = q.records.DeleteFile(ctx, id) // it expires
}
