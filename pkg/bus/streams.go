package bus

import (
	"cmp"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/proto-events/subject"
)

const (
	// FilesStream is the stream of the object store FILES, which keeps visitors' files.
	FilesStream = "OBJ_FILES"

	defaultMaxAge     = 7 * 24 * time.Hour
	defaultMaxBytes   = 1 << 30
	defaultPartitions = 32

	// revocationBytes bounds the stream of revocations: some 500,000 of them.
	revocationBytes = 64 << 20

	// partsBytes bounds the stream of parts, of which the oldest go first: ten seconds of more than 2,000 bots that write at once.
	partsBytes = 256 << 20
	// partsWindow is how long the stream of parts remembers event ids.
	partsWindow = 10 * time.Second

	// duplicateWindow is how long a stream remembers event ids: the second net under an Idempotency-Key.
	duplicateWindow = 2 * time.Minute
)

// StreamSettings are the sizes of the streams.
type StreamSettings struct {
	Replicas      int           // of each stream: 1 or 3; 0: 1
	MaxAge        time.Duration // how long a stream keeps an event; 0: a week
	MaxBytes      int64         // how large a stream of events may get before it refuses; 0: 1 GiB
	Partitions    int           // of a stream that is created; one that exists keeps its number; 0: 32
	FilesMaxBytes int64         // how large the object store FILES may get before it refuses; 0: there is no such store
}

// Streams is the declaration of everything that Parley keeps in JetStream. It is the only one: [Bus.ApplyStreams] makes the server match
// it, and the services create and change nothing.
func (s StreamSettings) Streams() []jetstream.StreamConfig {
	s.Replicas, s.MaxAge, s.MaxBytes = cmp.Or(s.Replicas, 1), cmp.Or(s.MaxAge, defaultMaxAge), cmp.Or(s.MaxBytes, defaultMaxBytes)
	s.Partitions = cmp.Or(s.Partitions, defaultPartitions)
	var declared []jetstream.StreamConfig
	for _, stream := range subject.Streams() {
		declared = append(declared, s.events(stream))
	}
	if s.FilesMaxBytes > 0 {
		declared = append(declared, s.files())
	}
	return declared
}

// events keeps what it accepted for MaxAge; a full stream refuses and never drops.
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
	if stream.LastOnly {
		config.MaxMsgsPerSubject, config.MaxAge, config.MaxBytes = 1, subject.RevocationAge, min(s.MaxBytes, revocationBytes)
	}
	if stream.Short {
		config.Discard = jetstream.DiscardOld
		config.MaxAge, config.MaxBytes, config.Duplicates = min(s.MaxAge, subject.PartsAge), min(s.MaxBytes, partsBytes), min(s.MaxAge, partsWindow)
	}
	if stream.Partitioned && s.Partitions > 1 {
		source, destination := subject.Transform(">", s.Partitions)
		config.SubjectTransform = &jetstream.SubjectTransformConfig{Source: source, Destination: destination}
	}
	return config
}

// files is an object store in the format of NATS ADR-20, so that other clients can read it.
func (s StreamSettings) files() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        FilesStream,
		Description: "Files that visitors have sent",
		Subjects:    []string{"$O.FILES.C.>", "$O.FILES.M.>"},
		Storage:     jetstream.FileStorage,
		Retention:   jetstream.LimitsPolicy,
		Discard:     jetstream.DiscardNew,
		MaxBytes:    s.FilesMaxBytes,
		Replicas:    s.Replicas,
		Duplicates:  duplicateWindow,
		AllowDirect: true,
		AllowRollup: true,
	}
}
