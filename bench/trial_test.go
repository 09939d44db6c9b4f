package main

import (
	"testing"
	"time"
)

func TestMarkRoundTrip(t *testing.T) {
	t.Parallel()
	sent := mark{trial: 3, room: 14_999, sequence: 80_000, planned: 12345678 * time.Microsecond}
	packet := []byte(`42/message,["message",{"data":` + sent.data() + `}]`)
	if got, ok := parseMark(packet); !ok || got != sent {
		t.Errorf("got %+v, %t, want %+v", got, ok, sent)
	}
	for _, packet := range []string{``, `42/message,["message",{}]`, `mark:1.2.3`, `mark:1.2.3.x.`} {
		if got, ok := parseMark([]byte(packet)); ok {
			t.Errorf("%q: got %+v, want no mark", packet, got)
		}
	}
}

func TestTrialClassifiesDeliveries(t *testing.T) {
	t.Parallel()
	own := func(sequence int) mark { return mark{trial: 2, room: 7, sequence: sequence} }
	foreign, straggler := mark{trial: 2, room: 8, sequence: 3}, mark{trial: 1, room: 7, sequence: 9}
	tests := []struct {
		name        string
		marks       []mark
		want        outcome
		wantLost    int
		wantEndless bool // whether p99 is
	}{
		{"in order", []mark{own(1), own(2), own(3)}, outcome{delivered: 3}, 0, false},
		{"one is lost", []mark{own(1), own(3)}, outcome{delivered: 2}, 1, true},
		{"one comes late", []mark{own(1), own(3), own(2)}, outcome{delivered: 3, outOfOrder: 1}, 0, false},
		{"one comes twice", []mark{own(1), own(2), own(2), own(3)}, outcome{delivered: 3, doubled: 1}, 0, false},
		{"one of another room", []mark{own(1), own(2), own(3), foreign}, outcome{delivered: 3, misdirected: 1}, 0, false},
		{"a straggler of an earlier trial", []mark{own(1), straggler, own(2), own(3)}, outcome{delivered: 3}, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tr := &trial{id: 2, began: time.Now()}
			received := tr.newTally(7)
			for _, m := range tt.marks {
				received.note([]byte(m.data()), time.Now())
			}
			got := tr.outcome(tr.began, time.Now(), 3)
			if endlessly := got.p99 == endless; endlessly != tt.wantEndless {
				t.Errorf("got p99 %v, want endless: %t", got.p99, tt.wantEndless)
			}
			if got.lost() != tt.wantLost {
				t.Errorf("got %d lost, want %d", got.lost(), tt.wantLost)
			}
			tt.want.expected = 3
			got.p99, got.longest, got.took, got.last = 0, 0, 0, time.Time{}
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// A window has the deliveries between its ends.
func TestOutcomeOfAWindow(t *testing.T) {
	t.Parallel()
	tr := &trial{id: 1, began: time.Now()}
	received := tr.newTally(0)
	for sequence := range 4 {
		at := tr.began.Add(time.Duration(sequence) * time.Second)
		received.note([]byte(mark{trial: 1, sequence: sequence}.data()), at)
	}
	got := tr.outcome(tr.began.Add(time.Second), tr.began.Add(3*time.Second), 0)
	if got.delivered != 3 || got.longest != 3*time.Second || got.rate() != 1.5 {
		t.Errorf("got %d deliveries at %v/s, longest %v, want 3, 1.5/s, 3s", got.delivered, got.rate(), got.longest)
	}
}

func TestLatencyCountsFromThePlannedMoment(t *testing.T) {
	t.Parallel()
	tr := &trial{id: 1, began: time.Now().Add(-time.Second)}
	received := tr.newTally(0)
	received.note([]byte(mark{trial: 1, sequence: 1, planned: 400 * time.Millisecond}.data()), time.Now())
	got := tr.outcome(tr.began, time.Now(), 1).p99
	if got < 600*time.Millisecond || got > 5*time.Second {
		t.Errorf("got %v, want 600ms or a little more", got)
	}
}

func TestCeilingIsFoundBetweenTheRates(t *testing.T) {
	t.Parallel()
	for _, want := range []int{1999, 2000, 4700, 9400, 63_000, 100_000} {
		got := searchCeiling(2000, func(rate int) bool { return rate <= want })
		low := float64(got)*1.1 < float64(min(want, highestRate/2))
		if want < 2000 && got != 0 || want >= 2000 && (got > want || low) {
			t.Errorf("got %d, want %d or at most 10%% less", got, want)
		}
	}
}
