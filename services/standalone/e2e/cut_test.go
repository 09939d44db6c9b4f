package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/parley-chat/parley/testkit/needs"
)

// recovery bounds how long clients, panels and histories may take to be complete after a cut.
const recovery = limit

// TestPowerCut cuts the power under load, again and again. What was answered with a success is delivered once, in
// order, and is in the history; a retry with its Idempotency-Key has no second effect, and an effect at all.
//
// CUTS sets the number of cuts (the long form has 200), which the worlds share, SEED the moments, RENAME the file
// system's way, and STREAM_SYNC what the streams promise: with none the test must fail. Each world logs its tally.
//
// cut_world_test.go has what loses power, cut_member_test.go visitors, cut_agent_test.go panels, cut_check_test.go
// what must hold.
func TestPowerCut(t *testing.T) {
	needs.FUSE(t)
	variants := cutVariants()
	otherwise := len(variants)
	if longForm() {
		otherwise = 200
	}
	cuts := int(setting(t, "CUTS", uint64(otherwise)))
	seed := setting(t, "SEED", uint64(time.Now().UnixNano()))
	t.Logf("SEED=%d", seed)
	count := min(cuts, 2*len(variants))
	// All at once, also on few processors: most of the time passes while an interrupted request keeps its lease.
	var worlds sync.WaitGroup
	for n := range count {
		of := variants[n%len(variants)]
		run := func(t *testing.T) {
			w := of.start(t)
			w.populate(t)
			defer w.logTally(of.name)
			for cut := n; cut < cuts; cut += count {
				chance := rand.New(rand.NewPCG(seed, uint64(cut)))
				t.Run(fmt.Sprint("cut ", cut), func(t *testing.T) { w.cutUnderLoad(t, chance) })
			}
		}
		worlds.Go(func() { t.Run(fmt.Sprintf("%s %d", of.name, n), run) })
	}
	worlds.Wait()
}

// setting returns a number from the environment.
func setting(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	check(t, err)
	return n
}

// transports are the ways of the official client: only WebSocket, only long polling, and its default, which upgrades.
func transports() [][]string {
	return [][]string{{"websocket"}, {"polling"}, {"polling", "websocket"}}
}

// populate opens a client of each way, and two panels. The clients and one panel stay through all cuts, connected or
// trying to connect.
func (w *cutWorld) populate(t *testing.T) {
	t.Helper()
	w.present, w.absent = newAgent(t, w.place, w.panel), newAgent(t, w.place, w.panel)
	for _, way := range transports() {
		w.stays = append(w.stays, w.join(t, way))
	}
}

func (w *cutWorld) cutUnderLoad(t *testing.T, chance *rand.Rand) {
	w.tally.cuts++
	way := func() []string { return transports()[chance.IntN(len(transports()))] }
	online, away := w.join(t, way()), w.join(t, way())
	away.leave(t)
	w.absent.leave()
	members := append([]*member{online, away}, w.stays...)

	w.loadUntil(t, members, int64(20+chance.IntN(400)), func() {
		seed := ""
		if chance.IntN(2) == 0 {
			seed = fmt.Sprint(chance.Uint32())
		}
		w.cut(t, seed)
	})
	w.restore(t)
	w.absent.follow(t)
	for _, m := range members {
		m.comeBack(t, w)
		m.retry(t, w)
		m.writeMore(t, w)
	}
	deadline := time.Now().Add(recovery)
	for _, m := range members {
		w.check(t, m, deadline)
	}
}

// loadTime bounds the load before a cut, on a slow machine.
const loadTime = 10 * time.Second

// loadUntil writes to all chats until a number of messages was accepted, calls cut, and waits until all writers have
// noticed.
func (w *cutWorld) loadUntil(t *testing.T, members []*member, moment int64, cut func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	before := w.tally.accepted.Load()
	var writers sync.WaitGroup
	for _, m := range members {
		for _, company := range []bool{false, true} {
			writers.Go(func() { w.write(ctx, t, m, company) })
		}
	}
	accepted := func() int64 { return w.tally.accepted.Load() - before }
	for end := time.Now().Add(loadTime); accepted() < moment && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	cut()
	stop()
	writers.Wait()
	t.Logf("%d messages were accepted before the cut", accepted())
	if accepted() == 0 {
		t.Errorf("got no message accepted in %v", loadTime)
	}
}
