package bus

// The lost tail of a stream: messages that the stream acknowledged and no longer has, because a backup was restored
// or a disk lost what it had confirmed. The stream then uses their sequences again. A reader that compares sequences
// from before and after would drop new messages as known ones.
//
// A bus notices a lost tail by its mark (lost_mark.go) and records it in POSITIONS. The record begins a new epoch of
// the stream: offsets, pids and cursors of an earlier epoch are void. The process ends by [Bus.Lost], because
// everything in its memory is of the earlier epoch. So do all other processes, which read the record with
// [Bus.State].

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/proto-events/subject"
)

// lostTailShown is how long the metric and [Bus.LostTails] show a lost tail, and with them the alert and readiness.
const lostTailShown = 24 * time.Hour

// codeWrongLastSequence is the error code of a publish whose expected last sequence is not the last one.
const codeWrongLastSequence jetstream.ErrorCode = 10071

// LostTail is the record of a lost tail, the last message on [subject.LostTail]. The zero value: none was lost.
type LostTail struct {
	Stream string `json:"stream"`
	// From and To are the lost sequences. The stream has used some of them again if it got messages before the loss was
	// noticed. To is the highest one that is known: the stream may have lost more.
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
	// Noticed is when the loss was noticed. It is the epoch that begins with the record.
	Noticed time.Time `json:"noticed"`
	// Previous is the epoch that the loss ended: an offset of it is valid up to From-1.
	Previous time.Time `json:"previous"`
}

// Messages returns the number of lost messages; 0: none.
func (l LostTail) Messages() uint64 {
	if l.Noticed.IsZero() {
		return 0
	}
	return l.To - l.From + 1
}

// String returns one line for operators.
func (l LostTail) String() string {
	return fmt.Sprintf(
		"stream %s has lost its messages %d to %d, noticed at %s",
		l.Stream, l.From, l.To, l.Noticed.UTC().Format(time.RFC3339),
	)
}

// shown reports whether the record is recent enough to be shown.
func (l LostTail) shown() bool { return time.Since(l.Noticed) <= lostTailShown }

// offset returns the offset in the record's epoch for an offset of the previous epoch; 0 for any other epoch, whose
// sequences say nothing.
func (l LostTail) offset(o Offset) uint64 {
	if l.Noticed.IsZero() || !o.Stream.Equal(l.Previous) {
		return 0
	}
	return min(o.Sequence, l.From-1)
}

// epochOf returns the epoch of a stream: its creation time, or the time of the last lost tail since then.
func epochOf(created time.Time, l LostTail) time.Time {
	if l.Noticed.After(created) {
		return l.Noticed
	}
	return created
}

// LostTail returns the record of the last lost tail of a stream; the zero value: none. It returns Unavailable while
// NATS is disconnected.
func (b *Bus) LostTail(ctx context.Context, stream string) (LostTail, error) {
	l, _, err := b.readLostTail(ctx, stream)
	return l, err
}

// LostTails returns the lost tails of the last day that the bus knows of: those of its streams ([Config]).
func (b *Bus) LostTails() []LostTail {
	var recent []LostTail
	for _, name := range MarkedStreams() {
		l := b.marks.of(name).lostTail()
		if l.shown() {
			recent = append(recent, l)
		}
	}
	return recent
}

// readLostTail returns the record of a stream's last lost tail and its sequence in POSITIONS; zero values: none.
func (b *Bus) readLostTail(ctx context.Context, stream string) (l LostTail, sequence uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, lastTimeout)
	defer cancel()
	m, err := b.getDirect(ctx, subject.Positions+"."+subject.LostTail(stream), nil)
	if apperr.Is(err, apperr.NotFound) {
		return LostTail{}, 0, nil
	}
	if err != nil {
		return LostTail{}, 0, err
	}
	sequence, err = strconv.ParseUint(m.Header.Get(jetstream.SequenceHeader), 10, 64)
	if err == nil {
		err = json.Unmarshal(m.Data, &l)
	}
	if err != nil {
		return LostTail{}, 0, fmt.Errorf("decoding the lost tail of %s: %w", stream, err)
	}
	return l, sequence, nil
}

// inspect returns the state of a stream and the record of its last lost tail. A loss that is new to this process ends
// it. Errors are those of nats.go and of [Bus.Last].
func (b *Bus) inspect(ctx context.Context, name string) (*jetstream.StreamInfo, LostTail, error) {
	mark := b.marks.of(name)
	if mark == nil {
		s, err := b.js.Stream(ctx, name)
		if err != nil {
			return nil, LostTail{}, err
		}
		return s.CachedInfo(), LostTail{}, nil
	}
	mark.adopting.RLock()
	defer mark.adopting.RUnlock()
	seen := mark.highest() // before the state, which is at least as new
	s, err := b.js.Stream(ctx, name)
	if err != nil {
		return nil, LostTail{}, err
	}
	lost, err := b.examine(ctx, s.CachedInfo(), mark, seen)
	if err == nil {
		mark.setLostTail(lost)
	}
	return s.CachedInfo(), lost, err
}

// examine compares the state of a stream with the last record and with what this bus has seen of the stream.
func (b *Bus) examine(
	ctx context.Context, info *jetstream.StreamInfo, mark *streamMark, seen []StreamMark,
) (LostTail, error) {
	recorded, sequence, err := b.readLostTail(ctx, info.Config.Name)
	if err != nil {
		return LostTail{}, err
	}
	epoch := epochOf(info.Created, recorded)
	known := mark.enter(epoch)
	switch {
	case epoch.After(known) && recorded.Noticed.Equal(epoch):
		if err := b.syncRecords(ctx, info); err != nil {
			return LostTail{}, err
		}
		b.endOfEpoch(recorded)
		return recorded, nil
	case epoch.After(known): // the stream was recreated
		mark.reset(epoch)
		return LostTail{}, nil
	case known.After(epoch):
		recorded = mark.lostTail()
		sequence, err = b.recordAgain(ctx, info, recorded, known, sequence)
		if err != nil {
			return LostTail{}, err
		}
		epoch = known
	}
	last, lost, err := b.lostSince(ctx, info, seen)
	if err != nil {
		return LostTail{}, err
	}
	if !lost {
		mark.confirm()
		return recorded, nil
	}
	recorded, err = b.recordLostTail(ctx, info, last, epoch, sequence)
	if err == nil {
		b.endOfEpoch(recorded)
	}
	return recorded, err
}

// recordAgain writes a record that this process knows and POSITIONS has lost: it was not on the disk yet when the power
// failed. If POSITIONS has another record, the answer came from a replica that lags. It returns the record's sequence.
func (b *Bus) recordAgain(
	ctx context.Context, info *jetstream.StreamInfo, l LostTail, known time.Time, last uint64,
) (sequence uint64, err error) {
	if !l.Noticed.Equal(known) {
		return 0, apperr.Unreachable("NATS", errOldReplica)
	}
	err = b.writeRecord(ctx, info, l, last)
	if apiError(err) == codeWrongLastSequence {
		return 0, apperr.Unreachable("NATS", errOldReplica)
	}
	if err != nil {
		return 0, apperr.Unreachable("NATS", fmt.Errorf("recording the lost tail of %s again: %w", l.Stream, err))
	}
	found, sequence, err := b.readLostTail(ctx, l.Stream)
	if err == nil && !found.Noticed.Equal(known) {
		err = apperr.Unreachable("NATS", errOldReplica)
	}
	return sequence, err
}

// errOldReplica refuses to go back to an earlier epoch.
var errOldReplica = errors.New("POSITIONS lacks the record of a lost tail that this process knows")

// NoticeLoss compares a stream with a mark from an earlier life of the process, records the loss if the stream has lost
// messages since, and reports whether the mark is of the epoch that the returned record has ended. It must be called
// before the bus consumes. Unlike a loss that the bus notices by itself, it does not end the process.
func (b *Bus) NoticeLoss(ctx context.Context, m StreamMark) (l LostTail, lost bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	mark := b.marks.of(m.Stream)
	mark.adopting.Lock()
	defer mark.adopting.Unlock()
	s, err := b.js.Stream(ctx, m.Stream)
	if err != nil {
		return LostTail{}, false, readError(m.Stream, err)
	}
	info := s.CachedInfo()
	l, sequence, err := b.readLostTail(ctx, m.Stream)
	if err != nil {
		return LostTail{}, false, err
	}
	mark.setLostTail(l)
	epoch := epochOf(info.Created, l)
	if !m.Epoch.Equal(epoch) {
		return l, l.Noticed.Equal(epoch) && l.Previous.Equal(m.Epoch), nil
	}
	seen, lost, err := b.lostSince(ctx, info, []StreamMark{m})
	if err != nil || !lost {
		return LostTail{}, false, err
	}
	l, err = b.recordLostTail(ctx, info, seen, epoch, sequence)
	if err != nil {
		return LostTail{}, false, err
	}
	b.logLoss(l)
	mark.setLostTail(l)
	mark.reset(l.Noticed)
	return l, true, nil
}

// lostSince reports whether a stream has lost messages up to one of the marks, and returns that mark. A new leader of a
// replicated stream may report an end below the real one until it has applied what it has: the stream is lost if it
// still ends there after [leaderTime].
func (b *Bus) lostSince(
	ctx context.Context, info *jetstream.StreamInfo, marks []StreamMark,
) (lost StreamMark, found bool, err error) {
	for _, m := range marks {
		if info.State.LastSeq < m.Sequence && info.Config.Replicas > 1 {
			info, err = b.infoAfter(ctx, info.Config.Name, leaderTime)
			if err != nil {
				return m, false, err
			}
		}
		if info.State.LastSeq < m.Sequence {
			return m, true, nil
		}
		if m.MessageID == "" || m.Sequence < info.State.FirstSeq {
			continue
		}
		same, err := b.has(ctx, info.Config.Name, m)
		if err != nil || !same {
			return m, !same && err == nil, err
		}
	}
	return StreamMark{}, false, nil
}

// leaderTime is how long a new leader may take to apply its log.
const leaderTime = 2 * time.Second

// infoAfter returns the state of a stream after a pause.
func (b *Bus) infoAfter(ctx context.Context, stream string, pause time.Duration) (*jetstream.StreamInfo, error) {
	if err := sleep(ctx, pause); err != nil {
		return nil, err
	}
	s, err := b.js.Stream(ctx, stream)
	if err != nil {
		return nil, err
	}
	return s.CachedInfo(), nil
}

// has reports whether a stream has the message of a mark at its sequence, or none there: it was purged. A service that
// may not read the stream cannot tell, and leaves it to those that can.
func (b *Bus) has(ctx context.Context, stream string, m StreamMark) (bool, error) {
	request, err := json.Marshal(directGet{Seq: m.Sequence})
	if err != nil {
		return false, err
	}
	stored, err := b.getDirect(ctx, stream, request)
	if apperr.Is(err, apperr.NotFound) || errors.Is(err, nats.ErrNoResponders) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return stored.Header.Get(headerMsgID) == m.MessageID, nil
}

// recordLostTail records the loss of what a mark has seen, unless another process has recorded one meanwhile. It
// returns the record that counts. last is the sequence of the record before it in POSITIONS; 0: none.
func (b *Bus) recordLostTail(
	ctx context.Context, info *jetstream.StreamInfo, m StreamMark, epoch time.Time, last uint64,
) (LostTail, error) {
	name := info.Config.Name
	kept, err := b.lastBy(ctx, info, m.At)
	if err != nil {
		return LostTail{}, err
	}
	l := LostTail{
		Stream:   name,
		From:     min(kept, m.Sequence-1) + 1,
		To:       m.Sequence,
		Noticed:  later(time.Now().UTC(), epoch.Add(1)),
		Previous: epoch,
	}
	err = b.writeRecord(ctx, info, l, last)
	if apiError(err) == codeWrongLastSequence {
		l, _, err = b.readLostTail(ctx, name)
	}
	if err != nil {
		return LostTail{}, apperr.Unreachable("NATS", fmt.Errorf("recording the lost tail of %s: %w", name, err))
	}
	return l, nil
}

// writeRecord writes a record, and returns when it is as durable as events of its stream. last is the sequence of the
// record before it in POSITIONS; 0: none.
func (b *Bus) writeRecord(ctx context.Context, info *jetstream.StreamInfo, l LostTail, last uint64) error {
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	record := &nats.Msg{Subject: subject.LostTail(l.Stream), Data: data, Header: nats.Header{}}
	record.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(last, 10))
	if err := b.publishMsg(ctx, record); err != nil {
		return err
	}
	return b.syncRecords(ctx, info)
}

// syncRecords puts the records in POSITIONS on the disk, which is otherwise not synced: without its record, the epoch
// that a lost tail has begun would end with the next power cut, and old offsets would be valid again.
func (b *Bus) syncRecords(ctx context.Context, info *jetstream.StreamInfo) error {
	if mode, _ := SyncOf(info.Config.Metadata); mode != SyncShared {
		return nil
	}
	return b.acks.awaitSync(ctx, b.recordSync)
}

// lastBy returns the sequence of the last message that a stream had stored by a time. Messages that the stream got
// after a loss are later than the mark of a lost one.
func (b *Bus) lastBy(ctx context.Context, info *jetstream.StreamInfo, at time.Time) (uint64, error) {
	following := at.Add(1)
	request, err := json.Marshal(directGet{StartTime: &following, NextBySubj: ">"})
	if err != nil {
		return 0, err
	}
	m, err := b.getDirect(ctx, info.Config.Name, request)
	if apperr.Is(err, apperr.NotFound) || errors.Is(err, nats.ErrNoResponders) {
		return info.State.LastSeq, nil
	}
	if err != nil {
		return 0, err
	}
	first, err := strconv.ParseUint(m.Header.Get(jetstream.SequenceHeader), 10, 64)
	return first - 1, err
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// endOfEpoch ends the process: what it has in memory is of an earlier epoch.
func (b *Bus) endOfEpoch(l LostTail) {
	b.logLoss(l)
	b.giveUp(errors.New(l.String()))
}

func (b *Bus) logLoss(l LostTail) {
	b.log.Error(
		"a stream has lost messages that it had acknowledged",
		"stream", l.Stream, "from", l.From, "to", l.To, "messages", l.Messages(), "noticed", l.Noticed,
	)
}
