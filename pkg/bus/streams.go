package bus

// The declarations of all streams. apply.go compares them with the server.

import (
	"cmp"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/proto-events/subject"
)

const (
	// FilesStream is the stream of the object store FILES, which stores visitors' files.
	FilesStream = "OBJ_FILES"

	defaultMaxAge     = 7 * 24 * time.Hour
	defaultMaxBytes   = 1 << 30
	defaultPartitions = 32

	// lastOnlyBytes limits the streams that keep the last message of each subject: to about 400,000 revocations.
	lastOnlyBytes = 64 << 20
	// defaultTokenTTL is the default of VISITOR_TOKEN_TTL.
	defaultTokenTTL = 30 * 24 * time.Hour
	// offsetAge is how long the offset of a group is kept that no longer reads.
	offsetAge = 400 * 24 * time.Hour

	// partsBytes limits the stream of parts, which discards the oldest: ten seconds of more than 2,000 bots
	// writing concurrently.
	partsBytes = 256 << 20
	// partsWindow is the duplicate window of the stream of parts.
	partsWindow = 10 * time.Second

	// duplicateWindow is how long a stream deduplicates by event id, in addition to the Idempotency-Key of the API.
	duplicateWindow = 2 * time.Minute
)

// StreamSettings configures the declared streams.
type StreamSettings struct {
	Replicas      int           // per stream: 1 or 3; 0: 1
	MaxAge        time.Duration // retention of events; 0: a week
	MaxBytes      int64         // size at which an event stream rejects publishes; 0: 1 GiB
	Partitions    int           // of new streams; existing streams keep their number; 0: 32
	FilesMaxBytes int64         // size at which the object store FILES rejects writes; 0: no store
	Sync          Sync          // of all streams but PARTS and POSITIONS; empty: SyncAuto
	TokenTTL      time.Duration // lifetime of visitors' tokens, for which their revocations are kept; 0: 30 days
}

// Streams returns the declarations of all JetStream streams of Parley. [Bus.ApplyStreams] makes the server
// match; services never create or change streams.
func (s StreamSettings) Streams() []jetstream.StreamConfig {
	s.Replicas = cmp.Or(s.Replicas, 1)
	s.MaxAge = cmp.Or(s.MaxAge, defaultMaxAge)
	s.MaxBytes = cmp.Or(s.MaxBytes, defaultMaxBytes)
	s.Partitions = cmp.Or(s.Partitions, defaultPartitions)
	s.TokenTTL = cmp.Or(s.TokenTTL, defaultTokenTTL)
	s.Sync = s.Sync.of(s.Replicas)
	var declared []jetstream.StreamConfig
	for _, stream := range subject.Streams() {
		declared = append(declared, s.events(stream))
	}
	if s.FilesMaxBytes > 0 {
		declared = append(declared, s.files())
	}
	return declared
}

// events declares an event stream. By default it retains events for MaxAge and rejects new ones when it is full.
func (s StreamSettings) events(stream subject.Stream) jetstream.StreamConfig {
	config := jetstream.StreamConfig{
		Name:        stream.Name,
		Subjects:    stream.Subjects,
		Storage:     jetstream.FileStorage,
		Retention:   jetstream.LimitsPolicy,
		Discard:     jetstream.DiscardNew,
		MaxAge:      s.MaxAge,
		MaxBytes:    s.MaxBytes,
		Replicas:    s.Replicas,
		Duplicates:  min(duplicateWindow, s.MaxAge),
		AllowDirect: true,
	}
	if !unsynced(stream) {
		config.Metadata = map[string]string{syncMetadata: string(s.Sync)}
	}
	if stream.LastOnly {
		config.MaxMsgsPerSubject = 1
		config.MaxAge = offsetAge
		config.MaxBytes = min(s.MaxBytes, lastOnlyBytes)
	}
	if stream.Name == subject.Revocations {
		config.MaxAge = s.TokenTTL
		config.Duplicates = min(duplicateWindow, s.TokenTTL)
	}
	if stream.Short {
		config.Discard = jetstream.DiscardOld
		config.MaxAge = min(s.MaxAge, subject.PartsAge)
		config.MaxBytes = min(s.MaxBytes, partsBytes)
		config.Duplicates = min(s.MaxAge, partsWindow)
	}
	if stream.Partitioned && s.Partitions > 1 {
		source, destination := subject.Transform(">", s.Partitions)
		config.SubjectTransform = &jetstream.SubjectTransformConfig{Source: source, Destination: destination}
	}
	return config
}

// files declares an object store in the format of NATS ADR-20, readable by other clients.
func (s StreamSettings) files() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        FilesStream,
		Description: "Files that visitors and agents have sent",
		Subjects:    []string{"$O.FILES.C.>", "$O.FILES.M.>"},
		Storage:     jetstream.FileStorage,
		Retention:   jetstream.LimitsPolicy,
		Discard:     jetstream.DiscardNew,
		MaxBytes:    s.FilesMaxBytes,
		Replicas:    s.Replicas,
		Duplicates:  duplicateWindow,
		AllowDirect: true,
		AllowRollup: true,
		Metadata:    map[string]string{syncMetadata: string(s.Sync)},
	}
}
