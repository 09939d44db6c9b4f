package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"
)

// uncapped is the default of BOT_CONCURRENCY.
const uncapped = 1000

// measurements are the results of a run so far.
type measurements struct {
	sizes
	world *world
	rows  []line
	total tally
}

// line is a row of the table.
type line struct{ what, got, want string }

func (m *measurements) add(what, got, want string) {
	m.rows = append(m.rows, line{what, got, want})
	fmt.Fprintf(os.Stderr, "%-60s %s\n", what, got)
}

func (m *measurements) all(ctx context.Context) error {
	for _, measure := range []func(context.Context) error{m.one, m.several, m.faults, m.hanging} {
		if err := measure(ctx); err != nil {
			return err
		}
		m.world.stopAll()
	}
	m.add("asked in all; lost, answered twice, out of order", fmt.Sprintf("%d; %d, %d, %d", m.total.asked, m.total.lost, m.total.doubled, m.total.astray), "0, 0, 0")
	return nil
}

// end adds a crowd's tally to the total.
func (m *measurements) end(ctx context.Context, c *crowd, limit time.Duration) error {
	t, err := c.end(ctx, limit)
	m.total.asked += t.asked
	m.total.lost += t.lost
	m.total.doubled += t.doubled
	m.total.astray += t.astray
	return err
}

// one measures one processor with its defaults.
func (m *measurements) one(ctx context.Context) error {
	if err := m.world.grow(ctx, 1, uncapped); err != nil {
		return err
	}
	c := m.world.enter(ctx, m.visitors, 1)
	pause(ctx, m.warm)
	m.world.webhook.most()
	cpu := m.world.processors[0].CPU()
	f := c.measure(ctx, m.span)
	cpu = m.world.processors[0].CPU() - cpu
	m.add(fmt.Sprintf("1 processor, %d visitors: answers at once", m.visitors), fmt.Sprint(m.world.webhook.most()), fmt.Sprintf("at least %d", min(uncapped, m.visitors)))
	m.add("answers a second", fmt.Sprintf("%.0f", f.rate), "at least 1,800")
	m.add("CPU of the processor for 1,000 answers", fmt.Sprintf("%.3f s", cpu.Seconds()*1000/float64(max(1, f.answers))), "")
	m.add("its memory", fmt.Sprintf("%d MB", m.world.processors[0].RSS()>>20), "")
	return m.end(ctx, c, time.Minute)
}

// several compares processors with limited concurrency, so that the machine is not the bottleneck.
func (m *measurements) several(ctx context.Context) error {
	c := m.world.enter(ctx, m.visitors, 1)
	first := 0.0
	for _, n := range []int{1, 2, 4} {
		if err := m.world.grow(ctx, n, m.capped); err != nil {
			return err
		}
		pause(ctx, m.settle)
		f := c.measure(ctx, m.span)
		if n == 1 {
			first = f.rate
		}
		want := map[int]string{1: "1", 2: "at least 1.9", 4: "at least 3.6"}[n]
		m.add(fmt.Sprintf("%d processors, %d at once each: answers a second, ratio", n, m.capped), fmt.Sprintf("%.0f, %.2f", f.rate, f.rate/first), want)
		if err := m.spread(ctx, fmt.Sprintf("partitions of %d processors", n)); err != nil {
			return err
		}
	}
	return m.end(ctx, c, 2*time.Minute)
}

// spread reports the distribution of the partitions.
func (m *measurements) spread(ctx context.Context, what string) error {
	counts, err := m.world.partitions(ctx)
	if err != nil {
		return err
	}
	slices.Sort(counts)
	m.add(what, fmt.Sprint(counts), "within one of each other")
	return nil
}

// faults starts and stops processors under load.
func (m *measurements) faults(ctx context.Context) error {
	if err := m.world.grow(ctx, 4, uncapped); err != nil {
		return err
	}
	c := m.world.enter(ctx, m.faulty, 3)
	pause(ctx, m.warm)
	calm := c.measure(ctx, m.settle)
	m.add(fmt.Sprintf("4 processors, %d visitors, 3 messages each at once: longest wait", m.faulty), round(calm.longest), "")
	changes := []struct {
		what, want string
		change     func() error
	}{
		{"kill -9 of one", "at most 5 s more", func() error {
			p := m.world.take()
			err := p.Signal(syscall.SIGKILL)
			p.Stop()
			return err
		}},
		{"another one starts", "at most 1 s more", func() error { return m.world.grow(ctx, 4, uncapped) }},
		{"SIGTERM of one", "at most 1 s more", func() error { m.world.take().Stop(); return nil }},
		{"another one starts again", "at most 1 s more", func() error { return m.world.grow(ctx, 4, uncapped) }},
		{"rolling restart", "at most 1 s more", func() error {
			for range 4 {
				if _, err := m.world.start(ctx, uncapped); err != nil {
					return err
				}
				m.world.take().Stop()
			}
			return nil
		}},
	}
	for _, change := range changes {
		from := time.Now()
		if err := change.change(); err != nil {
			return fmt.Errorf("%s: %w", change.what, err)
		}
		pause(ctx, m.settle)
		f := c.during(from, time.Now())
		m.add(change.what+": longest wait, more than before", fmt.Sprintf("%s, %s", round(f.longest), round(max(0, f.longest-calm.longest))), change.want)
		if err := m.spread(ctx, "partitions after it"); err != nil {
			return err
		}
	}
	return m.end(ctx, c, time.Minute)
}

// hanging makes the webhook hold one visitor's message.
func (m *measurements) hanging(ctx context.Context) error {
	m.world.webhook.hang = m.hang
	if err := m.world.grow(ctx, 1, uncapped); err != nil {
		return err
	}
	c := m.world.enter(ctx, m.faulty, 1)
	pause(ctx, m.warm)
	before := c.measure(ctx, m.span)
	stuck := &visitor{id: c.visitors[0].id + "-hangs", text: "hang", came: make(chan struct{}, 10)}
	c.writing.Go(func() { c.write(ctx, stuck, 1) })
	during := c.measure(ctx, m.span)
	m.add(fmt.Sprintf("a message that hangs for %s: p99 of the others before, during", m.hang), fmt.Sprintf("%s, %s", round(before.p99), round(during.p99)), "within 10%")
	stuck.came <- struct{}{} // nothing waits for it
	return m.end(ctx, c, time.Minute)
}

func round(d time.Duration) string { return d.Round(time.Millisecond).String() }
