package parleyctl

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
)

// verifyRate is the default of --rate, in MiB: a small part of what a disk reads and a core sends.
const verifyRate = 20

// damagedError means that stored messages cannot be read.
type damagedError struct{ messages, dropped uint64 }

func (e *damagedError) Error() string {
	text := fmt.Sprintf("%d messages cannot be read", e.messages)
	if e.dropped > 0 {
		text += fmt.Sprintf(", and NATS has dropped %s of damaged files", bytes(e.dropped))
	}
	return text + ": docs/runbook.md#damaged-messages"
}

// verifiedView is the result for one copy of a stream.
type verifiedView struct {
	Stream  string       `json:"stream"`
	Server  string       `json:"server,omitempty"`
	Read    uint64       `json:"read"`
	Damaged []damageView `json:"damaged"`
	Dropped uint64       `json:"droppedBytes,omitempty"`
}

type damageView struct {
	First   uint64    `json:"firstSequence,omitempty"`
	Last    uint64    `json:"lastSequence,omitempty"`
	Subject string    `json:"subject,omitempty"`
	After   chat.Time `json:"storedAfter,omitzero"`
	Before  chat.Time `json:"storedBefore,omitzero"`
}

// messages names the damaged messages; empty: none.
func (d damageView) messages() string {
	switch {
	case d.Subject != "" || d.First == 0:
		return d.Subject
	case d.First == d.Last:
		return strconv.FormatUint(d.First, 10)
	}
	return fmt.Sprintf("%d-%d", d.First, d.Last)
}

func (a *app) streamsVerify() *cobra.Command {
	var mib int
	c := &cobra.Command{
		Use: "verify [STREAM...]", Short: "Read every stored message, and name those that cannot be read",
		ValidArgsFunction: fixed(savedStreams()...),
		Args:              cobra.ArbitraryArgs,
		Long: `Read every stored message of the streams and the file store, on each NATS server that has a copy, and
name those that cannot be read.

NATS keeps a checksum of each message and does not serve a damaged one: consumers go on with the next one, without an
error. This command compares what can be read with what should be there. It changes nothing and can run at any time,
for example before each backup. What a server holds in memory is not read from its disk.

A message is named by its sequence and by the times of the messages around it; in POSITIONS and REVOCATIONS by its
subject. DROPPED is what NATS has cut off from a damaged file since its start. The exit code is 1 if something is
damaged; docs/runbook.md#damaged-messages says what to do.`,
		Example: `  parleyctl streams verify
  parleyctl streams verify INBOUND OBJ_FILES --rate 5 -o json`,
	}
	c.Flags().IntVar(&mib, "rate", verifyRate, "how much each server reads a second, in MiB; 0: unlimited")
	var streams []string
	checkFirst(c, func() (err error) {
		if err := notNegative("--rate", mib); err != nil {
			return err
		}
		streams, err = matchAmong(savedStreams(), c.Flags().Args())
		return err
	})
	return a.withBus(c, func(ctx context.Context, b *bus.Bus, args []string) error {
		var found []bus.Verification
		var failed error
		for _, stream := range streams {
			verified, err := b.Verify(ctx, stream, mib<<20)
			found = append(found, verified...)
			if apperr.Is(err, apperr.NotFound) && len(args) == 0 {
				continue
			}
			if err != nil {
				failed = err
				break
			}
		}
		if err := printVerified(a, found); err != nil {
			return err
		}
		if failed != nil {
			return failed
		}
		return damageOf(found)
	})
}

// damageOf returns an error if something is damaged.
func damageOf(found []bus.Verification) error {
	var e damagedError
	for _, v := range found {
		e.dropped += v.Dropped
		for _, d := range v.Damaged {
			e.messages += d.Messages()
		}
	}
	if e == (damagedError{}) {
		return nil
	}
	return &e
}

func viewOf(v bus.Verification) verifiedView {
	view := verifiedView{Stream: v.Stream, Server: v.Server, Read: v.Read, Dropped: v.Dropped, Damaged: []damageView{}}
	for _, d := range v.Damaged {
		view.Damaged = append(view.Damaged, damageView{
			First: d.First, Last: d.Last, Subject: d.Subject, After: chat.Time(d.After), Before: chat.Time(d.Before),
		})
	}
	return view
}

// verifiedRow is a row of the table: one for each damaged range, or one for a copy without damage.
type verifiedRow struct {
	verifiedView
	damageView
}

func printVerified(a *app, found []bus.Verification) error {
	views := make([]verifiedView, 0, len(found))
	var rows []verifiedRow
	for _, v := range found {
		view := viewOf(v)
		views = append(views, view)
		if len(view.Damaged) == 0 {
			rows = append(rows, verifiedRow{verifiedView: view})
		}
		for _, d := range view.Damaged {
			rows = append(rows, verifiedRow{view, d})
		}
	}
	if a.wantsJSON() {
		return a.printJSON(views)
	}
	return printList(a, rows,
		column[verifiedRow]{"stream", func(r verifiedRow) string { return r.Stream }},
		column[verifiedRow]{"server", func(r verifiedRow) string { return r.Server }},
		column[verifiedRow]{"read", func(r verifiedRow) string { return strconv.FormatUint(r.Read, 10) }},
		column[verifiedRow]{"dropped", func(r verifiedRow) string { return bytes(r.Dropped) }},
		column[verifiedRow]{"damaged", func(r verifiedRow) string { return r.messages() }},
		column[verifiedRow]{"stored after", func(r verifiedRow) string { return r.After.String() }},
		column[verifiedRow]{"stored before", func(r verifiedRow) string { return r.Before.String() }})
}
