package bus

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/proto-events/subject"
)

// unclaimedSubjects bounds the subjects that are looked at: each takes a request.
const unclaimedSubjects = 1000

// Unclaimed is a subject of a stream with an event that no durable consumer has acknowledged.
type Unclaimed struct {
	Subject string
	Since   time.Time // when the oldest one was stored
}

// Unclaimed returns the subjects of a stream without partitions that have such events, oldest first, of the first 1,000
// subjects in alphabetical order. Consumers that are not durable take nothing: they read along.
func (b *Bus) Unclaimed(ctx context.Context, stream string) ([]Unclaimed, error) {
	groups, _, err := b.durableGroups(ctx, stream)
	if err != nil {
		return nil, err
	}
	s, err := b.js.Stream(ctx, stream)
	if err != nil {
		return nil, readError(stream, err)
	}
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(">"))
	if err != nil {
		return nil, readError(stream, err)
	}
	subjects := slices.Sorted(maps.Keys(info.State.Subjects))
	var found []Unclaimed
	for _, subj := range subjects[:min(len(subjects), unclaimedSubjects)] {
		through := acknowledged(groups, subj)
		if through >= info.State.LastSeq {
			continue
		}
		since, err := b.firstAfter(ctx, stream, subj, through)
		if apperr.Is(err, apperr.NotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found = append(found, Unclaimed{subj, since})
	}
	slices.SortFunc(found, func(a, b Unclaimed) int { return a.Since.Compare(b.Since) })
	return found, nil
}

// acknowledged returns the sequence up to which one of the groups has acknowledged the events of a subject.
func acknowledged(groups map[string]*GroupInfo, subj string) (sequence uint64) {
	for _, g := range groups {
		wants := func(filter string) bool { return subject.Matches(filter, subj) }
		if len(g.Filters) > 0 && !slices.ContainsFunc(g.Filters, wants) {
			continue
		}
		for _, p := range g.Partitions {
			sequence = max(sequence, p.AckFloor)
		}
	}
	return sequence
}

// firstAfter returns when the first message of a subject after a sequence was stored, or NotFound.
func (b *Bus) firstAfter(ctx context.Context, stream, subj string, sequence uint64) (time.Time, error) {
	request, err := json.Marshal(directGet{Seq: sequence + 1, NextBySubj: subj})
	if err != nil {
		return time.Time{}, err
	}
	m, err := b.getDirect(ctx, stream, request)
	if err != nil {
		return time.Time{}, err
	}
	d, err := directDelivery(stream, m)
	return d.Time, err
}
