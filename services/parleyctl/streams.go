package parleyctl

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
)

type streamView struct {
	Name      string `json:"name"`
	Messages  uint64 `json:"messages"`
	Bytes     uint64 `json:"bytes"`
	MaxBytes  int64  `json:"maxBytes"`
	MaxAge    string `json:"maxAge"`
	Replicas  int    `json:"replicas"`
	FirstSeq  uint64 `json:"firstSequence"`
	LastSeq   uint64 `json:"lastSequence"`
	FirstTime stamp  `json:"firstTime,omitzero"`
	LastTime  stamp  `json:"lastTime,omitzero"`
	Consumers int    `json:"consumers"`
}

type consumerView struct {
	Stream       string   `json:"stream"`
	Name         string   `json:"name"`
	Filters      []string `json:"filters"`
	Partitions   int      `json:"partitions"`
	Lag          uint64   `json:"lag"`
	Unacked      int      `json:"unacknowledged"`
	Redelivered  int      `json:"redelivered"`
	Delivered    uint64   `json:"deliveredSequence"`
	AckFloor     uint64   `json:"ackFloorSequence"`
	LastActivity stamp    `json:"lastActivity,omitzero"`
	Read         bool     `json:"active"`
}

func (a *app) streams() *cobra.Command {
	return under("streams", "Declare the streams; show them and how far their consumers are", []string{"stream"}, a.streamsList(), a.streamsConsumers(), a.streamsApply(), a.streamsBackup(), a.streamsRestore())
}

func (a *app) streamsList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "Show how full the streams are", Aliases: []string{"ls", "info"}, Args: takes(),
		RunE: func(c *cobra.Command, _ []string) error {
			b, err := a.openBus(c.Context())
			if err != nil {
				return err
			}
			var views []streamView
			for _, name := range streamNames() {
				s, err := openStream(c.Context(), b, name)
				if apperr.Is(err, apperr.NotFound) {
					continue // Parley has not run here yet
				}
				if err != nil {
					return err
				}
				views = append(views, viewOfStream(s.CachedInfo()))
			}
			return printList(a, views,
				column[streamView]{"name", func(v streamView) string { return v.Name }},
				column[streamView]{"messages", func(v streamView) string { return strconv.FormatUint(v.Messages, 10) }},
				column[streamView]{"size", func(v streamView) string { return bytes(v.Bytes) }},
				column[streamView]{"limit", func(v streamView) string { return bytes(uint64(max(v.MaxBytes, 0))) }},
				column[streamView]{"full", func(v streamView) string { return percent(v.Bytes, v.MaxBytes) }},
				column[streamView]{"max age", func(v streamView) string { return v.MaxAge }},
				column[streamView]{"first", func(v streamView) string { return v.FirstTime.String() }},
				column[streamView]{"last", func(v streamView) string { return v.LastTime.String() }},
				column[streamView]{"consumers", func(v streamView) string { return strconv.Itoa(v.Consumers) }})
		},
	}
}

func openStream(ctx context.Context, b *bus.Bus, name string) (jetstream.Stream, error) {
	s, err := b.JetStream().Stream(ctx, name)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return nil, apperr.New(apperr.NotFound, "STREAM_NOT_FOUND", "There is no stream "+name)
	case err != nil:
		return nil, apperr.Away("NATS", err)
	}
	return s, nil
}

func viewOfStream(info *jetstream.StreamInfo) streamView {
	v := streamView{
		Name: info.Config.Name, Messages: info.State.Msgs, Bytes: info.State.Bytes, MaxBytes: info.Config.MaxBytes,
		MaxAge: strings.TrimSuffix(strings.TrimSuffix(info.Config.MaxAge.String(), "0s"), "0m"), Replicas: info.Config.Replicas,
		FirstSeq: info.State.FirstSeq, LastSeq: info.State.LastSeq, Consumers: info.State.Consumers,
	}
	if info.State.Msgs > 0 {
		v.FirstTime, v.LastTime = stamp(info.State.FirstTime), stamp(info.State.LastTime)
	}
	return v
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
		Use: "consumers [STREAM]", Short: "Show how far the consumers are", ValidArgsFunction: fixed(streamNames()...),
		Long: "Show how far the consumers are: LAG is what they have not been given yet, UNACKED what they have and are not done with, over all " +
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
			var views []consumerView
			for _, name := range streams {
				found, err := b.Groups(c.Context(), name)
				if err != nil && (len(args) > 0 || !apperr.Is(err, apperr.NotFound)) {
					return err
				}
				for _, g := range found {
					views = append(views, viewOfGroup(g))
				}
			}
			return printList(a, views, consumerColumns()...)
		},
	}
}

func consumerColumns() []column[consumerView] {
	return []column[consumerView]{
		{"stream", func(v consumerView) string { return v.Stream }},
		{"consumer", func(v consumerView) string { return v.Name }},
		{"partitions", func(v consumerView) string { return strconv.Itoa(v.Partitions) }},
		{"lag", func(v consumerView) string { return strconv.FormatUint(v.Lag, 10) }},
		{"unacked", func(v consumerView) string { return strconv.Itoa(v.Unacked) }},
		{"redelivered", func(v consumerView) string { return strconv.Itoa(v.Redelivered) }},
		{"delivered", func(v consumerView) string { return strconv.FormatUint(v.Delivered, 10) }},
		{"ack floor", func(v consumerView) string { return strconv.FormatUint(v.AckFloor, 10) }},
		{"active", func(v consumerView) string { return yesNo(v.Read) }},
		{"last activity", func(v consumerView) string { return v.LastActivity.String() }},
	}
}

func viewOfGroup(g bus.GroupInfo) consumerView {
	total := g.Total()
	v := consumerView{
		Stream: g.Stream, Name: g.Name, Filters: g.Filters, Partitions: len(g.Partitions), Lag: total.Pending, Unacked: total.AckPending,
		Redelivered: total.Redelivered, Delivered: total.Delivered, AckFloor: total.AckFloor, Read: total.Read,
	}
	if !total.Active.IsZero() {
		v.LastActivity = stamp(total.Active)
	}
	return v
}
