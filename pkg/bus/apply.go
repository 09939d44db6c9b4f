package bus

// Streams on the server compared with their declarations (streams.go), and made to match: `parleyctl streams`
// calls it.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/proto-events/subject"
)

const (
	// applyTry bounds an attempt to compare or apply one stream: a cluster that has no leader yet drops the request.
	applyTry = 5 * time.Second
	// applyLimit bounds the attempts. nats-server elects a leader 4 to 9 seconds after the start of a cluster, and one
	// for each stream.
	applyLimit = 30 * time.Second
	applyPause = 100 * time.Millisecond

	// codeNoPeers: too few servers are known for the replicas of a stream, as shortly after the start of a cluster.
	codeNoPeers jetstream.ErrorCode = 10005
)

// StreamChange is the difference between a stream on the server and its declaration.
type StreamChange struct {
	Stream  string      `json:"stream"`
	Missing bool        `json:"missing,omitempty"`
	Drift   []FieldDiff `json:"drift,omitempty"`
}

// None reports whether the stream matches its declaration.
func (c StreamChange) None() bool { return !c.Missing && len(c.Drift) == 0 }

// FieldDiff is a field of a stream's configuration that differs, named as in the JetStream API. Have and Want
// are JSON; empty: not set.
type FieldDiff struct {
	Field string          `json:"field"`
	Have  json.RawMessage `json:"have,omitempty"`
	Want  json.RawMessage `json:"want,omitempty"`
}

// CompareStreams compares every declared stream with the server, in the order of declaration. It covers all
// fields that the server reports, including those unknown to this client library. Like [Bus.ApplyStreams] it waits for
// a cluster.
func (b *Bus) CompareStreams(ctx context.Context, s StreamSettings) ([]StreamChange, error) {
	var changes []StreamChange
	for _, want := range s.Streams() {
		var change StreamChange
		err := untilAnswered(ctx, func(ctx context.Context) (err error) {
			change, err = compare(ctx, b.js, &want)
			return err
		})
		if err != nil {
			return changes, fmt.Errorf("comparing stream %s: %w", want.Name, err)
		}
		changes = append(changes, change)
	}
	return changes, nil
}

// ApplyStreams creates missing declared streams, updates those that differ, and returns the differences that
// it found. It does not write streams that match, nor touch other streams of the account. It stops at the
// first stream that the server rejects. It waits, for up to 30 seconds a stream, while a cluster elects its leaders.
func (b *Bus) ApplyStreams(ctx context.Context, s StreamSettings) ([]StreamChange, error) {
	var changes []StreamChange
	for _, want := range s.Streams() {
		change := StreamChange{Stream: want.Name}
		err := untilAnswered(ctx, func(ctx context.Context) error {
			found, err := apply(ctx, b.js, want)
			if change.None() { // otherwise an earlier attempt made a change, but got no answer
				change = found
			}
			return err
		})
		if err != nil {
			return changes, fmt.Errorf("applying stream %s: %w", want.Name, err)
		}
		changes = append(changes, change)
	}
	return changes, nil
}

// untilAnswered repeats a request while the servers do not answer it.
func untilAnswered(ctx context.Context, request func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, applyLimit)
	defer cancel()
	for {
		try, end := context.WithTimeout(ctx, applyTry)
		err := request(try)
		end()
		if !apperr.Is(err, apperr.Unavailable) || sleep(ctx, applyPause) != nil {
			return err
		}
	}
}

func apply(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig) (StreamChange, error) {
	change, err := compare(ctx, js, &want)
	switch {
	case err != nil || change.None():
		return change, err
	case change.Missing:
		_, err = js.CreateStream(ctx, want)
	default:
		_, err = js.UpdateStream(ctx, want)
	}
	if err != nil {
		return change, refused(err)
	}
	left, err := compare(ctx, js, &want)
	if err == nil && !left.None() {
		err = fmt.Errorf("the server did not change %s", left.Drift[0].Field)
	}
	return change, err
}

// refused distinguishes a server that rejects a configuration from one that does not respond, or not yet.
func refused(err error) error {
	if apiErr, ok := errors.AsType[*jetstream.APIError](err); ok && apiErr.ErrorCode != codeNoPeers {
		return apperr.New(apperr.Conflict, "STREAM_REFUSED", "NATS rejected the stream: "+apiErr.Description).Wrap(err)
	}
	return apperr.Unreachable("NATS", err)
}

// compare returns the difference between want and the server. It sets the partitions of want to those of the
// existing stream, which are fixed.
func compare(ctx context.Context, js jetstream.JetStream, want *jetstream.StreamConfig) (StreamChange, error) {
	change := StreamChange{Stream: want.Name}
	have, err := storedConfig(ctx, js, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		change.Missing = true
		return change, nil
	}
	if err != nil {
		return change, err
	}
	if err := adoptPartitions(want, have); err != nil {
		return change, err
	}
	text, err := json.Marshal(want)
	if err != nil {
		return change, err
	}
	wanted := make(configFields)
	if err := json.Unmarshal(text, &wanted); err != nil {
		return change, err
	}
	change.Drift = diff(have, wanted)
	return change, nil
}

// adoptPartitions replaces the subject transform of want by the stored one if both only partition: stored
// messages carry their partition. Any other transform is drift.
func adoptPartitions(want *jetstream.StreamConfig, have configFields) error {
	if want.SubjectTransform == nil {
		return nil
	}
	text, transformed := have["subject_transform"]
	if !transformed {
		want.SubjectTransform = nil
		return nil
	}
	var stored jetstream.SubjectTransformConfig
	if err := json.Unmarshal(text, &stored); err != nil {
		return fmt.Errorf("reading the subject transform: %w", err)
	}
	source, destination := subject.Transform(">", subject.Partitions(stored.Destination))
	if stored.Source == source && stored.Destination == destination {
		want.SubjectTransform = &stored
	}
	return nil
}

// configFields is a stream's configuration as JSON fields of the JetStream API.
type configFields map[string]json.RawMessage

// storedConfig returns all fields of a stream's configuration on the server.
func storedConfig(ctx context.Context, js jetstream.JetStream, stream string) (configFields, error) {
	m, err := js.Conn().RequestWithContext(ctx, "$JS.API.STREAM.INFO."+stream, nil)
	if err != nil {
		return nil, apperr.Unreachable("NATS", err)
	}
	var response struct {
		Config configFields        `json:"config"`
		Error  *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &response); err != nil {
		return nil, fmt.Errorf("decoding the response: %w", err)
	}
	switch {
	case response.Error == nil:
		return response.Config, nil
	case response.Error.ErrorCode == jetstream.JSErrCodeStreamNotFound:
		return nil, jetstream.ErrStreamNotFound
	}
	return nil, apperr.Unreachable("NATS", response.Error)
}

// diff returns the fields that differ, sorted by name.
func diff(have, want configFields) []FieldDiff {
	all := maps.Clone(have)
	maps.Copy(all, want)
	var found []FieldDiff
	for _, field := range slices.Sorted(maps.Keys(all)) {
		if !reflect.DeepEqual(fieldValue(field, have[field]), fieldValue(field, want[field])) {
			found = append(found, FieldDiff{Field: field, Have: have[field], Want: want[field]})
		}
	}
	return found
}

// fieldValue normalises a value for comparison: an unset field is nil, whichever way the server or the client
// encodes it.
func fieldValue(field string, text json.RawMessage) any {
	if len(text) == 0 {
		return nil
	}
	var value any
	if json.Unmarshal(text, &value) != nil {
		return string(text)
	}
	switch v := value.(type) {
	case bool:
		if !v {
			return nil
		}
	case float64:
		if v == 0 || v == -1 { // no limit
			return nil
		}
	case string:
		if v == "" || field == "compression" && v == "none" {
			return nil
		}
	case []any:
		if len(v) == 0 {
			return nil
		}
	case map[string]any:
		if field == "metadata" { // the server's own entries
			maps.DeleteFunc(v, func(key string, _ any) bool { return strings.HasPrefix(key, "_nats.") })
		}
		if len(v) == 0 {
			return nil
		}
	}
	return value
}
