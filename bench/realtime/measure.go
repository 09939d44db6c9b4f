package main

import (
	"context"
	"errors"
	"math"
	"net"
	"time"
)

// patience is how long the generator waits without deliveries before the rest counts as lost: an overloaded gateway is
// slow, not down.
const patience = 4 * time.Second

// figures are the results of one contender; nil means not measured.
type figures struct {
	idle      *idleFigure
	paced     *pacedFigure
	broadcast []outcome
	redis     []float64 // bytes per reply with 1, 2, 3 gateways
	growth    []growthFigure
	readers   []readerFigure
	parts     *partsFigure
}

// idleFigure is the result of many connections that connect as fast as possible and stay idle.
type idleFigure struct {
	arrival
	before, after int64 // bytes
}

func (f idleFigure) perConnection() float64 { return float64(f.after-f.before) / float64(f.joined) }

func measureHandshakes(ctx context.Context, b *bench, c contender, f *figures) error {
	s, err := b.openStage(ctx, c, 1)
	if err != nil {
		return err
	}
	defer s.close()
	idle := &idleFigure{before: s.rss()}
	err = b.profiled(ctx, s, "handshakes", b.settle, func() (err error) {
		idle.arrival, err = s.join(ctx, 0, b.idle, own)
		return err
	})
	if err != nil {
		return err
	}
	if err := pause(ctx, b.settle); err != nil {
		return err
	}
	idle.after = s.rss()
	idle.joined -= int(s.pool.closed.Load()) // a connection accepted and then dropped is lost, too
	f.idle = idle
	return b.profile(ctx, s, "idle", "heap", 0)
}

// pacedFigure is the result with one visitor per room and two gateways.
type pacedFigure struct {
	latency, cost, over outcome
	ceiling             int
}

func measurePaced(ctx context.Context, b *bench, c contender, f *figures) error {
	s, err := b.openStage(ctx, c, 2)
	if err != nil {
		return err
	}
	defer s.close()
	if _, err := s.join(ctx, 0, b.rooms, own); err != nil {
		return err
	}
	var p pacedFigure
	if _, err = s.pace(ctx, b.rooms, pace{b.latency.rate, b.warm}); err != nil {
		return err
	}
	if p.latency, err = s.pace(ctx, b.rooms, b.latency); err != nil {
		return err
	}
	err = b.profiled(ctx, s, "paced", b.cost.time, func() (err error) {
		p.cost, err = s.pace(ctx, b.rooms, b.cost)
		return err
	})
	if err != nil {
		return err
	}
	if p.ceiling, err = s.ceiling(ctx, b.rooms, b.ceiling, b.bound); err != nil {
		return err
	}
	if p.over, err = s.pace(ctx, b.rooms, b.over); err != nil {
		return err
	}
	f.paced = &p
	return nil
}

func (s *stage) pace(ctx context.Context, rooms int, p pace) (outcome, error) {
	return s.replies(ctx, rooms, p.rate, p.total(), patience)
}

// ceiling finds the highest rate at which p99 is below bound and nothing is lost.
func (s *stage) ceiling(ctx context.Context, rooms int, p pace, bound time.Duration) (int, error) {
	return searchCeiling(p.rate, func(rate int) (bool, error) {
		o, err := s.pace(ctx, rooms, pace{rate, p.time})
		return o.p99 < bound && o.lost() == 0, err
	})
}

// highestRate is the upper limit of the search for a ceiling.
const highestRate = 64_000

// searchCeiling doubles the rate until it fails twice (a single failure may be caused by other load on the machine),
// and then halves the gap, in ratio, three times: that leaves 9%. It returns 0 if even the first rate fails.
func searchCeiling(rate int, holds func(rate int) (bool, error)) (low int, err error) {
	ok, high := true, rate
	for ok && high <= highestRate {
		if ok, err = holds(high); err == nil && !ok {
			ok, err = holds(high)
		}
		if err != nil {
			return 0, err
		}
		if ok {
			low, high = high, 2*high
		}
	}
	if ok || low == 0 {
		return low, nil
	}
	for range 3 {
		middle := int(math.Sqrt(float64(low) * float64(high)))
		if ok, err = holds(middle); err != nil {
			return 0, err
		}
		if ok {
			low = middle
		} else {
			high = middle
		}
	}
	return low, nil
}

func measureBroadcast(ctx context.Context, b *bench, c contender, f *figures) error {
	s, err := b.openStage(ctx, c, 1)
	if err != nil {
		return err
	}
	defer s.close()
	f.broadcast, err = s.broadcasts(ctx, b.sizes)
	return err
}

func measureBare(ctx context.Context, b *bench, f *figures) error {
	s, err := b.openBare()
	if err != nil {
		return err
	}
	defer s.close()
	f.broadcast, err = s.broadcasts(ctx, b.sizes)
	return err
}

// broadcasts connects a crowd to one room and publishes bursts of replies to it, after one for warm-up.
func (s *stage) broadcasts(ctx context.Context, z sizes) (bursts []outcome, err error) {
	if _, err := s.join(ctx, 0, z.crowd, func(int) int { return 0 }); err != nil {
		return nil, err
	}
	for i := range z.bursts + 1 {
		o, err := s.replies(ctx, 1, 0, z.events, patience)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			bursts = append(bursts, o)
		}
	}
	return bursts, nil
}

func measureRedis(ctx context.Context, b *bench, c contender, f *figures) error {
	for gateways := 1; gateways <= 3; gateways++ {
		perReply, err := b.redisBytes(ctx, c, gateways)
		if err != nil {
			return err
		}
		f.redis = append(f.redis, perReply)
	}
	return nil
}

// redisBytes returns the number of bytes that Redis sends for one reply.
func (b *bench) redisBytes(ctx context.Context, c contender, gateways int) (float64, error) {
	s, err := b.openStage(ctx, c, gateways)
	if err != nil {
		return 0, err
	}
	defer s.close()
	rooms := min(b.rooms, 300)
	if _, err := s.join(ctx, 0, rooms, own); err != nil {
		return 0, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.engines.redisAddr)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if _, _, err := redisSent(conn); err != nil { // skips earlier traffic and the subscriptions
		return 0, err
	}
	before, answer, err := redisSent(conn)
	if err != nil {
		return 0, err
	}
	o, err := s.pace(ctx, rooms, b.redis)
	if err != nil {
		return 0, err
	}
	after, _, err := redisSent(conn)
	if err == nil && o.lost() > 0 {
		err = errors.New("replies were lost at a very low rate")
	}
	return float64(after-before-answer) / float64(o.expected), err
}

// growthFigure is the cost of a delivery and of a connection at a number of connections.
type growthFigure struct {
	connections   int
	perConnection float64 // bytes
	outcome
}

func measureGrowth(ctx context.Context, b *bench, c contender, f *figures) error {
	s, err := b.openStage(ctx, c, 1)
	if err != nil {
		return err
	}
	defer s.close()
	before, connected := s.rss(), 0
	for i, level := range b.levels {
		if _, err := s.join(ctx, connected, level-connected, own); err != nil {
			return err
		}
		connected = level
		if err := pause(ctx, min(b.settle, 2*time.Second)); err != nil {
			return err
		}
		g := growthFigure{connections: level, perConnection: float64(s.rss()-before) / float64(level)}
		if i == 0 {
			if _, err := s.pace(ctx, level, pace{b.growth.rate, b.warm}); err != nil {
				return err
			}
		}
		if g.outcome, err = s.pace(ctx, level, b.growth); err != nil {
			return err
		}
		f.growth = append(f.growth, g)
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
