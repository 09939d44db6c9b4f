// Scale measures the effect of replicas: processors that share the visitors' messages by partition, with a webhook that
// takes half a second instead of a bot, so that two cores suffice.
//
// It starts the servers and the processors built by `make build`, acts as the visitors and the webhook, and prints one
// table: concurrent answers, the gain of two and four processors, the distribution of partitions after each change,
// visitors' waiting time when a processor is killed, stopped or replaced, and the effect of one hanging answer on other
// visitors. The stream REPLIES, from which gateways deliver, is checked for each answer exactly once, in its visitor's
// order.
//
// main.go measures, clients.go has the visitors, webhook.go answers and starts the processors. The row "readers" of
// bench/realtime measures the cost of more gateways; `make bench-scale` runs both.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/parley-chat/parley/bench/internal/rig"
)

// uncapped is the number of answers that a processor awaits at once by default.
const uncapped = 1000

// sizes are the sizes and durations of a run.
type sizes struct {
	visitors int           // of the load on one processor
	capped   int           // BOT_CONCURRENCY when comparing processors
	faulty   int           // visitors while processors start and stop
	warm     time.Duration // warm-up
	span     time.Duration // of a measured load
	settle   time.Duration // after a change of the number of replicas
	hang     time.Duration
}

func sizesOf(small bool) sizes {
	if small {
		return sizes{
			visitors: 200, capped: 20, faulty: 40,
			warm: 2 * time.Second, span: 3 * time.Second, settle: 4 * time.Second, hang: 5 * time.Second,
		}
	}
	return sizes{
		visitors: 5000, capped: 200, faulty: 400,
		warm: 8 * time.Second, span: 15 * time.Second, settle: 10 * time.Second, hang: time.Minute,
	}
}

func main() {
	bin := flag.String("bin", "bin", "directory of the binaries built by `make build`")
	small := flag.Bool("small", false, "small sizes: checks that the benchmark works, without meaningful figures")
	timeout := flag.Duration("timeout", 12*time.Minute, "timeout of the run; the results so far are printed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	m := &measurements{
		sizes: sizesOf(*small),
		table: rig.NewTable("Replicas of the processor, webhook of 500 ms", "what", "measured", "wanted"),
	}
	err := m.run(ctx, *bin)
	fmt.Print(m.table) // the results so far
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// measurements are the results of a run so far.
type measurements struct {
	sizes
	deployment *deployment
	table      *rig.Table
	total      tally
}

func (m *measurements) run(ctx context.Context, bin string) (err error) {
	m.deployment, err = deploy(ctx, bin)
	defer m.deployment.close()
	if err != nil {
		return err
	}
	for _, measure := range []func(context.Context) error{m.one, m.several, m.faults, m.hanging} {
		if err := measure(ctx); err != nil {
			return err
		}
		m.deployment.stopProcessors()
	}
	t := m.total
	m.table.Row("asked in all; lost, answered twice, out of order",
		fmt.Sprintf("%d; %d, %d, %d", t.asked, t.lost, t.doubled, t.outOfOrder), "0, 0, 0")
	return nil
}

// end lets the clients finish and adds their tally to the total.
func (m *measurements) end(ctx context.Context, c *clients, limit time.Duration) error {
	t, err := c.end(ctx, limit)
	m.total.asked += t.asked
	m.total.lost += t.lost
	m.total.doubled += t.doubled
	m.total.outOfOrder += t.outOfOrder
	return err
}

// one measures one processor with its defaults.
func (m *measurements) one(ctx context.Context) error {
	if err := m.deployment.grow(ctx, 1, uncapped); err != nil {
		return err
	}
	c := m.deployment.startClients(ctx, m.visitors, 1)
	pause(ctx, m.warm)
	m.deployment.webhook.peakSince()
	p := m.deployment.processors[0]
	cpu := p.CPU()
	f := c.measure(ctx, m.span)
	cpu = p.CPU() - cpu
	m.table.Row(fmt.Sprintf("1 processor, %d visitors: answers at once", m.visitors),
		fmt.Sprint(m.deployment.webhook.peakSince()), fmt.Sprintf("at least %d", min(uncapped, m.visitors)))
	m.table.Row("answers a second", fmt.Sprintf("%.0f, with %.3f s of the processor's CPU for 1,000, and %d MB",
		f.rate, rig.PerThousand(cpu, f.answers), p.RSS()>>20), "at least 1,800")
	return m.end(ctx, c, time.Minute)
}

// several compares processors with limited concurrency, so that the machine is not the bottleneck.
func (m *measurements) several(ctx context.Context) error {
	c := m.deployment.startClients(ctx, m.visitors, 1)
	first := 0.0
	for _, step := range []struct {
		processors int
		wanted     string
	}{{1, "1"}, {2, "at least 1.9"}, {4, "at least 3.6"}} {
		if err := m.deployment.grow(ctx, step.processors, m.capped); err != nil {
			return err
		}
		pause(ctx, m.settle)
		f := c.measure(ctx, m.span)
		if first == 0 {
			first = f.rate
		}
		what := fmt.Sprintf("%d processors, %d at once each: answers a second, ratio", step.processors, m.capped)
		m.table.Row(what, fmt.Sprintf("%.0f, %.2f", f.rate, f.rate/first), step.wanted)
		if err := m.spread(ctx, fmt.Sprintf("partitions of %d processors", step.processors)); err != nil {
			return err
		}
	}
	return m.end(ctx, c, 2*time.Minute)
}

// spread reports the distribution of the partitions.
func (m *measurements) spread(ctx context.Context, what string) error {
	counts, err := m.deployment.partitions(ctx)
	slices.Sort(counts)
	m.table.Row(what, fmt.Sprint(counts), "within one of each other")
	return err
}

// faults starts and stops processors under load.
func (m *measurements) faults(ctx context.Context) error {
	d := m.deployment
	if err := d.grow(ctx, 4, uncapped); err != nil {
		return err
	}
	c := d.startClients(ctx, m.faulty, 3)
	pause(ctx, m.warm)
	calm := c.measure(ctx, m.settle)
	what := fmt.Sprintf("4 processors, %d visitors, 3 messages each at once: longest wait", m.faulty)
	m.table.Row(what, round(calm.longest), "")
	another := func() error { return d.grow(ctx, 4, uncapped) }
	for _, change := range []struct {
		what, want string
		change     func() error
	}{
		{"kill -9 of one", "at most 5 s more", func() error { d.oldest().Kill(); return nil }},
		{"another one starts", "at most 1 s more", another},
		{"SIGTERM of one", "at most 1 s more", func() error { d.oldest().Stop(); return nil }},
		{"another one starts again", "at most 1 s more", another},
		{"rolling restart", "at most 1 s more", func() error {
			for range 4 {
				if err := d.grow(ctx, 5, uncapped); err != nil {
					return err
				}
				d.oldest().Stop()
			}
			return nil
		}},
	} {
		from := time.Now()
		if err := change.change(); err != nil {
			return fmt.Errorf("%s: %w", change.what, err)
		}
		pause(ctx, m.settle)
		f := c.during(from, time.Now())
		more := max(0, f.longest-calm.longest)
		m.table.Row(change.what+": longest wait, more than before", round(f.longest)+", "+round(more), change.want)
		if err := m.spread(ctx, "partitions after it"); err != nil {
			return err
		}
	}
	return m.end(ctx, c, time.Minute)
}

// hanging makes the webhook hold one visitor's message.
func (m *measurements) hanging(ctx context.Context) error {
	m.deployment.webhook.hang = m.hang
	if err := m.deployment.grow(ctx, 1, uncapped); err != nil {
		return err
	}
	c := m.deployment.startClients(ctx, m.faulty, 1)
	pause(ctx, m.warm)
	before := c.measure(ctx, m.span)
	c.writeHanging(ctx)
	during := c.measure(ctx, m.span)
	m.table.Row(fmt.Sprintf("a message that hangs for %s: p99 of the others before, during", m.hang),
		round(before.p99)+", "+round(during.p99), "within 10%")
	return m.end(ctx, c, time.Minute)
}

func round(d time.Duration) string { return d.Round(time.Millisecond).String() }

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
