package parleyctl

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/inspect"
)

func (a *app) streams() *cobra.Command {
	return commandGroup(
		"streams", "Declare the streams; show them and their consumers' positions", []string{"stream"},
		a.streamsList(), a.streamsConsumers(), a.streamsApply(), a.streamsSync(),
		a.streamsVerify(), a.streamsBackup(), a.streamsRestore(),
	)
}

func (a *app) streamsList() *cobra.Command {
	c := &cobra.Command{
		Use: "list", Short: "Show how full the streams are", Aliases: []string{"ls", "info"}, Args: exactArgs(),
	}
	return a.withBus(c, func(ctx context.Context, b *bus.Bus, _ []string) error {
		found, err := inspect.Streams(ctx, b)
		if err != nil {
			return err
		}
		return printList(a, found, streamColumns()...)
	})
}

func streamColumns() []column[inspect.Stream] {
	return []column[inspect.Stream]{
		{"name", func(v inspect.Stream) string { return v.Name }},
		{"messages", func(v inspect.Stream) string { return strconv.FormatUint(v.Messages, 10) }},
		{"size", func(v inspect.Stream) string { return bytes(v.Bytes) }},
		{"limit", func(v inspect.Stream) string { return bytes(uint64(max(v.MaxBytes, 0))) }},
		{"full", func(v inspect.Stream) string { return percent(v.Bytes, v.MaxBytes) }},
		{"max age", func(v inspect.Stream) string { return v.MaxAge }},
		{"first", func(v inspect.Stream) string { return v.FirstTime.String() }},
		{"last", func(v inspect.Stream) string { return v.LastTime.String() }},
		{"consumers", func(v inspect.Stream) string { return strconv.Itoa(v.Consumers) }},
	}
}

func bytes(n uint64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	size, exponent := float64(n)/unit, 0
	for size >= unit && exponent < 3 {
		size /= unit
		exponent++
	}
	return fmt.Sprintf("%.1f %ciB", size, "KMGT"[exponent])
}

func percent(n uint64, of int64) string {
	if of <= 0 {
		return ""
	}
	return fmt.Sprintf("%.1f%%", 100*float64(n)/float64(of))
}

func (a *app) streamsConsumers() *cobra.Command {
	c := &cobra.Command{
		Use:               "consumers [STREAM]",
		Short:             "Show the consumers' positions",
		ValidArgsFunction: fixed(inspect.StreamNames()...),
		Long: "Show the consumers' positions: LAG is the number of undelivered events, " +
			"UNACKED that of delivered but unacknowledged ones, over all partitions. " +
			"ACTIVE: each partition has a reader.",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("want at most one STREAM; see " + c.CommandPath() + " --help")
			}
			return nil
		},
	}
	var streams []string
	checkFirst(c, func() (err error) {
		streams, err = matchStreams(c.Flags().Args())
		return err
	})
	return a.withBus(c, func(ctx context.Context, b *bus.Bus, args []string) error {
		var found []inspect.Consumer
		for _, name := range streams {
			groups, err := b.Groups(ctx, name)
			if err != nil && (len(args) > 0 || !apperr.Is(err, apperr.NotFound)) {
				return err
			}
			for _, g := range groups {
				found = append(found, inspect.ConsumerOf(g))
			}
		}
		return printList(a, found, consumerColumns()...)
	})
}

func consumerColumns() []column[inspect.Consumer] {
	return []column[inspect.Consumer]{
		{"stream", func(v inspect.Consumer) string { return v.Stream }},
		{"consumer", func(v inspect.Consumer) string { return v.Name }},
		{"partitions", func(v inspect.Consumer) string { return strconv.Itoa(v.Partitions) }},
		{"lag", func(v inspect.Consumer) string { return strconv.FormatUint(v.Lag, 10) }},
		{"unacked", func(v inspect.Consumer) string { return strconv.Itoa(v.Unacked) }},
		{"redelivered", func(v inspect.Consumer) string { return strconv.Itoa(v.Redelivered) }},
		{"delivered", func(v inspect.Consumer) string { return strconv.FormatUint(v.Delivered, 10) }},
		{"ack floor", func(v inspect.Consumer) string { return strconv.FormatUint(v.AckFloor, 10) }},
		{"active", func(v inspect.Consumer) string { return yesNo(v.Read) }},
		{"last activity", func(v inspect.Consumer) string { return v.LastActivity.String() }},
	}
}
