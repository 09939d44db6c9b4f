package main

import (
	"slices"
	"time"
)

// sizes are the sizes and durations of a run.
type sizes struct {
	idle    int           // connections that connect and stay idle
	settle  time.Duration // wait before their memory is read
	rooms   int           // visitors of the paced loads, one a room
	warm    time.Duration // a paced load for warm-up
	latency pace
	cost    pace
	over    pace
	ceiling pace // the first rate to try, and the duration of each try
	bound   time.Duration
	soon    time.Duration // bound of p99 in the search for the highest rate of parts
	crowd   int           // connections in the one room of a broadcast
	events  int           // per broadcast
	bursts  int           // broadcasts, whose median counts
	redis   pace
	levels  []int // connections of the growth
	growth  pace
}

// pace is the rate and duration of a load.
type pace struct {
	rate int // per second
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

// quickSizes check that the benchmark works.
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

// most returns the number of visitors of a run.
func (s sizes) most() int { return max(s.idle, s.rooms, slices.Max(s.levels)) }
