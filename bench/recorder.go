package main

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-chat/parley/bench/internal/rig"
	"github.com/parley-chat/parley/pkg/event"
)

// recorderChats is the number of chats whose replies the recorder stores.
const recorderChats = 1000

// measureRecorder publishes replies while no processor runs, starts one that only records, and measures the time from
// the first message in the history to the last.
func measureRecorder(ctx context.Context, r *rig.Rig, z sizes) (string, error) {
	p, err := openPopulation(r)
	if err != nil {
		return "", err
	}
	defer p.close()
	visitors, err := p.visitors(ctx, recorderChats)
	if err != nil {
		return "", err
	}
	b, err := r.OpenBus(ctx)
	if err != nil {
		return "", err
	}
	defer b.Close()
	reply := func(key, _ int, _ time.Time) event.Event {
		v := visitors[key]
		return event.Reply{
			CompanyID: r.Demo.CompanyID, AppID: r.Demo.AppID, ChatUserID: v.id, ChatID: v.chatID, Message: newMessage(),
		}
	}
	err = rig.Publish(ctx, b, rig.Load{Keys: recorderChats, Total: z.replies, Event: reply})
	if err != nil {
		return "", err
	}
	before, err := p.store.CountRecords(ctx, "messages")
	if err != nil {
		return "", err
	}
	processor, err := r.Service(ctx, "processor", "BOT=external", "DISPATCHER=false")
	if err != nil {
		return "", err
	}
	stored := func() int {
		n, _ := p.store.CountRecords(ctx, "messages") // an error lasts until Await gives up
		return int(n - before)
	}
	if err := rig.Await(ctx, "a reply is stored", func() bool { return stored() > 0 }); err != nil {
		return "", err
	}
	have, began := stored(), time.Now()
	cpu, engines := processor.CPU(), r.Engines.CPU()
	if err := rig.Await(ctx, "all replies are stored", func() bool { return stored() >= z.replies }); err != nil {
		return "", err
	}
	n := z.replies - have
	rate := float64(n) / time.Since(began).Seconds()
	cpu = processor.CPU() - cpu
	engines = r.Engines.CPU() - engines
	return fmt.Sprintf("\nRecorder, %d replies into %d chats: %.0f events/s (at least 20,000/s), "+
		"%.3f CPU s per 1,000, engines %.3f, peak RSS %d MiB\n",
		z.replies, recorderChats, rate,
		rig.PerThousand(cpu, n), rig.PerThousand(engines, n), processor.PeakRSS()>>20), nil
}
