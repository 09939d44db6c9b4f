package bus

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

// Position is the offset of a group in a partition, as stored in POSITIONS.
type Position struct {
	Sequence uint64    `json:"sequence"` // everything up to this sequence has been handled
	Stream   time.Time `json:"stream"`   // creation time of the stream; the position is void if the stream was recreated
}

func (b *Bus) writePosition(ctx context.Context, stream, group string, partition int, p Position) error {
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	err = b.publishMsg(
		ctx,
		&nats.Msg{Subject: subject.Position(stream, group, partition), Data: data, Header: nats.Header{}},
	)
	if err != nil {
		return apperr.Unreachable("NATS", fmt.Errorf("saving a position of %s: %w", group, err))
	}
	return nil
}

// position returns the saved position of a partition, or NotFound if the group has never read it.
func (b *Bus) position(ctx context.Context, stream, group string, partition int) (p Position, err error) {
	d, err := b.Last(ctx, subject.Positions, subject.Position(stream, group, partition))
	if err == nil {
		err = json.Unmarshal(d.Data, &p)
	}
	return p, err
}

// Positions returns the saved sequences of a group with positions, by partition. It omits partitions that
// have never been read and positions of an earlier stream of that name, with a creation time other than
// created. It returns Unavailable while NATS is disconnected. The response may come from a replica that lacks
// the newest messages.
func (b *Bus) Positions(ctx context.Context, stream, group string, created time.Time) (map[int]uint64, error) {
	all, err := b.allPositions(ctx, stream, group)
	if err != nil {
		return nil, err
	}
	found := make(map[int]uint64, len(all[group]))
	for partition, p := range all[group] {
		if p.Stream.Equal(created) {
			found[partition] = p.Sequence
		}
	}
	return found, nil
}

// allPositions returns the positions of a group on a stream, or of all groups if group is "*", by group and partition.
func (b *Bus) allPositions(ctx context.Context, stream, group string) (map[string]map[int]Position, error) {
	found := make(map[string]map[int]Position)
	last, err := b.Lasts(ctx, subject.Positions, []string{subject.AllPositions(stream, group)})
	if err != nil {
		return nil, err
	}
	for subj, d := range last {
		tokens := strings.Split(subj, ".")
		var p Position
		partition, err := strconv.Atoi(tokens[len(tokens)-1])
		if err != nil || len(tokens) < 2 || json.Unmarshal(d.Data, &p) != nil {
			continue // malformed
		}
		name := tokens[len(tokens)-2]
		if found[name] == nil {
			found[name] = make(map[int]Position)
		}
		found[name][partition] = p
	}
	return found, nil
}

// countAfter returns the number of messages after sequence whose stored subjects match filter.
func (b *Bus) countAfter(ctx context.Context, stream, filter string, sequence uint64) (uint64, error) {
	request, err := json.Marshal(directGet{Seq: sequence + 1, NextBySubj: filter, Batch: 1})
	if err != nil {
		return 0, err
	}
	m, err := b.conn.RequestWithContext(ctx, "$JS.API.DIRECT.GET."+stream, request)
	if err != nil {
		return 0, apperr.Unreachable("NATS", fmt.Errorf("counting in %s: %w", stream, err))
	}
	switch m.Header.Get("Status") {
	case "":
	case "404":
		return 0, nil
	default:
		return 0, apperr.Unreachable("NATS", fmt.Errorf("counting in %s: %s", stream, m.Header.Get("Description")))
	}
	following, err := strconv.ParseUint(m.Header.Get("Nats-Num-Pending"), 10, 64)
	if err != nil {
		return 0, apperr.Unreachable("NATS", fmt.Errorf("counting in %s: %w", stream, err))
	}
	return following + 1, nil
}
