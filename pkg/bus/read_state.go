package bus

// The state of a stream as its leader reports it.

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
	First, Last uint64    // sequences; First is Last+1 if the stream is empty
	LastTime    time.Time // when the stream stored Last
	Replicas    int
	// Epoch identifies the sequences of the stream: they are comparable within an epoch only. It is the creation time,
	// or the time of the last lost tail.
	Epoch time.Time
	Lost  LostTail // the last lost tail; the zero value: none
}

// State returns the state of a stream as reported by its leader. Errors: NotFound if the stream does not
// exist, Unavailable while NATS is disconnected.
func (b *Bus) State(ctx context.Context, stream string) (StreamState, error) {
	if !b.conn.IsConnected() {
		return StreamState{}, apperr.Unreachable("NATS", nats.ErrDisconnected)
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	info, lost, err := b.inspect(ctx, stream)
	if err != nil {
		return StreamState{}, readError(stream, err)
	}
	state := StreamState{
		First:    info.State.FirstSeq,
		Last:     info.State.LastSeq,
		LastTime: info.State.LastTime,
		Replicas: info.Config.Replicas,
		Epoch:    epochOf(info.Created, lost),
		Lost:     lost,
	}
	if info.State.Msgs == 0 {
		state.First = state.Last + 1
	}
	return state, nil
}

// LastSequence returns the sequence of the last message on a stored subject or filter (see [Bus.Stored]) from
// the stream's leader; 0: none. It returns Unavailable while NATS is disconnected.
func (b *Bus) LastSequence(ctx context.Context, stream, stored string) (uint64, error) {
	request, err := json.Marshal(map[string]string{"last_by_subj": stored})
	if err != nil {
		return 0, err
	}
	fail := func(err error) (uint64, error) {
		return 0, apperr.Unreachable("NATS", fmt.Errorf("requesting the last message of %s: %w", stream, err))
	}
	ctx, cancel := b.state.request(ctx, apiTimeout)
	defer cancel()
	m, err := b.conn.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET."+stream, request)
	if err != nil {
		return fail(err)
	}
	var response struct {
		Message struct {
			Sequence uint64 `json:"seq"`
		} `json:"message"`
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &response); err != nil {
		return fail(err)
	}
	if response.Error != nil && response.Error.ErrorCode != jetstream.JSErrCodeMessageNotFound {
		return fail(response.Error)
	}
	return response.Message.Sequence, nil
}
