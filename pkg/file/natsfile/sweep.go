package natsfile

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/file"
)

// listTimeout bounds the listing of all subjects of a bucket, which is paged.
const listTimeout = time.Minute

// Sweep implements [file.Store].
func (s *Store) Sweep(ctx context.Context, now time.Time) (file.Swept, error) {
	var swept file.Swept
	stream, err := s.bucket(ctx)
	if err != nil {
		return swept, err
	}
	files, chunks, err := s.list(ctx, stream)
	if err != nil {
		return swept, err
	}
	for id := range files {
		if !file.Expired(id, now) {
			continue
		}
		if err := s.Delete(ctx, id); err != nil {
			return swept, err
		}
		delete(chunks, id)
		swept.Expired++
	}
	for id := range chunks {
		if files[id] {
			continue
		}
		removed, err := s.sweepOrphan(ctx, stream, chunkPrefix+id, now)
		if err != nil {
			return swept, err
		}
		if removed {
			swept.Orphans++
		}
	}
	return swept, nil
}

// list returns the ids that have metadata and the ids that have chunks. Objects of other programs are ignored.
func (s *Store) list(ctx context.Context, stream jetstream.Stream) (files, chunks map[string]bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter("$O."+Bucket+".>"))
	if err != nil {
		return nil, nil, s.coded("listing the files", err)
	}
	files, chunks = map[string]bool{}, map[string]bool{}
	for subject := range info.State.Subjects {
		if id, ok := idOfMeta(subject); ok {
			files[id] = true
		} else if id, ok := strings.CutPrefix(subject, chunkPrefix); ok && file.ValidID(id) {
			chunks[id] = true
		}
	}
	return files, chunks, nil
}

// sweepOrphan removes chunks that no object refers to, unless their upload may still be in progress.
func (s *Store) sweepOrphan(ctx context.Context, stream jetstream.Stream, subject string, now time.Time) (bool, error) {
	bounded, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	last, err := stream.GetLastMsgForSubject(bounded, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, nil // another replica has removed it
	}
	if err != nil {
		return false, s.coded("looking for abandoned uploads", err)
	}
	if now.Sub(last.Time) < file.OrphanAge {
		return false, nil
	}
	return true, s.purge(ctx, stream, subject)
}
