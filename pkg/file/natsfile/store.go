package natsfile

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/file"
)

const (
	// Bucket is the object store's name.
	Bucket = "FILES"

	chunkPrefix = "$O." + Bucket + ".C."
	metaPrefix  = "$O." + Bucket + ".M."

	chunkSize = 128 << 10 // the format's default; below every max_payload in use

	// requestTimeout bounds each exchange with the server, independent of the upload's duration.
	requestTimeout = 10 * time.Second
)

// JetStream is the subset of the bus that the store needs; see [bus.Bus].
type JetStream interface {
	Stream(ctx context.Context, name string) (jetstream.Stream, error)
	PublishRaw(ctx context.Context, stream string, m *nats.Msg) (*jetstream.PubAck, error)
	Sync(ctx context.Context, stream string) error
	Connection() (number uint64, up bool)
}

// Store is a [file.Store] in JetStream. The bucket is one of the declared streams ([bus.Bus.ApplyStreams]);
// the store does not create it.
type Store struct {
	js    JetStream
	guard *bus.WriteGuard

	mu     sync.Mutex
	stream jetstream.Stream // nil: not looked up yet
}

var _ file.Store = (*Store)(nil)

// New returns a store.
func New(js JetStream) *Store {
	return &Store{js: js, guard: bus.NewWriteGuard(bus.FilesStream)}
}

// bucket returns the bucket's stream.
func (s *Store) bucket(ctx context.Context) (jetstream.Stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stream != nil {
		return s.stream, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	stream, err := s.js.Stream(ctx, bus.FilesStream)
	if err != nil {
		return nil, coded("looking for the bucket", err)
	}
	s.stream = stream
	return stream, nil
}

// coded maps a JetStream error to its code. If the bucket was deleted, the next operation looks it up again.
func (s *Store) coded(act string, err error) error {
	if errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, jetstream.ErrStreamNotFound) {
		s.mu.Lock()
		s.stream = nil
		s.mu.Unlock()
	}
	return coded(act, err)
}

func coded(act string, err error) error {
	err = &actError{act, err}
	if bus.IsFull(err) {
		return file.Full(err)
	}
	unavailable := apperr.Unreachable("file store", err)
	bus.NotWritable(err, unavailable)
	return unavailable
}

// actError adds the failed operation to an error.
type actError struct {
	act string
	err error
}

func (e *actError) Error() string { return e.act + ": " + e.err.Error() }
func (e *actError) Unwrap() error { return e.err }

// Space implements [file.Store].
func (s *Store) Space(ctx context.Context) (file.Space, error) {
	stream, err := s.bucket(ctx)
	if err != nil {
		return file.Space{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	info, err := stream.Info(ctx)
	if err != nil {
		return file.Space{}, s.coded("looking for space", err)
	}
	if info.Config.MaxBytes <= 0 {
		return file.Space{}, nil
	}
	return file.Space{Capacity: info.Config.MaxBytes, Used: int64(info.State.Bytes)}, nil
}

// Delete implements [file.Store].
func (s *Store) Delete(ctx context.Context, id string) error {
	if !file.ValidID(id) {
		return nil
	}
	stream, err := s.bucket(ctx)
	if err != nil {
		return err
	}
	for _, subject := range []string{metaSubject(id), chunkPrefix + id} {
		if err := s.purge(ctx, stream, subject); err != nil {
			return err
		}
	}
	return nil
}

// purge removes the messages of a subject, and with them their bytes.
func (s *Store) purge(ctx context.Context, stream jetstream.Stream, subject string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := stream.Purge(ctx, jetstream.WithPurgeSubject(subject)); err != nil {
		return s.coded("removing a file", err)
	}
	return nil
}

func metaSubject(id string) string {
	return metaPrefix + base64.URLEncoding.EncodeToString([]byte(id))
}

// idOfMeta is the inverse of metaSubject; it reports false for an object of another program.
func idOfMeta(subject string) (string, bool) {
	name, ok := strings.CutPrefix(subject, metaPrefix)
	if !ok {
		return "", false
	}
	id, err := base64.URLEncoding.DecodeString(name)
	return string(id), err == nil && file.ValidID(string(id))
}
