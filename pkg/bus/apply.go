package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/proto-events/subject"
)

// StreamChange is what distinguishes a stream on the server from its declaration.
type StreamChange struct {
	Stream  string      `json:"stream"`
	Missing bool        `json:"missing,omitempty"`
	Drift   []FieldDiff `json:"drift,omitempty"`
}

// None reports whether the stream is as declared.
func (c StreamChange) None() bool { return !c.Missing && len(c.Drift) == 0 }

// FieldDiff is one field of a stream's configuration, by its name in JetStream's API. Have and Want are JSON; empty: not set.
type FieldDiff struct {
	Field string          `json:"field"`
	Have  json.RawMessage `json:"have,omitempty"`
	Want  json.RawMessage `json:"want,omitempty"`
}

// CompareStreams returns the difference of every declared stream, in the order of the declaration. It compares each field that the
// server reports, also those that this client library does not know.
func (b *Bus) CompareStreams(ctx context.Context, s StreamSettings) ([]StreamChange, error) {
	var changes []StreamChange
	for _, want := range s.Streams() {
		change, err := compare(ctx, b.js, &want)
		if err != nil {
			return changes, fmt.Errorf("looking at stream %s: %w", want.Name, err)
		}
		changes = append(changes, change)
	}
	return changes, nil
}

// ApplyStreams creates the declared streams that are missing, updates those that differ, and returns what it found. A stream that is as
// declared is not written to. Other streams of the account are left alone. It stops at the first stream that the server refuses.
func (b *Bus) ApplyStreams(ctx context.Context, s StreamSettings) ([]StreamChange, error) {
	var changes []StreamChange
	for _, want := range s.Streams() {
		change, err := apply(ctx, b.js, want)
		if err != nil {
			return changes, fmt.Errorf("applying stream %s: %w", want.Name, err)
		}
		changes = append(changes, change)
	}
	return changes, nil
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
		err = fmt.Errorf("the server keeps %s", left.Drift[0].Field)
	}
	return change, err
}

// refused distinguishes a server that rejects a configuration from one that does not answer.
func refused(err error) error {
	if apiErr, ok := errors.AsType[*jetstream.APIError](err); ok {
		return apperr.New(apperr.Conflict, "STREAM_REFUSED", "NATS refuses: "+apiErr.Description).Wrap(err)
	}
	return apperr.Unreachable("NATS", err)
}

// compare gives want the partitions of the stream that exists, which are fixed.
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
	if err := keepPartitions(want, have); err != nil {
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

// keepPartitions gives want the partitions of the stream that exists: its messages are stored under them. Any other transform is
// drift.
func keepPartitions(want *jetstream.StreamConfig, have configFields) error {
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
	if source, destination := subject.Transform(">", subject.Partitions(stored.Destination)); stored.Source == source && stored.Destination == destination {
		want.SubjectTransform = &stored
	}
	return nil
}

// configFields is a stream's configuration as JetStream's API has it.
type configFields map[string]json.RawMessage

// storedConfig reads a stream's configuration with all its fields.
func storedConfig(ctx context.Context, js jetstream.JetStream, stream string) (configFields, error) {
	m, err := js.Conn().RequestWithContext(ctx, "$JS.API.STREAM.INFO."+stream, nil)
	if err != nil {
		return nil, apperr.Unreachable("NATS", err)
	}
	var answer struct {
		Config configFields        `json:"config"`
		Error  *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	switch {
	case answer.Error == nil:
		return answer.Config, nil
	case answer.Error.ErrorCode == jetstream.JSErrCodeStreamNotFound:
		return nil, jetstream.ErrStreamNotFound
	}
	return nil, apperr.Unreachable("NATS", answer.Error)
}

// diff lists the fields in which two configurations differ, by name.
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

// fieldValue makes values comparable: a field that is not set is nil, however the server or the client encodes it.
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
		if field == "metadata" { // what the server notes about itself
			maps.DeleteFunc(v, func(key string, _ any) bool { return strings.HasPrefix(key, "_nats.") })
		}
		if len(v) == 0 {
			return nil
		}
	}
	return value
}
