package bus

// Verifying the stored messages of a stream, for `parleyctl streams verify`.
//
// nats-server checks the checksum of a message when it reads its block from the disk. It serves no damaged message: it
// passes over it without an error, and so does each consumer. What should be there is only known from the state of the
// stream. A verification therefore reads all messages and compares what is missing with what was removed.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/time/rate"

	"github.com/parley-chat/parley/pkg/apperr"
)

const (
	// verifyBatch is the number of messages in one request. Their payloads stay on the server.
	verifyBatch = 500
	// verifyOverhead is what a message costs the server beside its bytes, as bytes.
	verifyOverhead = 1 << 10
	// verifyBurst must exceed the largest message.
	verifyBurst = 8 << 20
	// maxRemoved bounds the list of removed sequences, of which nats-server sends and holds all at once.
	maxRemoved = 1_000_000
	// headerMsgSize is the size of a payload that the server keeps back.
	headerMsgSize = "Nats-Msg-Size"
	// verifyTTL is how long the server keeps an idle reader: longer than a batch takes at a low rate.
	verifyTTL = 10 * time.Minute
	// emptyReads is how often a server may answer with no message before the verification fails.
	emptyReads = 10
	// placements is how often a reader is created for each server: nats-server chooses the server at random.
	placements = 15
)

// Damage is a range of messages that a stream should have and that cannot be read.
type Damage struct {
	First, Last uint64 // sequences; 0 if Subject is set
	// Subject is the stored subject of the message, in a stream that keeps the last message of each subject.
	Subject string
	// After and Before are the times of the readable messages around the range; zero: there is none.
	After, Before time.Time
}

// Messages returns the number of messages.
func (d Damage) Messages() uint64 { return d.Last - d.First + 1 }

// Verification is the result for one copy of a stream.
type Verification struct {
	Stream  string
	Server  string // name of the server that has the copy; empty: unknown
	Read    uint64 // messages that were read
	Damaged []Damage
	// Dropped is the number of bytes that the only server has cut off from damaged files since its start. Where it
	// knows the sequences, they are in Damaged; where it does not, they look like removed messages.
	Dropped uint64
}

// Verify reads all messages of a stream, on each server that has a copy, and returns what cannot be read.
// bytesPerSecond limits what a server reads from its disk; 0: no limit. Messages that are published meanwhile are not
// verified, and what the server holds in memory is not read from the disk. The result is valid up to the error, which
// is NotFound if the stream does not exist.
func (b *Bus) Verify(ctx context.Context, stream string, bytesPerSecond int) (found []Verification, err error) {
	if !b.conn.IsConnected() {
		return nil, apperr.Unreachable("NATS", nats.ErrDisconnected)
	}
	s, err := b.js.Stream(ctx, stream)
	if err != nil {
		return nil, readError(stream, err)
	}
	limit := rate.Inf
	if bytesPerSecond > 0 {
		limit = rate.Limit(bytesPerSecond)
	}
	v := &verifier{bus: b, stream: s, pace: rate.NewLimiter(limit, verifyBurst)}
	unread := copies(s.CachedInfo())
	for range placements * len(unread) {
		if len(unread) == 0 {
			break
		}
		result, err := v.verifyOne(ctx, &unread)
		if result != nil {
			found = append(found, *result)
		}
		if err != nil {
			return found, err
		}
	}
	if len(unread) > 0 {
		return found, readError(stream, fmt.Errorf("not verified on %v: the server is offline or has no reader", unread))
	}
	return found, nil
}

// copies returns the names of the servers that have a copy of a stream, at least one; empty: unknown.
func copies(info *jetstream.StreamInfo) []string {
	if info.Cluster == nil {
		return []string{""}
	}
	names := []string{info.Cluster.Leader}
	for _, peer := range info.Cluster.Replicas {
		names = append(names, peer.Name)
	}
	return names
}

// verifier verifies the copies of one stream.
type verifier struct {
	bus    *Bus
	stream jetstream.Stream
	pace   *rate.Limiter
}

// verifyOne verifies the copy of the server on which nats-server has placed a new reader, and removes that server from
// unread. It returns nil if that copy was verified before.
func (v *verifier) verifyOne(ctx context.Context, unread *[]string) (*Verification, error) {
	opening, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	info, err := v.stream.Info(opening)
	if err != nil {
		return nil, v.readError(err)
	}
	reader, err := v.stream.CreateConsumer(opening, jetstream.ConsumerConfig{
		AckPolicy:         jetstream.AckNonePolicy,
		HeadersOnly:       true,
		InactiveThreshold: verifyTTL,
		MemoryStorage:     true,
		Replicas:          1,
	})
	if err != nil {
		return nil, v.readError(err)
	}
	defer v.remove(reader)
	server := serverOf(reader, info)
	n := slices.Index(*unread, server)
	if n < 0 {
		return nil, nil
	}
	*unread = slices.Delete(*unread, n, n+1)
	scan := newScan(info)
	if err := v.read(ctx, reader, scan); err != nil {
		return nil, err
	}
	result := &Verification{Stream: info.Config.Name, Server: server, Read: scan.read}
	return result, v.compare(ctx, scan, result)
}

// serverOf returns the name of the server that reads for a reader of a stream.
func serverOf(reader jetstream.Consumer, stream *jetstream.StreamInfo) string {
	all := copies(stream)
	if info := reader.CachedInfo(); info.Cluster != nil && len(all) > 1 {
		return info.Cluster.Leader
	}
	return all[0]
}

func (v *verifier) remove(reader jetstream.Consumer) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseLimit)
	defer cancel()
	_ = v.stream.DeleteConsumer(ctx, reader.CachedInfo().Name) // otherwise it expires
}

func (v *verifier) readError(err error) error {
	return readError(v.stream.CachedInfo().Config.Name, err)
}

// read reads up to the end of the scan.
func (v *verifier) read(ctx context.Context, reader jetstream.Consumer, s *scan) error {
	for empty := 0; !s.complete(); {
		received, err := v.readBatch(ctx, reader, s, empty > 0)
		if err != nil {
			return v.readError(err)
		}
		if received > 0 {
			empty = 0
			continue
		}
		empty++
		info, err := reader.Info(ctx)
		switch {
		case err != nil:
			return v.readError(err)
		case info.NumPending == 0: // the server has passed over the rest
			s.end()
		case empty == emptyReads:
			return v.readError(fmt.Errorf("%d messages are pending and none comes", info.NumPending))
		}
	}
	return nil
}

// readBatch reads what the server has at once, or waits for a message, and returns the number of messages.
func (v *verifier) readBatch(ctx context.Context, reader jetstream.Consumer, s *scan, wait bool) (n int, err error) {
	var batch jetstream.MessageBatch
	if wait {
		batch, err = reader.Fetch(1, jetstream.FetchMaxWait(readTimeout))
	} else {
		batch, err = reader.FetchNoWait(verifyBatch)
	}
	if err != nil {
		return 0, err
	}
	for m := range batch.Messages() {
		n++
		meta, err := m.Metadata()
		if err != nil {
			return n, err
		}
		s.add(meta.Sequence.Stream, meta.Timestamp, m.Subject())
		if err := v.pace.WaitN(ctx, costOf(m)); err != nil {
			return n, err
		}
	}
	if err := batch.Error(); err != nil && !errors.Is(err, nats.ErrTimeout) {
		return n, err
	}
	return n, ctx.Err()
}

// costOf returns what the server has read for a message, in bytes.
func costOf(m jetstream.Msg) int {
	size, err := strconv.Atoi(m.Headers().Get(headerMsgSize))
	if err != nil {
		size = 0
	}
	return min(size+verifyOverhead, verifyBurst)
}

// scan collects what was read of a stream, from its first message to the one that was its last at the start.
type scan struct {
	last uint64
	read uint64
	next uint64    // the sequence after the last one that was read
	at   time.Time // of the last message that was read
	gaps []Damage  // what was not read
	// subjects are those that were read, in a stream that keeps the last message of each subject. Its removed messages
	// are too many to list. nil: another stream.
	subjects map[string]struct{}
}

func newScan(info *jetstream.StreamInfo) *scan {
	s := &scan{last: info.State.LastSeq, next: info.State.FirstSeq}
	if info.Config.MaxMsgsPerSubject == 1 {
		s.subjects = make(map[string]struct{})
	}
	if info.State.Msgs == 0 {
		s.next = s.last + 1
	}
	return s
}

// complete reports whether everything was read.
func (s *scan) complete() bool { return s.next > s.last }

// add notes a message. Those after the end of the scan only end it.
func (s *scan) add(sequence uint64, at time.Time, stored string) {
	if s.complete() {
		return
	}
	if sequence > s.next && s.subjects == nil {
		s.gaps = append(s.gaps, Damage{First: s.next, Last: min(sequence-1, s.last), After: s.at, Before: at})
	}
	if sequence <= s.last {
		s.read++
		if s.subjects != nil {
			s.subjects[stored] = struct{}{}
		}
	}
	s.next = sequence + 1
	s.at = at
}

// end completes a scan: nothing more can be read.
func (s *scan) end() {
	if !s.complete() && s.subjects == nil {
		s.gaps = append(s.gaps, Damage{First: s.next, Last: s.last, After: s.at})
	}
	s.next = s.last + 1
}

// compare adds to a result what was not read and should be there. The state is that after the scan: what was removed
// meanwhile is not missing.
func (v *verifier) compare(ctx context.Context, s *scan, result *Verification) error {
	ctx, cancel := context.WithTimeout(ctx, snapshotTimeout)
	defer cancel()
	info, err := detailed(ctx, v.stream)
	if err != nil {
		return v.readError(err)
	}
	// A server of several gets again what it has cut off, and the scan has told what it lacks.
	if lost := info.State.Lost; lost != nil && info.Config.Replicas == 1 {
		result.Dropped = lost.Bytes
		result.Damaged = rangesFrom(info.State.FirstSeq, lost.Msgs)
	}
	switch {
	case s.subjects != nil:
		err = v.compareSubjects(ctx, s, result)
	case len(s.gaps) > 0 && info.State.NumDeleted > maxRemoved:
		// The first message is never a removed one.
		first := info.State.FirstSeq
		result.Damaged = append(result.Damaged, damagedIn(s.gaps, first, first, nil)...)
		err = fmt.Errorf("stream %s: %d removed messages are too many to tell which others are damaged",
			result.Stream, info.State.NumDeleted)
	default:
		result.Damaged = append(result.Damaged, damagedIn(s.gaps, info.State.FirstSeq, s.last, info.State.Deleted)...)
	}
	slices.SortFunc(result.Damaged, func(a, b Damage) int {
		return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Subject, b.Subject))
	})
	return err
}

// detailed returns the state of a stream with the removed sequences, unless they are too many, and what the server has
// dropped.
func detailed(ctx context.Context, s jetstream.Stream) (*jetstream.StreamInfo, error) {
	info, err := s.Info(ctx)
	if err != nil || info.State.NumDeleted > maxRemoved {
		return info, err
	}
	return s.Info(ctx, jetstream.WithDeletedDetails(true))
}

// Dropped returns the number of bytes that nats-server has cut off from damaged files of a stream since its start;
// 0 also if too many messages were removed to ask. It returns NotFound if the stream does not exist.
func (b *Bus) Dropped(ctx context.Context, stream string) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	s, err := b.js.Stream(ctx, stream)
	if err != nil {
		return 0, readError(stream, err)
	}
	info, err := detailed(ctx, s)
	if err != nil {
		return 0, readError(stream, err)
	}
	if info.State.Lost == nil {
		return 0, nil
	}
	return info.State.Lost.Bytes, nil
}

// compareSubjects adds the subjects whose last message was not read.
func (v *verifier) compareSubjects(ctx context.Context, s *scan, result *Verification) error {
	info, err := v.stream.Info(ctx, jetstream.WithSubjectFilter(">"))
	if err != nil {
		return v.readError(err)
	}
	for stored := range info.State.Subjects {
		if _, read := s.subjects[stored]; read {
			continue
		}
		last, err := v.bus.LastSequence(ctx, info.Config.Name, stored)
		if err != nil {
			return err
		}
		if last <= s.last { // else it was published after the scan began
			result.Damaged = append(result.Damaged, Damage{Subject: stored})
		}
	}
	return nil
}

// damagedIn returns the parts of gaps from first to last that were not removed. removed is in ascending order.
func damagedIn(gaps []Damage, first, last uint64, removed []uint64) (damaged []Damage) {
	for _, gap := range gaps {
		next, end := max(gap.First, first), min(gap.Last, last)
		for next <= end {
			n, _ := slices.BinarySearch(removed, next)
			part := gap
			part.First = next
			part.Last = end
			if n < len(removed) {
				part.Last = min(end, removed[n]-1)
			}
			if part.First <= part.Last {
				damaged = append(damaged, part)
			}
			next = part.Last + 2 // after the removed one
		}
	}
	return damaged
}

// rangesFrom returns sequences in ascending order as ranges, without those below first.
func rangesFrom(first uint64, sequences []uint64) (ranges []Damage) {
	for _, sequence := range sequences {
		last := len(ranges) - 1
		switch {
		case sequence < first:
		case last >= 0 && ranges[last].Last+1 == sequence:
			ranges[last].Last = sequence
		default:
			ranges = append(ranges, Damage{First: sequence, Last: sequence})
		}
	}
	return ranges
}
