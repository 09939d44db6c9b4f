package parleyctl

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/inspect"
)

func deadLetterColumns() []column[inspect.DeadLetter] {
	return []column[inspect.DeadLetter]{
		{"letter", func(v inspect.DeadLetter) string { return strconv.FormatUint(v.Sequence, 10) }},
		{"time", func(v inspect.DeadLetter) string { return v.Time.String() }},
		{"from", func(v inspect.DeadLetter) string { return fmt.Sprintf("%s/%d", v.Stream, v.Original) }},
		{"consumer", func(v inspect.DeadLetter) string { return v.Consumer }},
		{"message", func(v inspect.DeadLetter) string { return v.MessageID }},
		{"tries", func(v inspect.DeadLetter) string { return strconv.Itoa(v.Attempts) }},
		{"reason", func(v inspect.DeadLetter) string { return shorten(v.Reason, 80) }},
	}
}

// deadLetterFilter selects dead letters.
type deadLetterFilter struct {
	inspect.DeadLetterFilter
	since string
}

func (f *deadLetterFilter) add(c *cobra.Command) {
	addChoiceFlag(c, &f.Stream, "stream", "", "only of events of this stream", inspect.StreamNames()...)
	c.Flags().StringVar(&f.Consumer, "consumer", "", "only of this consumer")
	c.Flags().StringVar(&f.CompanyID, "company", "", "only of this company's events")
	c.Flags().StringVar(&f.ChatID, "chat", "", "only of this chat's events")
	c.Flags().StringVar(&f.MessageID, "message", "", "only of this message")
	c.Flags().StringVar(&f.Reason, "reason", "", "only where the reason contains this")
	c.Flags().StringVar(&f.since, "since", "", "only those given up since (10m, 2d, 2026-11-21T12:00:00Z)")
}

func (f *deadLetterFilter) check(a *app) (err error) {
	if f.Stream != "" {
		streams, err := matchStreams([]string{f.Stream})
		if err != nil {
			return err
		}
		f.Stream = streams[0]
	}
	f.Since, err = parseSince(a.Now(), f.since)
	return err
}

func (a *app) dead() *cobra.Command {
	c := commandGroup("dead", "List, show, replay and drop dead letters; skip events", []string{"dead-letters"},
		a.deadList(), a.deadShow(), a.deadReplay(), a.deadDrop(), a.deadSkip())
	c.Long = `A dead letter is an event that a consumer gave up on, with the reason. It can be given to that consumer again (replay), when
what was wrong has been put right, or be removed for good (drop). An event that a consumer keeps trying can be made a dead letter now (skip).`
	return c
}

func (a *app) deadList() *cobra.Command {
	var f deadLetterFilter
	var limit int
	c := &cobra.Command{
		Use: "list", Short: "List dead letters, the oldest first", Aliases: []string{"ls"}, Args: exactArgs(),
		Example: "  parleyctl dead list --consumer recorder --since 1d",
	}
	f.add(c)
	c.Flags().IntVar(&limit, "limit", defaultLimit, "maximum number; 0: all")
	checkFirst(c, func() error { return notNegative("--limit", limit) })
	checkFirst(c, func() error { return f.check(a) })
	return a.withBus(c, func(ctx context.Context, b *bus.Bus, _ []string) error {
		found, err := inspect.DeadLetters(ctx, b, f.DeadLetterFilter, limit)
		if err != nil {
			return err
		}
		return printList(a, found, deadLetterColumns()...)
	})
}

// parseSequence parses the number of a dead letter.
func parseSequence(arg string) (uint64, error) {
	n, err := strconv.ParseUint(arg, 10, 64)
	if err != nil || n == 0 {
		return 0, usage(fmt.Sprintf("%q is not the number of a dead letter; see dead list", arg))
	}
	return n, nil
}

func (a *app) deadShow() *cobra.Command {
	c := &cobra.Command{
		Use:               "show LETTER",
		Short:             "Show a dead letter with its headers and its event",
		Args:              exactArgs("LETTER"),
		ValidArgsFunction: a.completeDeadLetters,
	}
	var sequence uint64
	checkFirst(c, func() (err error) {
		sequence, err = parseSequence(c.Flags().Arg(0))
		return err
	})
	return a.withBus(c, func(ctx context.Context, b *bus.Bus, _ []string) error {
		l, err := b.DeadLetter(ctx, sequence)
		if err != nil {
			return err
		}
		return a.printDeadLetter(inspect.DetailOf(l))
	})
}

func (a *app) printDeadLetter(d inspect.DeadLetterDetail) error {
	return printOne(
		a, d,
		row{"letter", strconv.FormatUint(d.Sequence, 10)},
		row{"time", d.Time.String()},
		row{"stream", d.Stream},
		row{"sequence", strconv.FormatUint(d.Original, 10)},
		row{"consumer", d.Consumer},
		row{"subject", d.Subject},
		row{"type", d.Type},
		row{"message", d.MessageID},
		row{"company", d.CompanyID},
		row{"chat", d.ChatID},
		row{"tries", strconv.Itoa(d.Attempts)},
		row{"reason", d.Reason},
		row{"truncated", yesNo(d.Truncated)},
		row{"event", string(d.Event) + d.Text},
	)
}

// deadLetterSelection selects dead letters by arguments, or with --all by filters.
type deadLetterSelection struct {
	deadLetterFilter
	all bool
}

func (o *deadLetterSelection) add(c *cobra.Command) {
	o.deadLetterFilter.add(c)
	c.Flags().BoolVar(&o.all, "all", false, "all dead letters that match the filters")
}

func (o *deadLetterSelection) check(a *app, c *cobra.Command, args []string) error {
	if o.all == (len(args) > 0) {
		return usage("name dead letters, or use --all; see " + c.CommandPath() + " --help")
	}
	if o.deadLetterFilter != (deadLetterFilter{}) && !o.all {
		return usage("filters need --all; see " + c.CommandPath() + " --help")
	}
	return o.deadLetterFilter.check(a)
}

// find returns the sequences of the selected dead letters.
func (o *deadLetterSelection) find(ctx context.Context, b *bus.Bus, args []string) (found []uint64, err error) {
	if o.all {
		deadLetters, err := inspect.DeadLetters(ctx, b, o.DeadLetterFilter, 0)
		for _, l := range deadLetters {
			found = append(found, l.Sequence)
		}
		return found, err
	}
	for _, arg := range args {
		sequence, err := parseSequence(arg)
		if err != nil {
			return nil, err
		}
		if _, err := b.DeadLetter(ctx, sequence); err != nil {
			return nil, err
		}
		found = append(found, sequence)
	}
	return found, nil
}

func outcomeColumns() []column[inspect.Outcome] {
	return []column[inspect.Outcome]{
		{"letter", func(v inspect.Outcome) string { return strconv.FormatUint(v.Sequence, 10) }},
		{"from", func(v inspect.Outcome) string { return fmt.Sprintf("%s/%d", v.Stream, v.Original) }},
		{"consumer", func(v inspect.Outcome) string { return v.Consumer }},
		{"message", func(v inspect.Outcome) string { return v.MessageID }},
		{"result", func(v inspect.Outcome) string { return strings.TrimSpace(v.Result + " " + v.Error) }},
	}
}

func (a *app) deadReplay() *cobra.Command {
	var o deadLetterSelection
	var dryRun bool
	var rate float64
	c := &cobra.Command{
		Use: "replay LETTER... | --all", Short: "Redeliver dead letters to the consumer that gave them up",
		Long: `Redeliver dead letters to the consumer that gave them up: the event is published again, with its id and headers, and with a header
that names the consumer, so that all others ignore it. The dead letter is removed when the stream has stored the event; if the
consumer gives it up again there is a new one. A bot and a gateway ignore events older than 24 hours.`,
		Example: `  parleyctl dead replay 17 18
  parleyctl dead replay --all --consumer recorder --dry-run
  parleyctl dead replay --all --consumer recorder --rate 50`,
		Args:              func(c *cobra.Command, args []string) error { return o.check(a, c, args) },
		ValidArgsFunction: a.completeDeadLetters,
	}
	o.add(c)
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only print what would be replayed")
	c.Flags().Float64Var(&rate, "rate", 0, "maximum rate a second; 0: unlimited")
	checkFirst(c, func() error { return notNegative("--rate", rate) })
	return a.withBus(c, func(ctx context.Context, b *bus.Bus, args []string) error {
		found, err := o.find(ctx, b, args)
		if err != nil {
			return err
		}
		action := inspect.Action{
			Do:   func(l bus.DeadLetter) error { return b.Replay(ctx, l) },
			Done: "replayed",
			Pace: func() bool { return pace(ctx, rate) },
		}
		if dryRun {
			action = inspect.Action{Do: func(bus.DeadLetter) error { return nil }, Done: "would be replayed"}
		}
		return a.forEachDeadLetter(ctx, b, found, action)
	})
}

func (a *app) deadDrop() *cobra.Command {
	var o deadLetterSelection
	var yes bool
	c := &cobra.Command{
		Use: "drop LETTER... | --all", Short: "Remove dead letters for good",
		Example: "  parleyctl dead drop 17\n" +
			"  parleyctl dead drop --all --since 1d --reason \"Event is malformed\" --yes",
		Args:              func(c *cobra.Command, args []string) error { return o.check(a, c, args) },
		ValidArgsFunction: a.completeDeadLetters,
	}
	o.add(c)
	addYesFlag(c, &yes)
	return a.withBus(c, func(ctx context.Context, b *bus.Bus, args []string) error {
		found, err := o.find(ctx, b, args)
		if err != nil {
			return err
		}
		if len(found) > 0 {
			if err := a.confirm(yes, "Remove %d dead letters for good?", len(found)); err != nil {
				return err
			}
		}
		return a.forEachDeadLetter(ctx, b, found, inspect.Action{
			Do:   func(l bus.DeadLetter) error { return b.DropDeadLetter(ctx, l.Sequence) },
			Done: "dropped",
		})
	})
}

// skipped is a consumer that is requested to give up an event.
type skipped struct {
	Stream    string `json:"stream"`
	Sequence  uint64 `json:"sequence"`
	Consumer  string `json:"consumer"`
	Attempts  int    `json:"attempts"`
	LastError string `json:"lastError,omitempty"`
	Result    string `json:"result"`
}

func skippedColumns() []column[skipped] {
	return []column[skipped]{
		{"event", func(v skipped) string { return fmt.Sprintf("%s/%d", v.Stream, v.Sequence) }},
		{"consumer", func(v skipped) string { return v.Consumer }},
		{"tries", func(v skipped) string { return strconv.Itoa(v.Attempts) }},
		{"last error", func(v skipped) string { return shorten(v.LastError, 80) }},
		{"result", func(v skipped) string { return v.Result }},
	}
}

func (a *app) deadSkip() *cobra.Command {
	var consumer string
	var dryRun bool
	within := time.Hour
	c := &cobra.Command{
		Use: "skip MESSAGE", Short: "Make consumers give up a message that they keep retrying",
		Args: exactArgs("MESSAGE"),
		Long: `Make the consumers that keep retrying a message give it up now: it becomes a dead letter, which can be replayed later, and the next
messages of the chat are delivered. If the bot gives a message up, its visitor reads BOT_FAILURE_TEXT. A running attempt, such
as a call of the webhook, is not interrupted.

Without --consumer it applies to the consumers whose last attempt has failed.`,
		Example: `  parleyctl dead skip 01939f3c-8a4e-7c7b-9a53-5f2f8b3b8c11 --dry-run
  parleyctl dead skip 01939f3c-8a4e-7c7b-9a53-5f2f8b3b8c11 --consumer bot`,
	}
	c.Flags().StringVar(&consumer, "consumer", "", "only this consumer, also if its first attempt still runs or waits")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only print what would be skipped")
	return a.withTrace(c, &within, func(ctx context.Context, b *bus.Bus, trace inspect.Trace) error {
		found := skippable(trace, consumer)
		if len(found) == 0 {
			text := "No consumer keeps retrying message " + trace.MessageID + "; see trace " + trace.MessageID
			return apperr.New(apperr.NotFound, "NOTHING_TO_SKIP", text)
		}
		for i := range found {
			found[i].Result = "would be skipped"
			if dryRun {
				continue
			}
			if _, err := b.Skip(ctx, found[i].Stream, found[i].Consumer, found[i].Sequence); err != nil {
				return err
			}
			found[i].Result = "skipped"
		}
		return printList(a, found, skippedColumns()...)
	})
}

// skippable lists the consumers that hold the message and have failed, or the one that is named.
func skippable(trace inspect.Trace, consumer string) (found []skipped) {
	for _, e := range trace.Events {
		for _, c := range e.Consumers {
			failed := c.State == string(bus.ProgressRetrying)
			named := c.Name == consumer && c.State == string(bus.ProgressWaiting) && c.Attempts > 0
			if failed && (consumer == "" || c.Name == consumer) || named {
				found = append(found, skipped{
					Stream:    e.Stream,
					Sequence:  e.Sequence,
					Consumer:  c.Name,
					Attempts:  c.Attempts,
					LastError: c.LastError,
				})
			}
		}
	}
	return found
}

// forEachDeadLetter applies an action to each dead letter and prints the results.
func (a *app) forEachDeadLetter(ctx context.Context, b *bus.Bus, sequences []uint64, action inspect.Action) error {
	action.Describe = describe
	outcomes, failed := inspect.Act(ctx, b, sequences, action)
	if err := printList(a, outcomes, outcomeColumns()...); err != nil {
		return err
	}
	if remaining := len(sequences) - len(outcomes); remaining > 0 {
		a.note("%d dead letters were not changed.", remaining)
	}
	return failed
}

// pace waits for the rate limit, and reports false when ctx is done.
func pace(ctx context.Context, rate float64) bool {
	if rate <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(time.Duration(float64(time.Second) / rate))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (a *app) completeDeadLetters(c *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(c.Context(), completionLimit)
	defer cancel()
	b, err := a.openBus(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	// An incomplete list is better than none.
	found, _ := inspect.DeadLetters(ctx, b, inspect.DeadLetterFilter{}, completionSize)
	var numbers []string
	for _, l := range found {
		if n := strconv.FormatUint(l.Sequence, 10); strings.HasPrefix(n, typed) {
			numbers = append(numbers, n+"\t"+clean(l.Consumer+": "+l.Reason))
		}
	}
	return numbers, cobra.ShellCompDirectiveNoFileComp
}
