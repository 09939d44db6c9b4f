package bus

// Snapshots of streams in the format of JetStream, for `parleyctl streams backup` and `restore`.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/apperr"
)

const (
	// snapshotChunk is the chunk size of a snapshot, below any reasonable max_payload of a server.
	snapshotChunk = 128 << 10
	// streamExists is the error code for restoring a stream whose name is in use.
	streamExists jetstream.ErrorCode = 10130
	// snapshotTimeout limits the wait for the next chunk or response.
	snapshotTimeout = 30 * time.Second
)

// Snapshot is the metadata that a restore needs in addition to the contents.
type Snapshot struct {
	Config json.RawMessage `json:"config"` // as reported by the server
	State  json.RawMessage `json:"state"`
}

type snapshotResponse struct {
	Snapshot
	DeliverSubject string              `json:"deliver_subject"`
	Error          *jetstream.APIError `json:"error"`
}

// SaveStream writes a consistent snapshot of a stream and its durable consumers to w, in the format of
// JetStream (API STREAM.SNAPSHOT). The stream remains usable. nats-server 2.15 leaves damaged messages out without an
// error. It returns NotFound if the stream does not exist.
func (b *Bus) SaveStream(ctx context.Context, stream string, w io.Writer) (Snapshot, error) {
	inbox := b.conn.NewInbox()
	chunks, err := b.conn.SubscribeSync(inbox)
	if err != nil {
		return Snapshot{}, apperr.Unreachable("NATS", err)
	}
	defer func() { _ = chunks.Unsubscribe() }()
	// Without "jsck": a server before 2.15 would cut damaged files off at the damage. [Bus.Verify] only reads.
	request, err := json.Marshal(map[string]any{"deliver_subject": inbox, "chunk_size": snapshotChunk})
	if err != nil {
		return Snapshot{}, err
	}
	response, err := b.snapshotRequest(ctx, "$JS.API.STREAM.SNAPSHOT."+stream, request)
	if err != nil {
		return Snapshot{}, err
	}
	for {
		chunk, err := nextChunk(ctx, chunks)
		if err != nil {
			return Snapshot{}, err
		}
		if len(chunk.Data) == 0 {
			if status := chunk.Header.Get("Status"); status != "" && status != "204" {
				return Snapshot{}, apperr.Unreachable(
					"NATS",
					fmt.Errorf("snapshot failed: %s %s", status, chunk.Header.Get("Description")),
				)
			}
			return response.Snapshot, nil
		}
		if _, err := w.Write(chunk.Data); err != nil {
			return Snapshot{}, fmt.Errorf("writing a snapshot: %w", err)
		}
		if chunk.Reply == "" {
			continue
		}
		if err := chunk.Respond(nil); err != nil { // flow control: the server waits for outstanding responses
			return Snapshot{}, apperr.Unreachable("NATS", err)
		}
	}
}

func nextChunk(ctx context.Context, chunks *nats.Subscription) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, snapshotTimeout)
	defer cancel()
	chunk, err := chunks.NextMsgWithContext(ctx)
	if err != nil {
		return nil, apperr.Unreachable("NATS", fmt.Errorf("waiting for a chunk: %w", err))
	}
	return chunk, nil
}

// RestoreStream creates a stream and its durable consumers from a snapshot of [Bus.SaveStream]. It returns
// Conflict if the stream exists. A non-zero replicas overrides the number in the snapshot.
func (b *Bus) RestoreStream(ctx context.Context, stream string, s Snapshot, replicas int, r io.Reader) error {
	if replicas != 0 {
		fields := make(configFields)
		if err := json.Unmarshal(s.Config, &fields); err != nil {
			return fmt.Errorf("reading the configuration of a snapshot: %w", err)
		}
		fields["num_replicas"] = json.RawMessage(fmt.Sprint(replicas))
		var err error
		s.Config, err = json.Marshal(fields)
		if err != nil {
			return err
		}
	}
	request, err := json.Marshal(s)
	if err != nil {
		return err
	}
	response, err := b.snapshotRequest(ctx, "$JS.API.STREAM.RESTORE."+stream, request)
	if err != nil {
		return err
	}
	for chunk := make([]byte, snapshotChunk); ; {
		n, err := io.ReadFull(r, chunk)
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			return fmt.Errorf("reading a snapshot: %w", err)
		}
		if n == 0 {
			break
		}
		if _, err := b.snapshotRequest(ctx, response.DeliverSubject, chunk[:n]); err != nil {
			return err
		}
	}
	_, err = b.snapshotRequest(ctx, response.DeliverSubject, nil)
	return err
}

// snapshotRequest sends a request of the snapshot API, or a chunk, and returns the response.
func (b *Bus) snapshotRequest(ctx context.Context, to string, payload []byte) (response snapshotResponse, err error) {
	ctx, cancel := context.WithTimeout(ctx, snapshotTimeout)
	defer cancel()
	m, err := b.conn.RequestWithContext(ctx, to, payload)
	if err != nil {
		return response, apperr.Unreachable("NATS", fmt.Errorf("requesting %s: %w", to, err))
	}
	if len(m.Data) == 0 { // a chunk was received
		return response, nil
	}
	if err := json.Unmarshal(m.Data, &response); err != nil {
		return response, fmt.Errorf("decoding the response of NATS: %w", err)
	}
	return response, snapshotError(response.Error)
}

func snapshotError(e *jetstream.APIError) error {
	switch {
	case e == nil:
		return nil
	case e.ErrorCode == jetstream.JSErrCodeStreamNotFound:
		return apperr.StreamNotFound.WithMessage("Stream not found").Wrap(e)
	case e.ErrorCode == streamExists:
		return apperr.New(apperr.Conflict, "STREAM_EXISTS", "The stream already exists").Wrap(e)
	}
	return apperr.New(apperr.Conflict, "SNAPSHOT_REFUSED", "NATS rejected the snapshot: "+e.Description).Wrap(e)
}
