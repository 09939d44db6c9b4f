package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/apperr"
)

// StreamState is the state of a stream.
type StreamState struct {
	First, Last uint64 // sequences of its messages; First is Last+1 if it is empty
	Created     time.Time
	Replicas    int
}

// State asks the stream's leader. It returns NotFound where there is no such stream, Unavailable while NATS is not connected.
func (b *Bus) State(ctx context.Context, stream string) (StreamState, error) {
	if !b.conn.IsConnected() {
		return StreamState{}, apperr.Unreachable("NATS", nats.ErrDisconnected)
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	s, err := b.js.Stream(ctx, stream)
	if err != nil {
		return StreamState{}, readError(stream, err)
	}
	info := s.CachedInfo()
	state := StreamState{First: info.State.FirstSeq, Last: info.State.LastSeq, Created: info.Created, Replicas: info.Config.Replicas}
	if info.State.Msgs == 0 {
		state.First = state.Last + 1
	}
	return state, nil
}

// LastSequence asks the stream's leader for the sequence of the last message on a subject or filter in its stored form (see
// [Bus.Stored]); 0: no message. Unavailable while NATS is not connected.
func (b *Bus) LastSequence(ctx context.Context, stream, stored string) (uint64, error) {
	ask, err := json.Marshal(map[string]string{"last_by_subj": stored})
	if err != nil {
		return 0, err
	}
	m, err := b.conn.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET."+stream, ask)
	if err != nil {
		return 0, apperr.Unreachable("NATS", fmt.Errorf("asking for the last message of %s: %w", stream, err))
	}
	var answer struct {
		Message struct {
			Sequence uint64 `json:"seq"`
		} `json:"message"`
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return 0, apperr.Unreachable("NATS", fmt.Errorf("asking for the last message of %s: %w", stream, err))
	}
	if answer.Error != nil && answer.Error.ErrorCode != jetstream.JSErrCodeMessageNotFound {
		return 0, apperr.Unreachable("NATS", fmt.Errorf("asking for the last message of %s: %w", stream, answer.Error))
	}
	return answer.Message.Sequence, nil
}
