package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/streammark"
)

// applyStreams applies the streams to the embedded NATS, as `parleyctl streams apply` does elsewhere, and records what
// they have lost since their marks were stored.
func applyStreams(natsURL string, sizes config.Streams, marks store.Streams, log *slog.Logger) error {
	b, err := bus.Open(bus.Config{URL: natsURL, Name: "standalone", Observe: true, Logger: log})
	if err != nil {
		return fmt.Errorf("applying the streams: %w", err)
	}
	defer b.Close()
	ctx, cancel := context.WithTimeoutCause(context.Background(), readyLimit, errors.New("not applied in time"))
	defer cancel()
	changes, err := b.ApplyStreams(ctx, bus.StreamSettings{
		Replicas: sizes.StreamReplicas, Sync: bus.Sync(sizes.StreamSync),
		MaxAge: sizes.StreamMaxAge, MaxBytes: sizes.StreamMaxBytes,
		Partitions: sizes.StreamPartitions, FilesMaxBytes: sizes.FileStoreMaxBytes, TokenTTL: sizes.VisitorTokenTTL,
	})
	if err != nil {
		return err
	}
	for _, c := range changes {
		if !c.None() {
			log.Info("stream applied", "stream", c.Stream, "created", c.Missing, "fields", len(c.Drift))
		}
	}
	// Before the services start, which would end when the epoch of a stream changes.
	_, err = streammark.New(b, marks, log).Notice(ctx)
	return err
}
