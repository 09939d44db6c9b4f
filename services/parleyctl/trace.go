package parleyctl

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/inspect"
)

func (a *app) trace() *cobra.Command {
	var flag string
	var within time.Duration
	c := &cobra.Command{
		Use: "trace MESSAGE", Short: "Trace a message through streams, consumers and store", Args: exactArgs("MESSAGE"),
		Long: `Trace a message of a company or a visitor, or a reply: when it was accepted, its stream and sequence, the state and the attempts of
each consumer, whether it is in the history, its delivery status, and its dead letters.

A message's id contains the time of its creation, from which the streams are searched. The attempts of a consumer are known while its
process holds the message.`,
		Example: "  parleyctl trace 01939f3c-8a4e-7c7b-9a53-5f2f8b3b8c11",
	}
	c.Flags().StringVar(&flag, "within", "1h",
		"how long after its creation the streams are searched if its company is unknown; 0: to their end")
	checkFirst(c, func() (err error) {
		within, err = parseDuration(flag)
		if err != nil || within < 0 {
			return usage("--within must be a duration such as 1h or 2d")
		}
		return nil
	})
	return a.withTrace(c, &within, func(_ context.Context, _ *bus.Bus, trace inspect.Trace) error {
		return a.printTrace(trace)
	})
}

// withTrace makes c trace the message that its argument names and run do. within is set when c runs.
func (a *app) withTrace(
	c *cobra.Command, within *time.Duration, do func(context.Context, *bus.Bus, inspect.Trace) error,
) *cobra.Command {
	var id string
	checkFirst(c, func() (err error) {
		id, err = parseID("MESSAGE", c.Flags().Arg(0))
		return err
	})
	return a.withBus(c, func(ctx context.Context, b *bus.Bus, _ []string) error {
		s, err := a.openStore(ctx)
		if err != nil {
			return err
		}
		trace, err := inspect.TraceMessage(ctx, b, s, id, *within)
		if err != nil {
			return err
		}
		return do(ctx, b, trace)
	})
}

// step is a printed line.
type step struct{ time, what, detail string }

func (a *app) printTrace(v inspect.Trace) error {
	if a.wantsJSON() {
		return a.printJSON(v)
	}
	err := printOne(
		a, v,
		row{"message", v.MessageID},
		row{"company", v.CompanyID},
		row{"chat", v.ChatID},
		row{"made", v.CreatedAt.String()},
	)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(a.Out); err != nil {
		return err
	}
	return printList(a, stepsOf(v),
		column[step]{"time", func(s step) string { return s.time }},
		column[step]{"what", func(s step) string { return s.what }},
		column[step]{"detail", func(s step) string { return shorten(s.detail, 140) }})
}

func stepsOf(v inspect.Trace) (steps []step) {
	if v.Status != nil && !v.Status.AcceptedAt.IsZero() {
		steps = append(steps, step{time: v.Status.AcceptedAt.String(), what: "accepted"})
	}
	for _, e := range v.Events {
		what := fmt.Sprintf("%s in %s/%d", e.Kind, e.Stream, e.Sequence)
		detail := "from " + strings.TrimPrefix(e.Source, "/")
		if e.ReplayFor != "" {
			detail = fmt.Sprintf("letter %s again, for %s", e.ReplayOf, e.ReplayFor)
		}
		if e.Text != "" {
			detail += ": " + e.Text
		}
		steps = append(steps, step{e.Time.String(), what, detail})
		for _, c := range e.Consumers {
			steps = append(steps, step{"", "  " + c.Name, describeConsumer(c)})
		}
	}
	if v.Stored != nil {
		detail := fmt.Sprintf("%s from %s, created %s", v.Stored.Type, v.Stored.From, v.Stored.CreatedAt)
		steps = append(steps, step{storedTime(v), "in the history", detail})
	}
	steps = append(steps, statusSteps(v.Status)...)
	for _, l := range v.DeadLetters {
		what := "dead letter " + strconv.FormatUint(l.Sequence, 10)
		steps = append(steps, step{l.Time.String(), what, l.Consumer + ": " + l.Reason})
	}
	return steps
}

func describeConsumer(c inspect.TracedConsumer) string {
	text := c.State
	if c.Attempts > 0 {
		text += fmt.Sprintf(" after %d", c.Attempts)
		if c.Attempts == 1 {
			text += " try"
		} else {
			text += " tries"
		}
	}
	if c.LastError != "" {
		text += ", last: " + c.LastError
	}
	if !c.NextTry.IsZero() {
		text += ", next " + c.NextTry.String()
	}
	return text
}

func storedTime(v inspect.Trace) string {
	if v.Status == nil {
		return ""
	}
	return v.Status.StoredAt.String()
}

func statusSteps(s *inspect.TracedStatus) (steps []step) {
	if s == nil {
		return nil
	}
	for _, reached := range []struct {
		at     timestamp
		what   string
		detail string
	}{{s.DeliveredAt, "delivered", ""}, {s.ReadAt, "read", ""}, {s.FailedAt, "failed", s.Failure}} {
		if !reached.at.IsZero() {
			steps = append(steps, step{reached.at.String(), reached.what, reached.detail})
		}
	}
	return steps
}
