package subject

import (
	"hash/fnv"
	"strconv"
	"strings"
)

// A stream with several partitions stores each message under its subject prefixed with the partition as a token:
// `chat.reply.a.v` becomes `7.chat.reply.a.v`. The stream does so (subject transform); publishers and core NATS
// subscribers use the subject without it. Only readers of the stream see the token. A stream with one partition stores
// subjects unchanged.

// Transform returns source and destination of the subject transform of a stream that stores filter in that many
// partitions.
func Transform(filter string, partitions int) (source, destination string) {
	return filter, "{{partition(" + strconv.Itoa(partitions) + ")}}." + filter
}

// Partitions returns the number of partitions from the destination of a stream's subject transform; 1 if there is none.
func Partitions(destination string) int {
	rest, ok := strings.CutPrefix(destination, "{{partition(")
	count, _, closed := strings.Cut(rest, ")}}.")
	n, err := strconv.Atoi(count)
	if !ok || !closed || err != nil || n < 1 {
		return 1
	}
	return n
}

// Partition returns the partition of a subject in a stream with that many partitions: FNV-1a over the whole subject, as
// nats-server computes `partition(n)`.
func Partition(subj string, partitions int) int {
	if partitions <= 1 {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(subj)) // never fails
	return int(h.Sum32() % uint32(partitions))
}

// Stored returns the stored form of a subject or filter in a stream with that many partitions. A filter with wildcards
// matches all partitions.
func Stored(subj string, partitions int) string {
	switch {
	case partitions <= 1:
		return subj
	case strings.ContainsAny(subj, "*>"):
		return "*." + subj
	}
	return strconv.Itoa(Partition(subj, partitions)) + "." + subj
}

// InPartition returns the filter for messages published on subjects that match filter and stored in one partition.
func InPartition(filter string, partition int) string { return strconv.Itoa(partition) + "." + filter }

// Published returns the subject on which a stored message was published.
func Published(stored string) string {
	for i := range len(stored) {
		switch c := stored[i]; {
		case c >= '0' && c <= '9':
		case c == '.' && i > 0:
			return stored[i+1:]
		default:
			return stored
		}
	}
	return stored
}
