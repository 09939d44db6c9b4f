package bus

// The server and the streams as operators need them, for parleyctl, and for pkg/file/natsfile.

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/proto-events/subject"
)

const (
	// probe is the stream of [Bus.ProbeStorage]. No service knows it.
	probe        = "PROBE"
	probeBytes   = 64 << 10 // more than a file system finds in a block that it has
	probeRemoval = 2 * time.Second
)

// Server describes the NATS server that the bus is connected to.
type Server struct {
	Version     string
	MaxPayload  int64             // maximum message size in bytes
	Certificate *x509.Certificate // nil without TLS
}

// Server describes the connected server; fields are empty while NATS is disconnected.
func (b *Bus) Server() Server {
	s := Server{Version: b.conn.ConnectedServerVersion(), MaxPayload: b.conn.MaxPayload()}
	if state, err := b.conn.TLSConnectionState(); err == nil && len(state.PeerCertificates) > 0 {
		s.Certificate = state.PeerCertificates[0]
	}
	return s
}

// Storage returns the bytes on disk used by the account's streams and their limit; a limit of zero or less
// means none. It returns Unavailable if JetStream is not enabled for the account.
func (b *Bus) Storage(ctx context.Context) (used uint64, limit int64, err error) {
	info, err := b.js.AccountInfo(ctx)
	if err != nil {
		return 0, 0, apperr.Unreachable("NATS", err)
	}
	return info.Store, info.Limits.MaxStore, nil
}

// ProbeStorage stores a message in a stream of its own, with as many replicas as INBOUND, and removes the
// stream. Errors are those of nats.go.
func (b *Bus) ProbeStorage(ctx context.Context) (err error) {
	replicas := 1
	if inbound, err := b.js.Stream(ctx, subject.Inbound); err == nil {
		replicas = inbound.CachedInfo().Config.Replicas
	}
	_, err = b.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: probe, Subjects: []string{subject.Probe}, Storage: jetstream.FileStorage, Replicas: replicas, MaxMsgs: 1,
	})
	if err != nil {
		return fmt.Errorf("creating the stream %s: %w", probe, err)
	}
	defer func() {
		removing, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeRemoval)
		defer cancel()
		err = errors.Join(err, b.js.DeleteStream(removing, probe))
	}()
	if _, err := b.js.Publish(ctx, subject.Probe, make([]byte, probeBytes)); err != nil {
		return fmt.Errorf("storing a message in the stream %s: %w", probe, err)
	}
	return nil
}

// Stream returns the nats.go handle of a stream, to manage streams or to use one for other data than events.
// Errors are those of nats.go.
func (b *Bus) Stream(ctx context.Context, name string) (jetstream.Stream, error) {
	return b.js.Stream(ctx, name)
}

// DeleteStream deletes a stream and its messages. A missing stream is not an error.
func (b *Bus) DeleteStream(ctx context.Context, name string) error {
	if err := b.js.DeleteStream(ctx, name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return apperr.Unreachable("NATS", err)
	}
	return nil
}

// PublishRaw publishes a message that is not an event and returns after the stream has acknowledged it; [Bus.Sync]
// makes it durable. It does not retry. Errors are those of nats.go.
func (b *Bus) PublishRaw(ctx context.Context, stream string, m *nats.Msg) (*jetstream.PubAck, error) {
	return b.js.PublishMsg(ctx, m, jetstream.WithExpectStream(stream))
}

// Connection returns the number of reconnects and whether NATS is connected.
func (b *Bus) Connection() (number uint64, up bool) {
	return b.conn.Stats().Reconnects, b.conn.IsConnected()
}
