package bus

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/proto-events/subject"
)

// GroupInfo is the progress of a consumer in each of its partitions. A durable consumer that Parley did not create is a group by itself.
type GroupInfo struct {
	Stream     string
	Name       string
	Filters    []string        // subjects on which was published; empty: all
	Partitions []PartitionInfo // by number
	count      int             // partitions of the stream
	whole      bool            // one consumer reads all of them
}

// PartitionInfo is the progress of a consumer in one partition.
type PartitionInfo struct {
	Partition   int
	Pending     uint64 // not delivered yet
	AckPending  int    // delivered and not acknowledged
	Redelivered int
	Delivered   uint64    // the last sequence of the stream that was
	AckFloor    uint64    // up to this sequence of the stream all of the partition are acknowledged, or handled in a group with positions
	Active      time.Time // the last delivery; zero: none
	Read        bool      // a replica reads it
}

// Missing lists the partitions of the stream without a consumer of the group: their events are not read.
func (g GroupInfo) Missing() (partitions []int) {
	if g.whole {
		return nil
	}
	for number := range g.count {
		if !slices.ContainsFunc(g.Partitions, func(p PartitionInfo) bool { return p.Partition == number }) {
			partitions = append(partitions, number)
		}
	}
	return partitions
}

// Groups returns the consumers of a stream that stay, by name: durable ones, and groups that keep positions.
func (b *Bus) Groups(ctx context.Context, stream string) ([]GroupInfo, error) {
	byName, readers, err := b.durableGroups(ctx, stream)
	if err != nil {
		return nil, err
	}
	if err := b.addPositionGroups(ctx, stream, readers, byName); err != nil {
		return nil, err
	}
	groups := make([]GroupInfo, 0, len(byName))
	for _, g := range byName {
		slices.SortFunc(g.Partitions, func(a, b PartitionInfo) int { return cmp.Compare(a.Partition, b.Partition) })
		groups = append(groups, *g)
	}
	slices.SortFunc(groups, func(a, b GroupInfo) int { return cmp.Compare(a.Name, b.Name) })
	return groups, nil
}

// durableGroups returns the groups of durable consumers by name, and the consumers of the moment that belong to other groups.
func (b *Bus) durableGroups(ctx context.Context, stream string) (
	byName map[string]*GroupInfo, readers map[string][]*jetstream.ConsumerInfo, err error,
) {
	s, err := b.js.Stream(ctx, stream)
	if err != nil {
		return nil, nil, readError(stream, err)
	}
	count := b.partitions.note(stream, s.CachedInfo().Config)
	byName, readers = make(map[string]*GroupInfo), make(map[string][]*jetstream.ConsumerInfo)
	list := s.ListConsumers(ctx)
	for info := range list.Info() {
		if info.Config.Durable == "" {
			group := info.Config.Metadata[metadataGroup]
			readers[group] = append(readers[group], info)
			continue
		}
		name := cmp.Or(info.Config.Metadata[metadataGroup], info.Name)
		g := byName[name]
		if g == nil {
			g = &GroupInfo{
				Stream: stream, Name: name, Filters: publishedFilters(info.Config),
				count: count, whole: info.Config.Metadata[metadataPartition] == "",
			}
			byName[name] = g
		}
		g.Partitions = append(g.Partitions, newPartitionInfo(info))
	}
	if err := list.Err(); err != nil {
		return nil, nil, readError(stream, err)
	}
	return byName, readers, nil
}

// addPositionGroups adds the groups of a stream that keep positions. What is not handled counts as not delivered.
func (b *Bus) addPositionGroups(
	ctx context.Context, stream string, readers map[string][]*jetstream.ConsumerInfo, byName map[string]*GroupInfo,
) error {
	count, err := b.Partitions(ctx, stream)
	if err != nil {
		return err
	}
	all, err := b.allPositions(ctx, stream, "*")
	if apperr.Is(err, apperr.NotFound) {
		return nil // the stream POSITIONS is not there yet
	}
	if err != nil {
		return err
	}
	state, err := b.State(ctx, stream)
	if err != nil {
		return err
	}
	for name, positions := range all {
		g := &GroupInfo{Stream: stream, Name: name, Filters: []string{}, count: count, whole: count == 1}
		for partition, at := range positions {
			p := PartitionInfo{Partition: partition}
			if at.Stream.Equal(state.Created) {
				p.AckFloor = at.Sequence
			}
			filter := ">"
			if count > 1 {
				filter = subject.InPartition(filter, partition)
			}
			if p.Pending, err = b.countAfter(ctx, stream, filter, p.AckFloor); err != nil {
				return err
			}
			p.Delivered = p.AckFloor
			p.seen(readers[name])
			g.Partitions = append(g.Partitions, p)
		}
		byName[name] = g
	}
	return nil
}

// seen notes who reads a partition of a group that keeps positions.
func (p *PartitionInfo) seen(readers []*jetstream.ConsumerInfo) {
	for _, info := range readers {
		if !slices.Contains(strings.Split(info.Config.Metadata[metadataPartition], ","), strconv.Itoa(p.Partition)) {
			continue
		}
		if at := info.Delivered.Last; at != nil && at.After(p.Active) {
			p.Active = *at
		}
		p.Read = p.Read || info.NumWaiting > 0 || time.Since(p.Active) < time.Second // in a dense stream no request waits
	}
}

// Group returns one consumer of a stream, or NotFound.
func (b *Bus) Group(ctx context.Context, stream, name string) (GroupInfo, error) {
	byName, readers, err := b.durableGroups(ctx, stream)
	if err == nil && byName[name] == nil { // only who reads by positions need be allowed to see them
		err = b.addPositionGroups(ctx, stream, readers, byName)
	}
	if err != nil {
		return GroupInfo{}, err
	}
	if g := byName[name]; g != nil {
		slices.SortFunc(g.Partitions, func(a, b PartitionInfo) int { return cmp.Compare(a.Partition, b.Partition) })
		return *g, nil
	}
	return GroupInfo{}, apperr.New(apperr.NotFound, "CONSUMER_NOT_FOUND", "There is no consumer "+name)
}

func publishedFilters(c jetstream.ConsumerConfig) []string {
	stored := c.FilterSubjects
	if c.FilterSubject != "" {
		stored = []string{c.FilterSubject}
	}
	filters := make([]string, 0, len(stored))
	for _, f := range stored {
		if f = publishedFilter(f); f != ">" {
			filters = append(filters, f)
		}
	}
	return filters
}

// publishedFilter removes the partition, a number or a wildcard, from a filter.
func publishedFilter(stored string) string {
	if len(stored) > 2 && stored[:2] == "*." {
		return stored[2:]
	}
	return subject.Published(stored)
}

func newPartitionInfo(info *jetstream.ConsumerInfo) PartitionInfo {
	p := PartitionInfo{
		Pending: info.NumPending, AckPending: info.NumAckPending, Redelivered: info.NumRedelivered,
		Delivered: info.Delivered.Stream, AckFloor: info.AckFloor.Stream, Read: pinned(info) != "" || info.NumWaiting > 0,
	}
	p.Partition, _ = strconv.Atoi(info.Config.Metadata[metadataPartition]) // none is the first
	if info.Delivered.Last != nil {
		p.Active = *info.Delivered.Last
	}
	return p
}

// Of returns the progress of the consumer in the partition of subj: zero while the partition has no consumer yet.
func (g GroupInfo) Of(subj string) PartitionInfo {
	if g.whole {
		return g.Partitions[0]
	}
	number := subject.Partition(subj, g.count)
	for _, p := range g.Partitions {
		if p.Partition == number {
			return p
		}
	}
	return PartitionInfo{Partition: number}
}

// Total sums the partitions up: Delivered and Active are the latest of all, AckFloor is the earliest of those with something left, and
// Read says that each of them is read.
func (g GroupInfo) Total() PartitionInfo {
	total := PartitionInfo{Read: len(g.Partitions) > 0}
	left := false
	for _, p := range g.Partitions {
		total.Pending += p.Pending
		total.AckPending += p.AckPending
		total.Redelivered += p.Redelivered
		total.Delivered = max(total.Delivered, p.Delivered)
		if p.Active.After(total.Active) {
			total.Active = p.Active
		}
		total.Read = total.Read && p.Read
		switch behind := p.Pending > 0 || p.AckPending > 0; {
		case behind && !left:
			left, total.AckFloor = true, p.AckFloor
		case behind:
			total.AckFloor = min(total.AckFloor, p.AckFloor)
		case !left:
			total.AckFloor = max(total.AckFloor, p.AckFloor)
		}
	}
	return total
}
