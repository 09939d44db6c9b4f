package main

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// readerFigure is the cost of replies with a number of gateways, and how they share the reading.
type readerFigure struct {
	gateways   int
	partitions []int // of each gateway
	outcome
}

// measureReaders measures the same load with 1, 2 and 3 gateways.
func measureReaders(ctx context.Context, b *bench, c contender, f *figures) error {
	for gateways := 1; gateways <= 3; gateways++ {
		r, err := b.readers(ctx, c, gateways)
		if err != nil {
			return err
		}
		f.readers = append(f.readers, r)
	}
	return nil
}

func (b *bench) readers(ctx context.Context, c contender, gateways int) (r readerFigure, err error) {
	s, err := b.openStage(ctx, c, gateways)
	if err != nil {
		return r, err
	}
	defer s.close()
	r.gateways = gateways
	if _, err := s.join(ctx, 0, b.rooms, own); err != nil {
		return r, err
	}
	if _, err = s.pace(ctx, b.rooms, pace{b.cost.rate, b.warm}); err != nil {
		return r, err
	}
	err = b.profiled(ctx, s, fmt.Sprintf("readers-%d", gateways), b.cost.time, func() (err error) {
		r.outcome, err = s.pace(ctx, b.rooms, b.cost)
		return err
	})
	if err != nil {
		return r, err
	}
	for _, ops := range s.ops {
		n, err := partitionsOf(ctx, ops)
		if err != nil {
			return r, err
		}
		r.partitions = append(r.partitions, n)
	}
	slices.Sort(r.partitions)
	return r, nil
}

// partitionsOf returns how many partitions of the replies a gateway reads, from its metrics; 0 if they have no such
// metric.
func partitionsOf(ctx context.Context, ops string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+ops+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, fmt.Errorf("reading metrics: %w", err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), `parley_bus_partitions{consumer="socket-gateway",stream="REPLIES"} `); ok {
			return strconv.Atoi(value)
		}
	}
	return 0, nil
}

// moreReaders is the accepted total cost of three gateways relative to one.
const moreReaders = 1.1

func reportReaders(w *strings.Builder, z sizes, results map[string]*figures) {
	printed := false
	for _, name := range []string{"node", "parley"} {
		f := results[name]
		if f == nil || len(f.readers) == 0 {
			continue
		}
		if !printed {
			fmt.Fprintf(w, "\nReaders: %d replies/s to %d visitors in turn.\n\n", z.cost.rate, z.rooms)
			fmt.Fprint(w, "| | gateways | partitions of each | CPU s of all per 1,000 | of one gateway's | NATS and Redis | p99 | lost, doubled, out of order | target | met |\n")
			fmt.Fprint(w, "|---|---|---|---|---|---|---|---|---|---|\n")
			printed = true
		}
		for _, r := range f.readers {
			ratio, target, met := r.cpuPerThousand()/f.readers[0].cpuPerThousand(), "", ""
			if name == "parley" && r.gateways == 3 {
				target, met = "at most 110%", targetMet(ratio, !math.IsNaN(ratio) && ratio <= moreReaders && r.lost()+r.doubled+r.disordered+r.astray == 0)
			}
			fmt.Fprintf(w, "| %s | %d | %v | %s | %.0f%% | %s | %s | %d | %s | %s |\n", label(name), r.gateways, r.partitions, number(r.cpuPerThousand(), ""), 100*ratio,
				number(r.enginesPerThousand(), ""), number(milliseconds(r.p99), "ms"), r.lost()+r.doubled+r.disordered+r.astray, target, met)
		}
	}
}
