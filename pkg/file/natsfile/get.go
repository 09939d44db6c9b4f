package natsfile

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/file"
)

// Keys of an object's metadata that we set.
const (
	keyApp       = "parley-app-id"
	keyType      = "parley-content-type"
	keySequences = "parley-sequences"
)

// Open implements [file.Store].
func (s *Store) Open(ctx context.Context, id string) (file.File, file.Content, error) {
	if !file.ValidID(id) {
		return file.File{}, nil, file.NotFound()
	}
	stream, err := s.bucket(ctx)
	if err != nil {
		return file.File{}, nil, err
	}
	info, err := s.info(ctx, stream, id)
	if err != nil {
		return file.File{}, nil, err
	}
	sum, err := jetstream.DecodeObjectDigest(info.Digest)
	if err != nil {
		return file.File{}, nil, fmt.Errorf("reading the digest of a file: %w", err)
	}
	content := content{store: s, stream: stream, subject: chunkPrefix + info.NUID}
	if content.sequences, err = parseSequences(info.Metadata[keySequences]); err != nil {
		return file.File{}, nil, err
	}
	return file.File{
		ID: id, AppID: info.Metadata[keyApp], Name: info.Description, ContentType: info.Metadata[keyType],
		Size: int64(info.Size), Tag: base64.RawURLEncoding.EncodeToString(sum), StoredAt: info.ModTime,
	}, content, nil
}

func (s *Store) info(ctx context.Context, stream jetstream.Stream, id string) (jetstream.ObjectInfo, error) {
	var info jetstream.ObjectInfo
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	m, err := stream.GetLastMsgForSubject(ctx, metaSubject(id))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return info, file.NotFound()
	}
	if err != nil {
		return info, s.coded("looking for a file", err)
	}
	if err := json.Unmarshal(m.Data, &info); err != nil {
		return info, fmt.Errorf("reading the metadata of a file: %w", err)
	}
	if info.Deleted { // with the nats command
		return info, file.NotFound()
	}
	return info, nil
}

// content implements [file.Content].
type content struct {
	store     *Store
	stream    jetstream.Stream
	subject   string
	sequences []uint64
}

func (c content) From(ctx context.Context, offset int64) (io.ReadCloser, error) {
	return &reader{content: c, ctx: ctx, next: int(offset / chunkSize), skip: int(offset % chunkSize)}, nil
}

// reader holds the current chunk, and fetches the next one when needed.
type reader struct {
	content
	ctx   context.Context
	next  int    // index of the next chunk
	skip  int    // bytes of it to skip
	chunk []byte // the rest of the current one
}

func (r *reader) Read(p []byte) (int, error) {
	for len(r.chunk) == 0 {
		if r.next >= len(r.sequences) {
			return 0, io.EOF
		}
		if err := r.fetch(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.chunk)
	r.chunk = r.chunk[n:]
	return n, nil
}

func (r *reader) fetch() error {
	ctx, cancel := context.WithTimeout(r.ctx, requestTimeout)
	defer cancel()
	m, err := r.stream.GetMsg(ctx, r.sequences[r.next])
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return file.NotFound().Wrap(fmt.Errorf("chunk %d is missing", r.next))
	case err != nil:
		return r.store.coded("reading a file", err)
	case m.Subject != r.subject:
		return fmt.Errorf("reading a file: chunk %d is of %q", r.next, m.Subject)
	}
	r.chunk = m.Data[min(r.skip, len(m.Data)):]
	r.next, r.skip = r.next+1, 0
	return nil
}

func (r *reader) Close() error { return nil }
