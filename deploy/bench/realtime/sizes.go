package main

import (
	"slices"
	"time"
)

// sizes are how much of everything a run takes.
type sizes struct {
	idle    int           // connections that come and stay idle
	settle  time.Duration // before their memory is read
	rooms   int           // visitors of the paced loads, one a room
	warm    time.Duration // a paced load that does not count
	latency pace
	cost    pace
	over    pace
	ceiling pace // the first rate to try, and how long each is tried
	bound   time.Duration
	soon    time.Duration // bound of p99 in the search for the highest rate of parts
	crowd   int           // connections in the one room of a broadcast
	events  int           // of a broadcast
	bursts  int           // broadcasts, of which the median counts
	redis   pace
	levels  []int // connections of the growth
	growth  pace
}

// pace is a load of replies.
type pace struct {
	rate int // a second
	time time.Duration
}

func (p pace) total() int { return int(float64(p.rate) * p.time.Seconds()) }

func fullSizes() sizes {
	return sizes{
		idle: 10_000, settle: 5 * time.Second,
		rooms: 1000, warm: time.Second,
		latency: pace{2000, 6 * time.Second},
		cost:    pace{5000, 6 * time.Second},
		over:    pace{10_000, 8 * time.Second},
		ceiling: pace{2000, 3 * time.Second}, bound: 250 * time.Millisecond, soon: 100 * time.Millisecond,
		crowd: 5000, events: 40, bursts: 3,
		redis:  pace{1000, 2 * time.Second},
		levels: []int{1000, 5000, 10_000, 15_000},
		growth: pace{2000, 3 * time.Second},
	}
}

// quickSizes serve to see that all of it works.
func quickSizes() sizes {
	return sizes{
		idle: 300, settle: 200 * time.Millisecond,
		rooms: 100, warm: 200 * time.Millisecond,
		latency: pace{200, time.Second},
		cost:    pace{500, time.Second},
		over:    pace{1000, time.Second},
		ceiling: pace{500, 500 * time.Millisecond}, bound: 250 * time.Millisecond, soon: 100 * time.Millisecond,
		crowd: 200, events: 10, bursts: 1,
		redis:  pace{200, time.Second},
		levels: []int{50, 150},
		growth: pace{200, time.Second},
	}
}

// most is how many visitors a run needs.
func (s sizes) most() int { return max(s.idle, s.rooms, slices.Max(s.levels)) }
