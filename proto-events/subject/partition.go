package subject

import (
	"hash/fnv"
	"strconv"
	"strings"
)

// A stream with several partitions stores each message under its subject with the partition in front, as a token of its own:
// `chat.reply.a.v` becomes `7.chat.reply.a.v`. The stream does so (subject transform); publishers and subscribers of core NATS see
// the subject without it. Only a reader of the stream meets the token. A stream with one partition stores subjects as they are.

// Transform is the source and the destination of the subject transform of a stream that keeps filter in so many partitions.
func Transform(filter string, partitions int) (source, destination string) {
	return filter, "{{partition(" + strconv.Itoa(partitions) + ")}}." + filter
}

// Partitions is how many partitions a stream has by the destination of its subject transform; 1 where it has none.
func Partitions(destination string) int {
	rest, ok := strings.CutPrefix(destination, "{{partition(")
	count, _, closed := strings.Cut(rest, ")}}.")
	n, err := strconv.Atoi(count)
	if !ok || !closed || err != nil || n < 1 {
		return 1
	}
	return n
}

// Partition is the partition of a subject in a stream that has so many: FNV-1a over the whole subject, as nats-server computes
// `partition(n)`.
func Partition(subj string, partitions int) int {
	if partitions <= 1 {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(subj)) // never fails
	return int(h.Sum32() % uint32(partitions))
}

// Stored is the subject, or the filter, that finds in a stream with so many partitions what was published on subj. A filter with
// wildcards finds all partitions.
func Stored(subj string, partitions int) string {
	switch {
	case partitions <= 1:
		return subj
	case strings.ContainsAny(subj, "*>"):
		return "*." + subj
	}
	return strconv.Itoa(Partition(subj, partitions)) + "." + subj
}

// InPartition is the filter for what was published on subjects that match filter and is stored in one partition.
func InPartition(filter string, partition int) string { return strconv.Itoa(partition) + "." + filter }

// Published is the subject on which a stored message was published.
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
