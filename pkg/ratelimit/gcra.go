package ratelimit

import (
	"time"

	"github.com/parley-chat/parley/pkg/config"
)

// grant is the result of a request for permits.
type grant struct {
	permits int
	left    int           // permits available after the grant
	full    time.Duration // time until all permits are available
}

// gcra is the state of one caller in memory: the time at which all permits are available. gcra.lua implements
// the same algorithm in Redis.
type gcra struct{ back time.Time }

// take grants up to wanted permits, or none if fewer than least are available.
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

// giveBack undoes the grant of one permit.
func (g *gcra) giveBack(rate config.Rate) {
	g.back = g.back.Add(-(rate.Per / time.Duration(rate.Count)))
}

// wait returns the time until n permits are available.
func (g grant) wait(rate config.Rate, n int) time.Duration {
	return max(g.full+time.Duration(n)*(rate.Per/time.Duration(rate.Count))-rate.Per, 0)
}
