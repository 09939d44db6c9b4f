package bus

// The saved offsets of groups that do not acknowledge (consume_offsets.go), in the stream POSITIONS.

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/proto-events/subject"
)

// Offset is the offset of a group in a partition, as stored in POSITIONS.
type Offset struct {
	Sequence uint64    `json:"sequence"` // everything up to this sequence has been handled
	Stream   time.Time `json:"stream"`   // epoch of the stream; the offset is void in another one
}

func (b *Bus) writeOffset(ctx context.Context, stream, group string, partition int, o Offset) error {
	data, err := json.Marshal(o)
	if err != nil {
		return err
	}
	err = b.publishMsg(
		ctx,
		&nats.Msg{Subject: subject.Position(stream, group, partition), Data: data, Header: nats.Header{}},
	)
	if err != nil {
		return apperr.Unreachable("NATS", fmt.Errorf("saving an offset of %s: %w", group, err))
	}
	return nil
}

// offset returns the saved offset of a partition, or NotFound if the group has never read it.
func (b *Bus) offset(ctx context.Context, stream, group string, partition int) (o Offset, err error) {
	d, err := b.Last(ctx, subject.Positions, subject.Position(stream, group, partition))
	if err == nil {
		err = json.Unmarshal(d.Data, &o)
	}
	return o, err
}

// Offsets returns the saved sequences of a group with offsets, by partition. It omits partitions that have never been
// read and offsets of another epoch of the stream. It returns Unavailable while NATS is disconnected. The response
// may come from a replica that lacks the newest messages.
func (b *Bus) Offsets(ctx context.Context, stream, group string, epoch time.Time) (map[int]uint64, error) {
	all, err := b.allOffsets(ctx, stream, group)
	if err != nil {
		return nil, err
	}
	found := make(map[int]uint64, len(all[group]))
	for partition, o := range all[group] {
		if o.Stream.Equal(epoch) {
			found[partition] = o.Sequence
		}
	}
	return found, nil
}

// allOffsets returns the offsets of a group on a stream, or of all groups if group is "*", by group and partition.
func (b *Bus) allOffsets(ctx context.Context, stream, group string) (map[string]map[int]Offset, error) {
	found := make(map[string]map[int]Offset)
	last, err := b.Lasts(ctx, subject.Positions, []string{subject.AllPositions(stream, group)})
	if err != nil {
		return nil, err
	}
	for subj, d := range last {
		tokens := strings.Split(subj, ".")
		var o Offset
		partition, err := strconv.Atoi(tokens[len(tokens)-1])
		if err != nil || len(tokens) < 2 || json.Unmarshal(d.Data, &o) != nil {
			continue // malformed
		}
		name := tokens[len(tokens)-2]
		if found[name] == nil {
			found[name] = make(map[int]Offset)
		}
		found[name][partition] = o
	}
	return found, nil
}

// countAfter returns the number of messages after sequence whose stored subjects match filter.
func (b *Bus) countAfter(ctx context.Context, stream, filter string, sequence uint64) (uint64, error) {
	request, err := json.Marshal(directGet{Seq: sequence + 1, NextBySubj: filter, Batch: 1})
	if err != nil {
		return 0, err
	}
	m, err := b.getDirect(ctx, stream, request)
	if apperr.Is(err, apperr.NotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	following, err := strconv.ParseUint(m.Header.Get("Nats-Num-Pending"), 10, 64)
	if err != nil {
		return 0, apperr.Unreachable("NATS", fmt.Errorf("counting in %s: %w", stream, err))
	}
	return following + 1, nil
}
