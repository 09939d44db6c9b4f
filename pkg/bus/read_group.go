package bus

// The progress of the consumer groups of a stream, for parleyctl, the panel and the gauges.

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

// GroupInfo is the progress of a consumer group. A durable consumer not created by Parley is a group of its own.
type GroupInfo struct {
	Stream     string
	Name       string
	Filters    []string        // published subjects; empty: all
	Partitions []PartitionInfo // by number
	count      int             // number of partitions of the stream
	whole      bool            // one consumer reads all partitions
}

// PartitionInfo is the progress of a group in one partition.
type PartitionInfo struct {
	Partition   int
	Pending     uint64 // not delivered yet
	AckPending  int    // delivered and not acknowledged
	Redelivered int
	Delivered   uint64    // stream sequence of the last delivery
	AckFloor    uint64    // stream sequence up to which the partition is acknowledged or, with offsets, handled
	Active      time.Time // time of the last delivery; zero: none
	Read        bool      // a replica reads the partition
}

// Missing returns the partitions of the stream without a consumer of the group. Their events are not read.
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

// Groups returns the groups of a stream, sorted by name: durable consumers and groups with offsets.
func (b *Bus) Groups(ctx context.Context, stream string) ([]GroupInfo, error) {
	byName, readers, err := b.durableGroups(ctx, stream)
	if err != nil {
		return nil, err
	}
	if err := b.addOffsetGroups(ctx, stream, readers, byName); err != nil {
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

// durableGroups returns the groups of durable consumers by name, and the ephemeral consumers by group.
func (b *Bus) durableGroups(ctx context.Context, stream string) (
	byName map[string]*GroupInfo, readers map[string][]*jetstream.ConsumerInfo, err error,
) {
	s, err := b.js.Stream(ctx, stream)
	if err != nil {
		return nil, nil, readError(stream, err)
	}
	count := b.partitions.store(stream, s.CachedInfo().Config)
	byName = make(map[string]*GroupInfo)
	readers = make(map[string][]*jetstream.ConsumerInfo)
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

// addOffsetGroups adds the groups with offsets. Pending counts all events that have not been handled.
func (b *Bus) addOffsetGroups(
	ctx context.Context, stream string, readers map[string][]*jetstream.ConsumerInfo, byName map[string]*GroupInfo,
) error {
	count, err := b.Partitions(ctx, stream)
	if err != nil {
		return err
	}
	all, err := b.allOffsets(ctx, stream, "*")
	if apperr.Is(err, apperr.NotFound) {
		return nil // the stream POSITIONS does not exist yet
	}
	if err != nil {
		return err
	}
	state, err := b.State(ctx, stream)
	if err != nil {
		return err
	}
	for name, offsets := range all {
		g := &GroupInfo{Stream: stream, Name: name, Filters: []string{}, count: count, whole: count == 1}
		for partition, offset := range offsets {
			p := PartitionInfo{Partition: partition}
			p.AckFloor = state.Lost.offset(offset)
			if offset.Stream.Equal(state.Epoch) {
				p.AckFloor = offset.Sequence
			}
			if p.AckFloor < state.Last { // skips the request for idle partitions
				filter := ">"
				if count > 1 {
					filter = subject.InPartition(filter, partition)
				}
				p.Pending, err = b.countAfter(ctx, stream, filter, p.AckFloor)
				if err != nil {
					return err
				}
			}
			p.Delivered = p.AckFloor
			p.addActivity(readers[name])
			g.Partitions = append(g.Partitions, p)
		}
		byName[name] = g
	}
	return nil
}

// addActivity sets Active and Read from the ephemeral consumers of a group with offsets.
func (p *PartitionInfo) addActivity(readers []*jetstream.ConsumerInfo) {
	for _, info := range readers {
		if !slices.Contains(strings.Split(info.Config.Metadata[metadataPartition], ","), strconv.Itoa(p.Partition)) {
			continue
		}
		if at := info.Delivered.Last; at != nil && at.After(p.Active) {
			p.Active = *at
		}
		// between dense batches no request is waiting
		p.Read = p.Read || info.NumWaiting > 0 || time.Since(p.Active) < time.Second
	}
}

// Group returns a group of a stream, or NotFound.
func (b *Bus) Group(ctx context.Context, stream, name string) (GroupInfo, error) {
	byName, readers, err := b.durableGroups(ctx, stream)
	if err == nil && byName[name] == nil { // only groups with offsets need the permission to read POSITIONS
		err = b.addOffsetGroups(ctx, stream, readers, byName)
	}
	if err != nil {
		return GroupInfo{}, err
	}
	if g := byName[name]; g != nil {
		slices.SortFunc(g.Partitions, func(a, b PartitionInfo) int { return cmp.Compare(a.Partition, b.Partition) })
		return *g, nil
	}
	return GroupInfo{}, apperr.New(apperr.NotFound, "CONSUMER_NOT_FOUND", "Consumer not found: "+name)
}

func publishedFilters(c jetstream.ConsumerConfig) []string {
	stored := c.FilterSubjects
	if c.FilterSubject != "" {
		stored = []string{c.FilterSubject}
	}
	filters := make([]string, 0, len(stored))
	for _, f := range stored {
		published := publishedFilter(f)
		if published != ">" {
			filters = append(filters, published)
		}
	}
	return filters
}

// publishedFilter strips the partition, a number or a wildcard, from a stored filter.
func publishedFilter(stored string) string {
	if len(stored) > 2 && stored[:2] == "*." {
		return stored[2:]
	}
	return subject.Published(stored)
}

func newPartitionInfo(info *jetstream.ConsumerInfo) PartitionInfo {
	p := PartitionInfo{
		Pending: info.NumPending, AckPending: info.NumAckPending, Redelivered: info.NumRedelivered,
		Delivered: info.Delivered.Stream,
		AckFloor:  info.AckFloor.Stream,
		Read:      pinnedClient(info) != "" || info.NumWaiting > 0,
	}
	p.Partition, _ = strconv.Atoi(info.Config.Metadata[metadataPartition]) // 0 without metadata
	if info.Delivered.Last != nil {
		p.Active = *info.Delivered.Last
	}
	return p
}

// Of returns the progress in the partition of a subject; zero if the partition has no consumer yet.
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

// Total aggregates the partitions: counts are summed, Delivered and Active are the maximum, AckFloor is the
// minimum of the partitions with a lag (without any, the maximum), and Read reports whether all partitions
// are read.
func (g GroupInfo) Total() PartitionInfo {
	total := PartitionInfo{Read: len(g.Partitions) > 0}
	anyLagging := false
	for _, p := range g.Partitions {
		total.Pending += p.Pending
		total.AckPending += p.AckPending
		total.Redelivered += p.Redelivered
		total.Delivered = max(total.Delivered, p.Delivered)
		if p.Active.After(total.Active) {
			total.Active = p.Active
		}
		total.Read = total.Read && p.Read
		switch lagging := p.Pending > 0 || p.AckPending > 0; {
		case lagging && !anyLagging:
			anyLagging = true
			total.AckFloor = p.AckFloor
		case lagging:
			total.AckFloor = min(total.AckFloor, p.AckFloor)
		case !anyLagging:
			total.AckFloor = max(total.AckFloor, p.AckFloor)
		}
	}
	return total
}
