package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// scaling measures the effect of replicas: processors that share the visitors' messages by partition, with a webhook
// that takes half a second instead of a bot, so that two cores suffice. The stream REPLIES, from which gateways
// deliver, is checked for each answer exactly once, in its visitor's order.
type scaling struct {
	*deployment
	webhook *webhook
	table   *table
	trial   *trial       // all questions
	asked   atomic.Int64 // their number

	visitors int           // of the load on one processor
	capped   int           // BOT_CONCURRENCY when comparing processors
	faulty   int           // visitors while processors start and stop
	warm     time.Duration // warm-up
	span     time.Duration // of a measured load
	settle   time.Duration // after a change of the number of replicas
}

// uncapped is the number of answers that a processor awaits at once by default.
const uncapped = 1000

func (b *bench) scale(ctx context.Context, d *deployment) {
	s := &scaling{
		deployment: d,
		trial:      d.newTrial(),
		webhook:    d.startWebhook(size(b, time.Minute, 5*time.Second)),
		table:      newTable("Replicas of the processor, webhook of 500 ms", "what", "measured", "wanted"),
		visitors:   size(b, 5000, 200),
		capped:     size(b, 200, 20),
		faulty:     size(b, 400, 40),
		warm:       size(b, 8*time.Second, 2*time.Second),
		span:       size(b, 15*time.Second, 3*time.Second),
		settle:     size(b, 10*time.Second, 4*time.Second),
	}
	defer func() { fmt.Print(s.table) }() // the results so far
	for _, measure := range []func(context.Context){s.one, s.several, s.faults, s.hanging} {
		measure(ctx)
		for len(s.replicas) > 0 {
			s.oldest().stop()
		}
	}
	o := s.trial.outcome(s.trial.began, time.Now(), int(s.asked.Load()))
	s.table.row("asked in all; lost, answered twice, out of order",
		fmt.Sprintf("%d; %d, %d, %d", o.expected, o.lost(), o.doubled, o.outOfOrder+o.misdirected), "0, 0, 0")
}

// grow starts processors until there are n.
func (s *scaling) grow(ctx context.Context, n, concurrency int) {
	env := []string{
		"RECORDER=false", "DISPATCHER=false", "BOT=webhook", "BOT_CONCURRENCY=" + strconv.Itoa(concurrency),
		"BOT_WEBHOOK_URL=" + s.webhook.url, "BOT_WEBHOOK_SECRET=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
		"BOT_WEBHOOK_TIMEOUT=2m", "BOT_WEBHOOK_DEADLINE=3m",
	}
	for len(s.replicas) < n {
		s.replicas = append(s.replicas, s.serve(ctx, env, "bin/processor"))
	}
}

// oldest removes the oldest processor from the list.
func (s *scaling) oldest() *service {
	p := s.replicas[0]
	s.replicas = s.replicas[1:]
	return p
}

// one measures one processor with its defaults.
func (s *scaling) one(ctx context.Context) {
	s.grow(ctx, 1, uncapped)
	c := s.converse(ctx, s.visitors, 1)
	pause(ctx, s.warm)
	s.webhook.peakSince()
	p := s.replicas[0]
	cpu := p.usage().cpu
	o := c.measure(ctx, s.span)
	after := p.usage()
	s.table.row(fmt.Sprintf("1 processor, %d visitors: answers at once", s.visitors),
		fmt.Sprint(s.webhook.peakSince()), fmt.Sprintf("at least %d", min(uncapped, s.visitors)))
	s.table.row("answers a second", fmt.Sprintf("%.0f, with %.3f s of the processor's CPU for 1,000, and %d MB",
		o.rate(), perThousand(after.cpu-cpu, o.delivered), after.rss>>20), "at least 1,800")
	c.end(ctx, time.Minute)
}

// several compares processors with limited concurrency, so that the machine is not the bottleneck.
func (s *scaling) several(ctx context.Context) {
	c := s.converse(ctx, s.visitors, 1)
	first := 0.0
	for _, step := range []struct {
		processors int
		wanted     string
	}{{1, "1"}, {2, "at least 1.9"}, {4, "at least 3.6"}} {
		s.grow(ctx, step.processors, s.capped)
		pause(ctx, s.settle)
		rate := c.measure(ctx, s.span).rate()
		if first == 0 {
			first = rate
		}
		what := fmt.Sprintf("%d processors, %d at once each: answers a second, ratio", step.processors, s.capped)
		s.table.row(what, fmt.Sprintf("%.0f, %.2f", rate, rate/first), step.wanted)
		s.spread(fmt.Sprintf("partitions of %d processors", step.processors))
	}
	c.end(ctx, 2*time.Minute)
}

// faults starts and stops processors under load.
func (s *scaling) faults(ctx context.Context) {
	s.grow(ctx, 4, uncapped)
	c := s.converse(ctx, s.faulty, 3)
	pause(ctx, s.warm)
	calm := c.measure(ctx, s.settle).longest
	what := fmt.Sprintf("4 processors, %d visitors, 3 messages each at once: longest wait", s.faulty)
	s.table.row(what, round(calm), "")
	another := func() { s.grow(ctx, 4, uncapped) }
	for _, step := range []struct {
		what, wanted string
		change       func()
	}{
		{"kill -9 of one", "at most 5 s more", func() { _ = s.oldest().cmd.Process.Kill() }},
		{"another one starts", "at most 1 s more", another},
		{"SIGTERM of one", "at most 1 s more", func() { s.oldest().stop() }},
		{"another one starts again", "at most 1 s more", another},
		{"rolling restart", "at most 1 s more", func() {
			for range 4 {
				s.grow(ctx, 5, uncapped)
				s.oldest().stop()
			}
		}},
	} {
		from := time.Now()
		step.change()
		pause(ctx, s.settle)
		longest := s.trial.outcome(from, time.Now(), 0).longest
		more := max(0, longest-calm)
		s.table.row(step.what+": longest wait, more than before", round(longest)+", "+round(more), step.wanted)
		s.spread("partitions after it")
	}
	c.end(ctx, time.Minute)
}

// hanging makes the webhook hold one visitor's message.
func (s *scaling) hanging(ctx context.Context) {
	s.grow(ctx, 1, uncapped)
	c := s.converse(ctx, s.faulty, 1)
	pause(ctx, s.warm)
	before := c.measure(ctx, s.span)
	held := s.newVisitors(1)[0] // nobody waits for the answer
	s.check(s.write(ctx, held.id, `{"text":"`+hangingText+`"}`))
	during := c.measure(ctx, s.span)
	s.table.row(fmt.Sprintf("a message that hangs for %s: p99 of the others before, during", s.webhook.hang),
		round(before.p99)+", "+round(during.p99), "within 10%")
	c.end(ctx, time.Minute)
}

// spread reports how many partitions of the bot each processor reads.
func (s *scaling) spread(what string) {
	counts := make([]int, len(s.replicas))
	for i, p := range s.replicas {
		metrics, err := get(p.ops + "/metrics")
		s.check(err)
		_, value, _ := strings.Cut(metrics, `parley_bus_partitions{consumer="bot",stream="INBOUND"} `)
		value, _, _ = strings.Cut(value, "\n")
		counts[i], _ = strconv.Atoi(value) // no value: none yet
	}
	slices.Sort(counts)
	s.table.row(what, fmt.Sprint(counts), "within one of each other")
}

func round(d time.Duration) string { return d.Round(time.Millisecond).String() }
