package natsfile

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/file"
)

// cleanUpTimeout bounds the cleanup of a failed upload, which runs even if the sender has disconnected.
const cleanUpTimeout = 10 * time.Second

var buffers = sync.Pool{New: func() any { b := make([]byte, chunkSize); return &b }}

// Put implements [file.Store].
func (s *Store) Put(ctx context.Context, f file.File, content io.Reader) (_ file.File, err error) {
	stream, err := s.bucket(ctx)
	if err != nil {
		return file.File{}, err
	}
	u := &upload{store: s, subject: chunkPrefix + f.ID, digest: sha256.New()}
	defer func() {
		if err != nil {
			u.undo(ctx, stream, f.ID)
		}
	}()
	if err := u.send(ctx, content); err != nil {
		return file.File{}, err
	}
	f.Size, f.StoredAt = u.size, time.Now().UTC()
	return f, u.finish(ctx, f)
}

// upload is one file being stored in the bucket.
type upload struct {
	store     *Store
	subject   string
	digest    hash.Hash
	size      int64
	sequences sequences
	tried     bool // whether the stream may contain any of it
}

// send publishes the content chunk by chunk.
func (u *upload) send(ctx context.Context, content io.Reader) error {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	for {
		n, err := file.Fill(content, *buf)
		if err != nil && !file.Ended(err) { // only a plain EOF ends the content: a truncated reader returns another error
			return fmt.Errorf("storing a file: %w", err)
		}
		if n > 0 {
			if sendErr := u.sendChunk(ctx, (*buf)[:n]); sendErr != nil {
				return sendErr
			}
		}
		if file.Ended(err) {
			return nil
		}
	}
}

func (u *upload) sendChunk(ctx context.Context, chunk []byte) error {
	ack, err := u.publish(ctx, &nats.Msg{Subject: u.subject, Data: chunk})
	if err != nil {
		return err
	}
	u.digest.Write(chunk)
	u.size += int64(len(chunk))
	u.sequences.add(ack.Sequence)
	return nil
}

// finish publishes the metadata, which makes the file exist.
func (u *upload) finish(ctx context.Context, f file.File) error {
	meta, err := json.Marshal(jetstream.ObjectInfo{
		ObjectMeta: jetstream.ObjectMeta{
			Name: f.ID, Description: f.Name,
			Metadata: map[string]string{keyApp: f.AppID, keyType: f.ContentType, keySequences: u.sequences.String()},
			Opts:     &jetstream.ObjectMetaOptions{ChunkSize: chunkSize},
		},
		Bucket: Bucket, NUID: f.ID, Size: uint64(f.Size), ModTime: f.StoredAt, Chunks: uint32(u.sequences.count),
		Digest: "SHA-256=" + base64.URLEncoding.EncodeToString(u.digest.Sum(nil)),
	})
	if err != nil {
		return fmt.Errorf("encoding the metadata of a file: %w", err)
	}
	_, err = u.publish(ctx, &nats.Msg{
		Subject: metaSubject(f.ID), Data: meta, Header: nats.Header{jetstream.MsgRollup: {jetstream.MsgRollupSubject}},
	})
	if err != nil {
		return err
	}
	if err := u.store.js.Sync(ctx, bus.FilesStream); err != nil {
		return u.store.coded("storing a file", err)
	}
	return nil
}

func (u *upload) publish(ctx context.Context, m *nats.Msg) (*jetstream.PubAck, error) {
	var ack *jetstream.PubAck
	err := u.store.guard.Do(ctx, func(ctx context.Context) (err error) {
		u.tried = true
		bounded, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		before, _ := u.store.js.Connection()
		ack, err = u.store.js.PublishRaw(bounded, bus.FilesStream, m)
		if !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		// the acknowledgement may have been lost with the connection
		if now, up := u.store.js.Connection(); !up || now != before {
			return nats.ErrDisconnected
		}
		return nats.ErrTimeout
	})
	switch {
	case err == nil:
		return ack, nil
	case ctx.Err() != nil: // the sender's fault, not the store's
		return nil, fmt.Errorf("storing a file: %w", ctx.Err())
	}
	return nil, u.store.coded("storing a file", err)
}

// undo removes what has been published. If that fails too, a sweep removes it.
func (u *upload) undo(ctx context.Context, stream jetstream.Stream, id string) {
	if !u.tried {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
	defer cancel()
	for _, subject := range []string{metaSubject(id), u.subject} {
		_ = u.store.purge(ctx, stream, subject)
	}
}
