package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/parley-chat/parley/bench/internal/rig"
)

// contender is a gateway under test.
type contender struct {
	name     string
	args     []string // program and arguments
	env      []string
	profiled bool // whether it serves profiles
}

// stage is one contender's gateways with their own Redis and NATS, and the visitors' connections to them.
type stage struct {
	engines   *engines
	contender contender
	dir       string
	gateways  []*rig.Process
	addrs     []netip.AddrPort
	ops       []string
	pprof     string   // of the gateway started last
	requests  [][]byte // the websocket handshake for each gateway
	publisher *publisher
	publish   publishFunc
	pool      *pool
	visitors  []*visitor
	trials    int
	epoch     time.Time
	parts     bool // its loads are parts of streamed answers instead of replies
}

// publishFunc publishes a load with the marks of a trial, with times relative to epoch.
type publishFunc func(ctx context.Context, l load, trial int, epoch time.Time) (refused int, err error)

// openStage starts all processes and returns when every gateway is ready.
func (b *bench) openStage(ctx context.Context, c contender, gateways int) (s *stage, err error) {
	s = &stage{contender: c, visitors: b.visitors.list, epoch: time.Now()}
	defer func() {
		if err != nil {
			s.close()
			s = nil
		}
	}()
	b.stages++
	s.dir = filepath.Join(b.dir, strconv.Itoa(b.stages)+"-"+c.name)
	if err = os.Mkdir(s.dir, 0o700); err != nil {
		return s, err
	}
	if s.engines, err = startEngines(ctx, b.natsServer, s.dir); err != nil {
		return s, err
	}
	if s.publisher, err = openPublisher(ctx, "nats://"+s.engines.natsAddr); err != nil {
		return s, err
	}
	s.publish = s.publisher.publish
	for range gateways {
		if err = s.startGateway(ctx, c, b.visitors.url); err != nil {
			return s, fmt.Errorf("starting a gateway of %s: %w", c.name, err)
		}
	}
	s.pool, err = newPool()
	return s, err
}

func (s *stage) startGateway(ctx context.Context, c contender, jwks string) error {
	addr, ops, pprof := rig.FreeAddr(), rig.FreeAddr(), rig.FreeAddr()
	env := append([]string{
		"HTTP_ADDR=" + addr,
		"OPS_ADDR=" + ops,
		"PPROF_ADDR=" + pprof,
		"NATS_URL=nats://" + s.engines.natsAddr,
		"REDIS_URL=redis://" + s.engines.redisAddr,
		"JWKS_URL=" + jwks,
		"LOG_LEVEL=WARN",
		"NODE_ENV=production",
	}, c.env...)
	log := filepath.Join(s.dir, "gateway.log")
	p, err := rig.Start(env, log, c.args[0], c.args[1:]...)
	if err != nil {
		return err
	}
	p.Drain()
	s.gateways = append(s.gateways, p)
	if err := rig.AwaitReady(ctx, "http://"+ops+"/readyz"); err != nil {
		text, _ := os.ReadFile(log)
		return fmt.Errorf("%w: %s", err, text[max(0, len(text)-500):])
	}
	at, err := netip.ParseAddrPort(addr)
	s.pprof = pprof
	s.addrs, s.ops, s.requests = append(s.addrs, at), append(s.ops, ops), append(s.requests, upgradeRequest(addr))
	return err
}

func (s *stage) close() {
	if s.pool != nil {
		s.pool.stop()
	}
	if s.publisher != nil {
		s.publisher.close()
	}
	for _, g := range s.gateways {
		g.Stop()
	}
	if s.engines != nil {
		s.engines.stop()
	}
}

// cpu returns the CPU time used by the gateways.
func (s *stage) cpu() (total time.Duration) {
	for _, g := range s.gateways {
		total += g.CPU()
	}
	return total
}

// rss returns the current memory of the gateways.
func (s *stage) rss() (total int64) {
	for _, g := range s.gateways {
		total += g.RSS()
	}
	return total
}

// arrival is the result of connecting visitors.
type arrival struct {
	wanted, joined int
	took           time.Duration
}

func (a arrival) rate() float64 { return float64(a.joined) / a.took.Seconds() }

func (a arrival) lost() int { return a.wanted - a.joined }

// join connects n more visitors, each to the room returned by room for the i-th, distributed over the gateways.
func (s *stage) join(ctx context.Context, from, n int, room func(i int) int) (arrival, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	hellos := map[[2]int]*hello{}
	dials := make([]dial, n)
	for k := range dials {
		i := from + k
		gateway, r := i%len(s.addrs), room(i)
		h := hellos[[2]int{gateway, r}]
		if h == nil {
			h = &hello{request: s.requests[gateway], connect: s.visitors[r].connect}
			hellos[[2]int{gateway, r}] = h
		}
		dials[k] = dial{to: s.addrs[gateway], hello: h, room: r}
	}
	joined, took, err := s.pool.connect(ctx, dials)
	if joined == 0 && n > 0 {
		return arrival{}, fmt.Errorf("no connection succeeded: %w", errors.Join(err, ctx.Err()))
	}
	return arrival{wanted: n, joined: joined, took: took}, ctx.Err()
}

// own returns the room of a visitor's own.
func own(i int) int { return i }

// replies publishes total replies to the first rooms, at a rate, and waits for their deliveries; patience is the
// longest wait without a delivery before the rest counts as lost.
func (s *stage) replies(ctx context.Context, rooms, rate, total int, patience time.Duration) (outcome, error) {
	perRoom := (total + rooms - 1) / rooms
	l := load{rooms: s.visitors[:rooms], rate: rate, total: total}
	if s.parts {
		l.drafts = make([]draft, rooms)
	}
	s.trials++
	var t *trial
	var expected int
	if !s.pool.do(func() {
		expected = s.expected(l)
		t = newTrial(s.trials, len(s.pool.clients), perRoom, expected, s.epoch)
		s.pool.trial = t
	}) {
		return outcome{}, s.pool.err
	}
	cpu, engines, start := s.cpu(), s.engines.cpu(), time.Now()
	refused, err := s.publish(ctx, l, t.id, s.epoch)
	if err != nil {
		return outcome{}, err
	}
	if err := t.await(ctx, expected, patience); err != nil {
		return outcome{}, err
	}
	cpu, engines = s.cpu()-cpu, s.engines.cpu()-engines
	if !s.pool.do(func() { s.pool.trial = nil }) {
		return outcome{}, s.pool.err
	}
	o := t.outcome(expected, start)
	o.cpu, o.engines, o.refused = cpu, engines, refused
	return o, nil
}

// expected returns the number of deliveries of a load with the current connections. It runs in the pool's loop.
func (s *stage) expected(l load) (n int) {
	perRoom, more := l.total/len(l.rooms), l.total%len(l.rooms)
	for _, c := range s.pool.clients {
		if c.state != joined || c.room >= len(l.rooms) {
			continue
		}
		if n += perRoom; c.room < more {
			n++
		}
	}
	return n
}
