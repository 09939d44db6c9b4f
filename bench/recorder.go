package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/parley-chat/parley/bench/internal/rig"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
)

// recorderEvents is the number of replies waiting for the recorder at its start.
const recorderEvents = 200_000

// recorderFigure is the speed at which the recorder stored them.
type recorderFigure struct {
	took         time.Duration
	cpu, engines time.Duration
	peakRSS      int64
}

// measureRecorder publishes replies while no processor runs, starts one that only records, and measures the time from
// the first message in the history to the last.
func measureRecorder(ctx context.Context, r *bench, bin string) (f recorderFigure, err error) {
	p, err := populateChats(ctx, r)
	if err != nil {
		return f, err
	}
	defer p.close()
	if err := publishReplies(ctx, r, p); err != nil {
		return f, err
	}
	before, err := p.store.CountRecords(ctx, "messages")
	if err != nil {
		return f, err
	}
	ops := rig.FreeAddr()
	processor, err := rig.Start([]string{"OPS_ADDR=" + ops, "BOT=external", "DISPATCHER=false"}, r.log("processor"), filepath.Join(bin, "processor"))
	if err != nil {
		return f, err
	}
	defer processor.Stop()
	processor.Drain()
	var first time.Time
	var have int64
	var cpu, engines time.Duration
	for ctx.Err() == nil {
		n, err := p.store.CountRecords(ctx, "messages")
		if err != nil {
			return f, err
		}
		if n > before && first.IsZero() {
			first, have, cpu, engines = time.Now(), n, processor.CPU(), r.engines.CPU()
		}
		if n >= before+recorderEvents {
			took := time.Since(first)
			share := float64(recorderEvents) / float64(n-have)
			return recorderFigure{
				took: time.Duration(float64(took) * share), cpu: time.Duration(float64(processor.CPU()-cpu) * share),
				engines: time.Duration(float64(r.engines.CPU()-engines) * share), peakRSS: processor.PeakRSS(),
			}, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return f, ctx.Err()
}

// populateChats creates 1,000 chats for the replies.
func populateChats(ctx context.Context, r *bench) (*population, error) {
	p, err := openPopulation(r)
	if err != nil {
		return nil, err
	}
	p.cold, err = p.visitors(ctx, 1000)
	return p, err
}

func publishReplies(ctx context.Context, r *bench, p *population) error {
	b, err := bus.Open(bus.Config{URL: r.natsURL, Name: "bench", Observe: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer b.Close()
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range 4 * connections {
		group.Go(func() error {
			for {
				n := next.Add(1) - 1
				if n >= recorderEvents {
					return nil
				}
				v := p.cold[n%int64(len(p.cold))]
				err := b.Publish(ctx, event.Derived(), event.Reply{
					CompanyID: r.demo.CompanyID, AppID: r.demo.AppID, ChatUserID: v.id, ChatID: v.chatID,
					Message: chat.Message{
						ID: uuid.Must(uuid.NewV7()).String(), CreatedAt: time.Now().UTC(), Type: chat.Text, Data: []byte(messageData),
						NameOfSender: "Polly", IsFromSupport: true,
					},
				})
				if err != nil {
					return err
				}
			}
		})
	}
	return group.Wait()
}

func (f recorderFigure) line() string {
	return fmt.Sprintf("\nRecorder, %d replies into 1,000 chats: %.0f events/s, %.3f CPU s per 1,000, engines %.3f, peak RSS %.0f MiB (at least 20,000/s)\n",
		recorderEvents, recorderEvents/f.took.Seconds(), f.cpu.Seconds()*1000/recorderEvents, f.engines.Seconds()*1000/recorderEvents,
		float64(f.peakRSS)/(1<<20))
}
