package bus

// Which replica reads which partition: pure functions, called by consume_group.go.

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"
)

// assign returns the member that owns each partition. Loads differ by at most one partition. It is rendezvous
// hashing with a load bound: replicas that know the same members compute the same result, and few partitions
// move when a member joins or leaves.
func assign(partitions int, members []string) []string {
	owners := make([]string, partitions)
	if len(members) == 0 {
		return owners
	}
	base := partitions / len(members)
	load := make(map[string]int, len(members))
	place := func(bound int) {
		for p, owner := range owners {
			if owner != "" {
				continue
			}
			for _, member := range preference(p, members) {
				if load[member] < bound {
					owners[p] = member
					load[member]++
					break
				}
			}
		}
	}
	place(base)
	place(base + 1)
	return owners
}

// preference returns the members by descending weight for a partition.
func preference(partition int, members []string) []string {
	sorted := slices.Clone(members)
	weight := make(map[string]uint64, len(members))
	for _, m := range members {
		h := fnv.New64a()
		_, _ = h.Write([]byte(m + " " + strconv.Itoa(partition))) // never fails
		weight[m] = mix(h.Sum64())
	}
	slices.SortFunc(sorted, func(a, b string) int {
		return cmp.Or(cmp.Compare(weight[b], weight[a]), cmp.Compare(a, b))
	})
	return sorted
}

// mix is the finaliser of MurmurHash3: it decorrelates FNV hashes of inputs that differ only in their last characters.
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
