package bus

import (
	"context"
	"crypto/x509"
	"errors"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/apperr"
)

// Server is what is known of the NATS server that the bus is connected to.
type Server struct {
	Version     string
	MaxPayload  int64             // bytes of one message
	Certificate *x509.Certificate // nil without TLS
}

// Server returns the server that the bus is connected to; it is empty while NATS is not connected.
func (b *Bus) Server() Server {
	s := Server{Version: b.conn.ConnectedServerVersion(), MaxPayload: b.conn.MaxPayload()}
	if state, err := b.conn.TLSConnectionState(); err == nil && len(state.PeerCertificates) > 0 {
		s.Certificate = state.PeerCertificates[0]
	}
	return s
}

// Storage returns how many bytes on disk the account's streams take, and how many they may; a limit of zero or less is none. It returns
// Unavailable where the account has no JetStream.
func (b *Bus) Storage(ctx context.Context) (used uint64, limit int64, err error) {
	info, err := b.js.AccountInfo(ctx)
	if err != nil {
		return 0, 0, apperr.Unreachable("NATS", err)
	}
	return info.Store, info.Limits.MaxStore, nil
}

// Stream returns a stream of JetStream as nats.go has it, for those that look after streams or keep other things than events in
// them. Errors are those of nats.go.
func (b *Bus) Stream(ctx context.Context, name string) (jetstream.Stream, error) {
	return b.js.Stream(ctx, name)
}

// DeleteStream removes a stream with its messages. A missing stream is no error.
func (b *Bus) DeleteStream(ctx context.Context, name string) error {
	if err := b.js.DeleteStream(ctx, name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return apperr.Unreachable("NATS", err)
	}
	return nil
}

// PublishRaw publishes a message that is no event to a stream, and returns when the stream has it. Errors are those of nats.go; it
// tries once.
func (b *Bus) PublishRaw(ctx context.Context, stream string, m *nats.Msg) (*jetstream.PubAck, error) {
	return b.js.PublishMsg(ctx, m, jetstream.WithExpectStream(stream))
}

// Connection numbers the connections to NATS, and reports whether there is one now.
func (b *Bus) Connection() (number uint64, up bool) {
	return b.conn.Stats().Reconnects, b.conn.IsConnected()
}
