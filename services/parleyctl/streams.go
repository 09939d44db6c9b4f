package parleyctl

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/inspect"
)

func (a *app) streams() *cobra.Command {
	return commandGroup(
		"streams", "Declare the streams; show them and their consumers' positions", []string{"stream"},
		a.streamsList(), a.streamsConsumers(), a.streamsApply(), a.streamsBackup(), a.streamsRestore(),
	)
}

func (a *app) streamsList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "Show how full the streams are", Aliases: []string{"ls", "info"}, Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			b, err := a.openBus(c.Context())
			if err != nil {
				return err
			}
			views, err := inspect.Streams(c.Context(), b)
			if err != nil {
				return err
			}
			return printList(a, views,
				column[inspect.Stream]{"name", func(v inspect.Stream) string { return v.Name }},
				column[inspect.Stream]{"messages", func(v inspect.Stream) string { return strconv.FormatUint(v.Messages, 10) }},
				column[inspect.Stream]{"size", func(v inspect.Stream) string { return bytes(v.Bytes) }},
				column[inspect.Stream]{"limit", func(v inspect.Stream) string { return bytes(uint64(max(v.MaxBytes, 0))) }},
				column[inspect.Stream]{"full", func(v inspect.Stream) string { return percent(v.Bytes, v.MaxBytes) }},
				column[inspect.Stream]{"max age", func(v inspect.Stream) string { return v.MaxAge }},
				column[inspect.Stream]{"first", func(v inspect.Stream) string { return v.FirstTime.String() }},
				column[inspect.Stream]{"last", func(v inspect.Stream) string { return v.LastTime.String() }},
				column[inspect.Stream]{"consumers", func(v inspect.Stream) string { return strconv.Itoa(v.Consumers) }})
		},
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
	return &cobra.Command{
		Use: "consumers [STREAM]", Short: "Show the consumers' positions", ValidArgsFunction: fixed(inspect.StreamNames()...),
		Long: "Show the consumers' positions: LAG is the number of undelivered events, UNACKED that of delivered but unacknowledged ones, over all " +
			"partitions. ACTIVE: each partition has a reader.",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("want at most one STREAM; see " + c.CommandPath() + " --help")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			streams, err := matchStreams(args)
			if err != nil {
				return err
			}
			b, err := a.openBus(c.Context())
			if err != nil {
				return err
			}
			var views []inspect.Consumer
			for _, name := range streams {
				found, err := b.Groups(c.Context(), name)
				if err != nil && (len(args) > 0 || !apperr.Is(err, apperr.NotFound)) {
					return err
				}
				for _, g := range found {
					views = append(views, inspect.ConsumerOf(g))
				}
			}
			return printList(a, views, consumerColumns()...)
		},
	}
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
