package ratelimit

import (
	"time"

	"github.com/parley-chat/parley/pkg/config"
)

// grant is the part of the requested permits that was granted.
type grant struct {
	permits int
	left    int           // permits still available
	full    time.Duration // until all permits are back
}

// gcra is the algorithm in memory: the time at which all permits are back. gcra.lua implements the same in Redis.
type gcra struct{ back time.Time }

// take grants as many of the wanted permits as are available, or none if fewer than least.
func (g *gcra) take(rate config.Rate, now time.Time, wanted, least int) grant {
	interval := rate.Per / time.Duration(rate.Count)
	if g.back.Before(now) {
		g.back = now
	}
	room := min(max(int((rate.Per-g.back.Sub(now))/interval), 0), rate.Count)
	given := min(wanted, room)
	if given < least {
		given = 0
	}
	g.back = g.back.Add(time.Duration(given) * interval)
	return grant{permits: given, left: room - given, full: g.back.Sub(now)}
}

// wait returns the time until n permits are available.
func (g grant) wait(rate config.Rate, n int) time.Duration {
	return max(g.full+time.Duration(n)*(rate.Per/time.Duration(rate.Count))-rate.Per, 0)
}
