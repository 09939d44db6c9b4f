package parleyctl

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/config"
)

// reachPause is the pause between attempts to connect to NATS.
const reachPause = 250 * time.Millisecond

// States and changes of a stream.
const (
	streamAsDeclared = "as declared"
	streamMissing    = "missing"
	streamDiffers    = "differs"
	streamCreated    = "created"
	streamUpdated    = "updated"
)

type appliedView struct {
	Stream string          `json:"stream"`
	State  string          `json:"state"`
	Drift  []bus.FieldDiff `json:"drift"`

	indexes string // text about the difference of MongoDB's indexes
}

func (a *app) streamsApply() *cobra.Command {
	var dryRun bool
	var wait time.Duration
	c := &cobra.Command{
		Use: "apply", Short: "Create missing streams and update those that differ", Args: exactArgs(),
		Long: `Create missing streams and update those that differ from their declaration.

The services never create or change a stream. Run this command before their first start and after each change of the settings
STREAM_REPLICAS, STREAM_MAX_AGE, STREAM_MAX_BYTES, FILE_STORE_MAX_BYTES and VISITOR_TOKEN_TTL. Keep these where every run reads them: a run without them applies the defaults. It compares every field of the configuration, such as
subjects, limits, replicas, republish, sources and subject transforms, and updates only streams that differ. It does not touch other
streams. If MONGODB_URI is set it also creates missing indexes. With --dry-run it writes nothing, and the exit code is 6 if a stream
or an index is missing or differs.`,
		Example: `  parleyctl streams apply --dry-run
  parleyctl streams apply --wait 2m`,
		RunE: func(c *cobra.Command, _ []string) error {
			settings, err := a.streamSettings()
			if err != nil {
				return err
			}
			b, err := a.awaitBus(c.Context(), wait)
			if err != nil {
				return err
			}
			do := b.ApplyStreams
			if dryRun {
				do = b.CompareStreams
			}
			changes, err := do(c.Context(), settings)
			var indexes *appliedView
			if err == nil {
				indexes, err = a.applyIndexes(c.Context(), dryRun, wait)
			}
			if printed := a.printApplied(changes, indexes, dryRun); err == nil {
				err = printed
			}
			if err == nil && dryRun {
				err = drift(changes, indexes)
			}
			return err
		},
	}
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only print what is missing or differs")
	c.Flags().DurationVar(&wait, "wait", 0, "how long to wait for NATS and MongoDB")
	return c
}

// streamSettings returns the sizes in the environment.
func (a *app) streamSettings() (bus.StreamSettings, error) {
	s, err := config.LoadFrom[config.Streams](a.Getenv)
	if err != nil {
		return bus.StreamSettings{}, usage(err.Error())
	}
	return bus.StreamSettings{
		Replicas: s.StreamReplicas, Sync: bus.Sync(s.StreamSync), MaxAge: s.StreamMaxAge, MaxBytes: s.StreamMaxBytes,
		Partitions: s.StreamPartitions, FilesMaxBytes: s.FileStoreMaxBytes, TokenTTL: s.VisitorTokenTTL,
	}, nil
}

// await repeats an attempt to connect while the engine is unavailable, at most that long.
func await(ctx context.Context, timeout time.Duration, err error, ready func(context.Context) error) error {
	for deadline := time.Now().Add(timeout); apperr.Is(err, apperr.Unavailable) && time.Now().Before(deadline); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(reachPause):
		}
		if ready(ctx) == nil {
			return nil
		}
	}
	return err
}

// awaitBus is [app.openBus] with a wait for NATS.
func (a *app) awaitBus(ctx context.Context, timeout time.Duration) (*bus.Bus, error) {
	_, err := a.openBus(ctx)
	err = await(ctx, timeout, err, func(ctx context.Context) error { return a.connections.bus.Ready(ctx) })
	return a.connections.bus, err
}

func (a *app) printApplied(changes []bus.StreamChange, indexes *appliedView, dryRun bool) error {
	views := make([]appliedView, 0, len(changes)+1)
	for _, c := range changes {
		v := appliedView{Stream: c.Stream, State: streamAsDeclared, Drift: append([]bus.FieldDiff{}, c.Drift...)}
		switch {
		case c.None():
		case c.Missing && dryRun:
			v.State = streamMissing
		case c.Missing:
			v.State = streamCreated
		case dryRun:
			v.State = streamDiffers
		default:
			v.State = streamUpdated
		}
		views = append(views, v)
	}
	if indexes != nil {
		indexes.Drift = []bus.FieldDiff{}
		views = append(views, *indexes)
	}
	return printList(a, views,
		column[appliedView]{"stream", func(v appliedView) string { return v.Stream }},
		column[appliedView]{"state", func(v appliedView) string { return v.State }},
		column[appliedView]{"drift", func(v appliedView) string { return cmp.Or(v.indexes, describeDrift(v.Drift)) }})
}

func describeDrift(diffs []bus.FieldDiff) string {
	texts := make([]string, 0, len(diffs))
	for _, d := range diffs {
		texts = append(texts, d.Field+" "+fieldText(d.Have)+" -> "+fieldText(d.Want))
	}
	return strings.Join(texts, ", ")
}

func fieldText(value []byte) string {
	if len(value) == 0 {
		return "unset"
	}
	return string(value)
}

func drift(changes []bus.StreamChange, indexes *appliedView) error {
	n := 0
	if indexes != nil && indexes.State != streamAsDeclared {
		n++
	}
	for _, c := range changes {
		if !c.None() {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return &driftError{n}
}
