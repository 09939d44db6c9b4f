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
	// A chat's replies are stored in their order: all are stored when the last one of each chat is.
	first, last := "", make([]string, recorderChats)
	reply := func(key, n int, _ time.Time) event.Event {
		v := visitors[key]
		m := newMessage()
		last[key] = m.ID
		if key == 0 && n == 1 {
			first = m.ID
		}
		return event.Reply{
			CompanyID: r.Demo.CompanyID, AppID: r.Demo.AppID, ChatUserID: v.id, ChatID: v.chatID, Message: m,
		}
	}
	err = rig.Publish(ctx, b, rig.Load{Keys: recorderChats, Total: z.replies, Event: reply})
	if err != nil {
		return "", err
	}
	processor, err := r.Service(ctx, "processor", "BOT=external", "DISPATCHER=false")
	if err != nil {
		return "", err
	}
	stored := func(id string) bool {
		_, _, err := p.store.FindMessage(ctx, id) // an error lasts until Await gives up
		return err == nil
	}
	if err := rig.Await(ctx, "a reply is stored", func() bool { return stored(first) }); err != nil {
		return "", err
	}
	began := time.Now()
	cpu, engines := processor.CPU(), r.Engines.CPU()
	allStored := func() bool {
		for len(last) > 0 && stored(last[0]) {
			last = last[1:]
		}
		return len(last) == 0
	}
	if err := rig.Await(ctx, "all replies are stored", allStored); err != nil {
		return "", err
	}
	n := z.replies
	rate := float64(n) / time.Since(began).Seconds()
	cpu = processor.CPU() - cpu
	engines = r.Engines.CPU() - engines
	return fmt.Sprintf("\nRecorder, %d replies into %d chats: %.0f events/s (at least 20,000/s), "+
		"%.3f CPU s per 1,000, engines %.3f, peak RSS %d MiB\n",
		z.replies, recorderChats, rate,
		rig.PerThousand(cpu, n), rig.PerThousand(engines, n), processor.PeakRSS()>>20), nil
}
