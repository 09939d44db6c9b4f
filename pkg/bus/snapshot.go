package bus

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
	// snapshotChunk is what one message of a snapshot holds: below any server's max_payload.
	snapshotChunk = 128 << 10
	// streamExists is JetStream's error for the restore of a stream whose name is taken.
	streamExists jetstream.ErrorCode = 10130
	// snapshotSilence is how long the server may take for the next chunk.
	snapshotSilence = 30 * time.Second
)

// Snapshot is what a restore needs to know of a stream beside its contents.
type Snapshot struct {
	Config json.RawMessage `json:"config"` // as the server reported it
	State  json.RawMessage `json:"state"`
}

type snapshotAnswer struct {
	Snapshot
	DeliverSubject string              `json:"deliver_subject"`
	Error          *jetstream.APIError `json:"error"`
}

// SaveStream writes a stream with its durable consumers to w, as of one moment, in JetStream's own format (API
// STREAM.SNAPSHOT). The stream stays in use. NotFound if the stream does not exist.
func (b *Bus) SaveStream(ctx context.Context, stream string, w io.Writer) (Snapshot, error) {
	inbox := b.conn.NewInbox()
	chunks, err := b.conn.SubscribeSync(inbox)
	if err != nil {
		return Snapshot{}, apperr.Unreachable("NATS", err)
	}
	defer func() { _ = chunks.Unsubscribe() }()
	answer, err := askSnapshot(ctx, b.conn, "$JS.API.STREAM.SNAPSHOT."+stream, map[string]any{"deliver_subject": inbox, "chunk_size": snapshotChunk, "jsck": true})
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
				return Snapshot{}, apperr.Unreachable("NATS", fmt.Errorf("the snapshot ended with %s %s", status, chunk.Header.Get("Description")))
			}
			return answer.Snapshot, nil
		}
		if _, err := w.Write(chunk.Data); err != nil {
			return Snapshot{}, fmt.Errorf("writing a snapshot: %w", err)
		}
		if chunk.Reply == "" {
			continue
		}
		if err := chunk.Respond(nil); err != nil { // the server waits when too many chunks are not answered
			return Snapshot{}, apperr.Unreachable("NATS", err)
		}
	}
}

func nextChunk(ctx context.Context, chunks *nats.Subscription) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, snapshotSilence)
	defer cancel()
	chunk, err := chunks.NextMsgWithContext(ctx)
	if err != nil {
		return nil, apperr.Unreachable("NATS", fmt.Errorf("waiting for a chunk: %w", err))
	}
	return chunk, nil
}

// RestoreStream makes a stream and its durable consumers from what [Bus.SaveStream] wrote. A stream of that name must not be there: that is a
// Conflict. Replicas, where not zero, takes the place of the number that the stream had.
func (b *Bus) RestoreStream(ctx context.Context, stream string, s Snapshot, replicas int, r io.Reader) error {
	if replicas != 0 {
		fields := make(configFields)
		if err := json.Unmarshal(s.Config, &fields); err != nil {
			return fmt.Errorf("reading the configuration of a snapshot: %w", err)
		}
		fields["num_replicas"] = json.RawMessage(fmt.Sprint(replicas))
		var err error
		if s.Config, err = json.Marshal(fields); err != nil {
			return err
		}
	}
	answer, err := askSnapshot(ctx, b.conn, "$JS.API.STREAM.RESTORE."+stream, s)
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
		if err := sendChunk(ctx, b.conn, answer.DeliverSubject, chunk[:n]); err != nil {
			return err
		}
	}
	return sendChunk(ctx, b.conn, answer.DeliverSubject, nil)
}

func sendChunk(ctx context.Context, conn *nats.Conn, to string, chunk []byte) error {
	ctx, cancel := context.WithTimeout(ctx, snapshotSilence)
	defer cancel()
	m, err := conn.RequestWithContext(ctx, to, chunk)
	if err != nil {
		return apperr.Unreachable("NATS", fmt.Errorf("sending a chunk: %w", err))
	}
	var answer snapshotAnswer
	if len(m.Data) > 0 {
		if err := json.Unmarshal(m.Data, &answer); err != nil {
			return fmt.Errorf("reading the answer to a chunk: %w", err)
		}
	}
	return snapshotError(answer.Error)
}

func askSnapshot(ctx context.Context, conn *nats.Conn, subject string, request any) (answer snapshotAnswer, err error) {
	text, err := json.Marshal(request)
	if err != nil {
		return answer, err
	}
	ctx, cancel := context.WithTimeout(ctx, snapshotSilence)
	defer cancel()
	m, err := conn.RequestWithContext(ctx, subject, text)
	if err != nil {
		return answer, apperr.Unreachable("NATS", err)
	}
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return answer, fmt.Errorf("reading the answer of NATS: %w", err)
	}
	return answer, snapshotError(answer.Error)
}

func snapshotError(e *jetstream.APIError) error {
	switch {
	case e == nil:
		return nil
	case e.ErrorCode == jetstream.JSErrCodeStreamNotFound:
		return apperr.StreamNotFound.WithMessage("There is no such stream").Wrap(e)
	case e.ErrorCode == streamExists:
		return apperr.New(apperr.Conflict, "STREAM_EXISTS", "The stream is there already").Wrap(e)
	}
	return apperr.New(apperr.Conflict, "SNAPSHOT_REFUSED", "NATS refuses: "+e.Description).Wrap(e)
}
