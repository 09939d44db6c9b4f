package sqlite

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/pkg/store"
)

const recordColumns = `id, fingerprint, message_id, at, leases, leased_until, expires_at, answer`

func readRecord(r *row) idempotency.Record {
	return idempotency.Record{
		ID: r.text(), Fingerprint: r.text(), MessageID: r.text(), At: r.time(),
		Leases: int(r.int()), LeasedUntil: r.time(), ExpiresAt: r.time(), Answer: r.text(),
	}
}

// insertedRecord is the result of InsertIdempotencyRecord.
type insertedRecord struct {
	stored idempotency.Record
	fresh  bool
}

// InsertIdempotencyRecord implements [idempotency.Records].
func (s *Store) InsertIdempotencyRecord(
	ctx context.Context, r idempotency.Record,
) (idempotency.Record, bool, error) {
	result, err := write(ctx, s, "inserting an idempotency record", func(c *conn) (insertedRecord, error) {
		fresh, err := writeRecord(c, orIgnore, r)
		if err != nil || fresh {
			return insertedRecord{stored: r, fresh: fresh}, err
		}
		stored, err := record(c, r.ID)
		return insertedRecord{stored: stored}, err
	})
	return result.stored, result.fresh, err
}

// ReplaceIdempotencyRecord implements [idempotency.Records].
func (s *Store) ReplaceIdempotencyRecord(ctx context.Context, r idempotency.Record) error {
	return update(ctx, s, "replacing an idempotency record", func(c *conn) error { return replaceRecord(c, r) })
}

func replaceRecord(c *conn, r idempotency.Record) error {
	_, err := writeRecord(c, orReplace, r)
	return err
}

func writeRecord(c *conn, verb string, r idempotency.Record) (written bool, err error) {
	return c.insert(verb, `idempotency_records`, recordColumns,
		r.ID, r.Fingerprint, r.MessageID, r.At, r.Leases, r.LeasedUntil, r.ExpiresAt, r.Answer)
}

func record(c *conn, id string) (r idempotency.Record, err error) {
	found, err := c.first(
		`SELECT `+recordColumns+` FROM idempotency_records WHERE id = ?`,
		func(row *row) { r = readRecord(row) },
		id,
	)
	if err == nil && !found {
		err = store.RecordNotFound()
	}
	return r, err
}

// LeaseIdempotencyRecord implements [idempotency.Records].
func (s *Store) LeaseIdempotencyRecord(ctx context.Context, id string, until time.Time) (idempotency.Record, error) {
	return write(ctx, s, "leasing an idempotency record", func(c *conn) (idempotency.Record, error) {
		before, err := record(c, id)
		if err != nil {
			return before, err
		}
		_, err = c.exec(
			`UPDATE idempotency_records SET leases = leases + 1, leased_until = max(ifnull(leased_until, ?2), ?2) WHERE id = ?1`,
			id,
			until,
		)
		return before, err
	})
}

// EndIdempotencyLease implements [idempotency.Records].
func (s *Store) EndIdempotencyLease(ctx context.Context, id, answer string) (string, error) {
	return write(ctx, s, "ending an idempotency lease", func(c *conn) (first string, err error) {
		changed, err := c.exec(
			`UPDATE idempotency_records SET answer = iif(answer = '', ?2, answer), leased_until = NULL WHERE id = ?1`,
			id,
			answer,
		)
		if err != nil {
			return "", err
		}
		if changed == 0 {
			return "", store.RecordNotFound()
		}
		_, err = c.first(`SELECT answer FROM idempotency_records WHERE id = ?`, func(r *row) { first = r.text() }, id)
		return first, err
	})
}
