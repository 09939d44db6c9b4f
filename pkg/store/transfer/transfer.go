// Package transfer copies a deployment from one store to another and compares the two.
//
// The records of each kind are copied in batches, ordered by key. The last key of each batch is saved to a progress
// file, so that an interrupted copy resumes after it. Copying is idempotent. No other process may write to either store
// during the copy.
package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/parley-chat/parley/pkg/store"
)

// batch is the number of records read and written at once. A message has at most 8 MiB, and usually a few hundred
// bytes.
const batch = 200

// settled is the minimum remaining lifetime of a compared record, because stores remove expired records during the
// comparison.
const settled = time.Hour

// Config configures a copy.
type Config struct {
	From, To store.Portable
	// Names of both stores. A progress file with other names is rejected.
	FromName, ToName string
	// path of the progress file; removed after a successful comparison
	Progress string
	Now      func() time.Time                    // nil: time.Now
	Copied   func(kind store.Kind, copied int64) // called after each batch; optional
}

// Summary describes the records of one kind, equal in both stores.
type Summary struct {
	Kind  store.Kind
	Count int64  // without records that are about to expire
	Hash  string // SHA-256 of all keys and values, in the order of the keys
}

// ErrNotEmpty is returned if the target has data that, according to the progress file, did not come from this source.
var ErrNotEmpty = errors.New("the target is not empty, and no earlier run has started to fill it")

// progress is the content of the progress file.
type progress struct {
	From  string                `json:"from"`
	To    string                `json:"to"`
	Kinds map[store.Kind]status `json:"kinds"`
}

type status struct {
	After  string `json:"after"` // the last copied key
	Copied int64  `json:"copied"`
	Done   bool   `json:"done"`
}

// Run copies all records, compares both stores, and returns a summary per kind. After an error, another call resumes
// the copy.
func Run(ctx context.Context, c Config) ([]Summary, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Copied == nil {
		c.Copied = func(store.Kind, int64) {}
	}
	p, err := c.begin(ctx)
	if err != nil {
		return nil, err
	}
	for _, kind := range store.Kinds() {
		if err := c.copyKind(ctx, kind, p); err != nil {
			return nil, fmt.Errorf("copying %s: %w", kind, err)
		}
	}
	summaries, err := c.compare(ctx)
	if err != nil {
		return nil, err
	}
	return summaries, os.Remove(c.Progress)
}

// begin loads the progress of an earlier run, or starts a new one with an empty target.
func (c Config) begin(ctx context.Context) (progress, error) {
	p := progress{From: c.FromName, To: c.ToName, Kinds: map[store.Kind]status{}}
	text, err := os.ReadFile(c.Progress)
	if errors.Is(err, fs.ErrNotExist) {
		if err := c.checkEmpty(ctx); err != nil {
			return p, err
		}
		return p, c.save(p)
	}
	if err != nil {
		return p, err
	}
	var earlier progress
	if err := json.Unmarshal(text, &earlier); err != nil {
		return p, fmt.Errorf("reading %s: %w", c.Progress, err)
	}
	if earlier.From != c.FromName || earlier.To != c.ToName {
		return p, fmt.Errorf("%s is the progress of another copy, from %s to %s", c.Progress, earlier.From, earlier.To)
	}
	if earlier.Kinds != nil {
		p.Kinds = earlier.Kinds
	}
	return p, nil
}

func (c Config) checkEmpty(ctx context.Context) error {
	for _, kind := range store.Kinds() {
		n, err := c.To.CountRecords(ctx, kind)
		if err != nil {
			return err
		}
		if n > 0 {
			return fmt.Errorf("%w: it has %d %s", ErrNotEmpty, n, kind)
		}
	}
	return nil
}

func (c Config) copyKind(ctx context.Context, kind store.Kind, p progress) error {
	for s := p.Kinds[kind]; !s.Done; {
		records, err := c.From.ReadRecords(ctx, kind, s.After, batch)
		if err != nil {
			return err
		}
		if len(records) > 0 {
			if err := c.To.WriteRecords(ctx, kind, records); err != nil {
				return err
			}
			s.After = records[len(records)-1].Key
			s.Copied += int64(len(records))
		}
		s.Done = len(records) < batch
		p.Kinds[kind] = s
		if err := c.save(p); err != nil {
			return err
		}
		c.Copied(kind, s.Copied)
	}
	return nil
}

// save replaces the progress file atomically.
func (c Config) save(p progress) error {
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	next, err := os.CreateTemp(filepath.Dir(c.Progress), filepath.Base(c.Progress)+".*")
	if err != nil {
		return err
	}
	_, err = next.Write(text)
	if err = errors.Join(err, next.Close()); err == nil {
		err = os.Rename(next.Name(), c.Progress)
	}
	if err != nil {
		_ = os.Remove(next.Name())
	}
	return err
}

// compare reads both stores and returns an error with the kind if they differ.
func (c Config) compare(ctx context.Context) ([]Summary, error) {
	until := c.Now().Add(settled)
	var summaries []Summary
	for _, kind := range store.Kinds() {
		from, err := summarise(ctx, c.From, kind, until)
		if err != nil {
			return nil, fmt.Errorf("comparing %s: %w", kind, err)
		}
		to, err := summarise(ctx, c.To, kind, until)
		if err != nil {
			return nil, fmt.Errorf("comparing %s: %w", kind, err)
		}
		if from != to {
			return nil, fmt.Errorf("%s differ: source has %d records with hash %s, target has %d with hash %s",
				kind, from.Count, from.Hash, to.Count, to.Hash)
		}
		summaries = append(summaries, from)
	}
	return summaries, nil
}

func summarise(ctx context.Context, s store.Portable, kind store.Kind, until time.Time) (Summary, error) {
	summary, sum := Summary{Kind: kind}, sha256.New()
	for after := ""; ; {
		records, err := s.ReadRecords(ctx, kind, after, batch)
		if err != nil {
			return summary, err
		}
		for _, r := range records {
			expires, err := expiresBefore(kind, r, until)
			if err != nil {
				return summary, err
			}
			if !expires {
				add(sum, r)
				summary.Count++
			}
		}
		if len(records) < batch {
			summary.Hash = hex.EncodeToString(sum.Sum(nil))
			return summary, nil
		}
		after = records[len(records)-1].Key
	}
}

// add writes a record with the lengths of its parts, so that different lists of records never collide.
func add(to hash.Hash, r store.Record) {
	_, _ = fmt.Fprintf(to, "%d %d ", len(r.Key), len(r.Value)) // hash.Hash never returns an error
	_, _ = io.WriteString(to, r.Key)
	_, _ = to.Write(r.Value)
}

// expiresBefore reports whether the record expires before the given time.
func expiresBefore(kind store.Kind, r store.Record, until time.Time) (bool, error) {
	if !slices.Contains([]store.Kind{"idempotency", "files", "webhookDeliveries"}, kind) { // stores sweep these
		return false, nil
	}
	var v struct {
		ExpiresAt time.Time `json:"expiresAt"`
	}
	if err := json.Unmarshal(r.Value, &v); err != nil {
		return false, err
	}
	return !v.ExpiresAt.IsZero() && v.ExpiresAt.Before(until), nil
}
