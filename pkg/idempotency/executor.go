package idempotency

import (
	"context"
	"log/slog"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
)

const (
	// KeyTTL is the lifetime of a key.
	KeyTTL = 24 * time.Hour
	// Lease is how long a request may run before another one with the same key takes over: much longer than
	// the sum of its timeouts, and shorter than JetStream's duplicate window of two minutes.
	Lease = 30 * time.Second
)

// Executor executes each request with a key once. It is safe for concurrent use.
type Executor struct {
	records Records
	effects Effects
	now     func() time.Time
	log     *slog.Logger
}

// Effects looks up what requests have done.
type Effects interface {
	// Exists reports whether the message of an answered request is in the store or in its stream.
	Exists(ctx context.Context, r Request, messageID string) (bool, error)
}

// NewExecutor returns an executor that stores its state in records. effects may be nil: then a stored answer is given
// even if its effect was lost.
func NewExecutor(records Records, effects Effects, now func() time.Time, log *slog.Logger) *Executor {
	return &Executor{records: records, effects: effects, now: now, log: log}
}

// Request is one use of a key.
type Request struct {
	Scope       string // owner and purpose of the key; keys are unique per scope
	Key         string
	Fingerprint string // see [Fingerprint]
	Permit      Permit // nil: the caller may add any number of records
	CompanyID   string // of the message; for [Effects] that need it
}

// Permit allows a caller to add one record. It returns the caller's error if there are too many; giveBack undoes
// the permit if the request has added none.
type Permit func() (giveBack func(), err error)

// permit asks for a record more.
func (r Request) permit() (giveBack func(), err error) {
	if r.Permit == nil {
		return func() {}, nil
	}
	return r.Permit()
}

func (r Request) id() string { return Fingerprint(r.Scope, r.Key) }

// Act executes a request. Its message must use the id and time of identity; identity.Again reports a possible
// repetition.
type Act func(ctx context.Context, identity chat.MessageIdentity) (Answer, error)

// Do returns the result of act, or the stored result of an earlier request with the same key. If the message of that
// one was lost, act is called again with its identity. Additional
// errors: Invalid with the reason IDEMPOTENCY_KEY_REUSED if the earlier request was different, Conflict with
// the reason IDEMPOTENCY_KEY_IN_USE while the earlier request runs, Unavailable, and those of the request's Permit.
// Without a permit only an earlier request is answered. The context of act is not cancelled with ctx.
func (e *Executor) Do(ctx context.Context, r Request, act Act) (Answer, error) {
	ctx = context.WithoutCancel(ctx)
	claim, again, err := e.claim(ctx, r)
	if err != nil {
		return Answer{}, err
	}
	if claim.Answer != "" {
		return e.answered(ctx, r, claim, act)
	}
	return e.act(ctx, claim, again, act)
}

// answered returns the stored result, or that of act if the request's message was lost: a stream has lost messages that
// it had acknowledged. Two concurrent calls publish one message, because they have one identity.
func (e *Executor) answered(ctx context.Context, r Request, c Record, act Act) (Answer, error) {
	answer, err := replay(c.Answer)
	if err != nil || e.effects == nil {
		return answer, err
	}
	exists, err := e.effects.Exists(ctx, r, c.MessageID)
	if err != nil || exists {
		return answer, err
	}
	e.log.WarnContext(
		ctx, "the message of an answered request with an Idempotency-Key was lost, executing the request again",
		"messageId", c.MessageID,
	)
	return act(ctx, chat.MessageIdentity{ID: c.MessageID, At: c.At, Again: true})
}

// claim returns a record leased to the caller, or a record with an answer. again reports that the record
// existed before.
func (e *Executor) claim(ctx context.Context, r Request) (c Record, again bool, err error) {
	fresh := e.newRecord(r)
	giveBack, refused := r.permit()
	if refused != nil {
		return e.claimKnown(ctx, r, fresh, refused)
	}
	seen, inserted, err := e.records.InsertIdempotencyRecord(ctx, fresh)
	if apperr.Is(err, apperr.NotFound) { // an expired one was removed
		giveBack()
		return c, false, inUse(time.Second)
	}
	if err != nil || inserted { // after an error, the record may be there
		return fresh, false, err
	}
	if !e.expired(seen) {
		giveBack()
	}
	return e.claimSeen(ctx, r, seen, fresh)
}

// claimKnown is claim for a caller that may add no record. It returns refused if the key has none.
func (e *Executor) claimKnown(ctx context.Context, r Request, fresh Record, refused error) (Record, bool, error) {
	// A lease that has ended only reads the record, and counts.
	seen, err := e.records.LeaseIdempotencyRecord(ctx, fresh.ID, fresh.At)
	seen.Leases++
	if apperr.Is(err, apperr.NotFound) || err == nil && e.expired(seen) {
		return Record{}, false, refused
	}
	if err != nil {
		return Record{}, false, err
	}
	return e.claimSeen(ctx, r, seen, fresh)
}

// claimSeen claims the key of a record that exists.
func (e *Executor) claimSeen(ctx context.Context, r Request, seen, fresh Record) (c Record, again bool, err error) {
	expired := e.expired(seen)
	switch {
	case !expired && seen.Fingerprint != r.Fingerprint:
		return c, false, apperr.IdempotencyKeyReused.New()
	case !expired && seen.Answer != "":
		return seen, true, nil
	case e.now().Before(seen.LeasedUntil):
		return c, false, inUse(e.retryAfter(seen))
	}
	return e.takeOver(ctx, seen, fresh, expired)
}

func (e *Executor) expired(r Record) bool { return !e.now().Before(r.ExpiresAt) }

func (e *Executor) newRecord(r Request) Record {
	m := chat.NewMessageIdentity(e.now())
	return Record{
		ID: r.id(), Fingerprint: r.Fingerprint, MessageID: m.ID, At: m.At,
		LeasedUntil: m.At.Add(Lease), ExpiresAt: m.At.Add(KeyTTL),
	}
}

// takeOver continues a claim whose holder crashed or failed, or restarts an expired one.
func (e *Executor) takeOver(ctx context.Context, seen, fresh Record, expired bool) (c Record, again bool, err error) {
	before, err := e.records.LeaseIdempotencyRecord(ctx, seen.ID, fresh.LeasedUntil)
	switch {
	case apperr.Is(err, apperr.NotFound):
		return c, false, inUse(time.Second)
	case err != nil:
		return c, false, err
	case !expired && before.Answer != "":
		return before, true, nil
	case before.Leases != seen.Leases: // another request took the lease
		return c, false, inUse(time.Second)
	case !expired:
		return before, true, nil
	}
	fresh.Leases = before.Leases + 1
	return fresh, false, e.records.ReplaceIdempotencyRecord(ctx, fresh)
}

// retryAfter returns the caller's Retry-After: the time that the request has been running so far, at most the
// rest of its lease. Retries thus slow down if the holder has crashed.
func (e *Executor) retryAfter(c Record) time.Duration {
	left := c.LeasedUntil.Sub(e.now())
	return max(min(Lease-left, left), time.Second)
}

// act calls act for a leased record and stores the outcome.
func (e *Executor) act(ctx context.Context, c Record, again bool, act Act) (answer Answer, err error) {
	stored := false
	defer func() {
		if !stored { // after a panic or an outcome that is not stored
			e.release(ctx, c)
		}
	}()
	answer, err = act(ctx, chat.MessageIdentity{ID: c.MessageID, At: c.At, Again: again})
	text, ok := encode(answer, err)
	if !ok {
		return answer, err
	}
	stored = true
	return e.record(ctx, c, text, answer, err)
}

// record stores the outcome and returns the first stored one. If storing fails, it returns the given outcome:
// a later request with the key repeats the same message, which is deduplicated.
func (e *Executor) record(ctx context.Context, c Record, text string, answer Answer, outcome error) (Answer, error) {
	first, err := e.records.EndIdempotencyLease(ctx, c.ID, text)
	if err != nil {
		e.log.WarnContext(
			ctx, "storing the answer of a request with an Idempotency-Key failed", "messageId", c.MessageID,
			"error", err,
		)
		return answer, outcome
	}
	if first != text {
		return replay(first)
	}
	return answer, outcome
}

func (e *Executor) release(ctx context.Context, c Record) {
	_, err := e.records.EndIdempotencyLease(ctx, c.ID, "")
	if err != nil && !apperr.Is(err, apperr.NotFound) {
		e.log.WarnContext(ctx, "releasing the lease of an Idempotency-Key failed; a retry must wait for its expiry",
			"messageId", c.MessageID, "until", c.LeasedUntil, "error", err)
	}
}

func inUse(wait time.Duration) error {
	err := apperr.IdempotencyKeyInUse.New()
	err.RetryAfter = wait
	return err
}
