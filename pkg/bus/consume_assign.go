package bus

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"
)

// assign spreads partitions over members, each of which gets as many as any other or one more. It is rendezvous hashing with a
// bound: every replica that knows the same members computes the same result, and when a member joins or leaves, few partitions of the
// others move. The result has the member of each partition.
func assign(partitions int, members []string) []string {
	owners := make([]string, partitions)
	if len(members) == 0 {
		return owners
	}
	even := partitions / len(members)
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
	place(even)
	place(even + 1)
	return owners
}

// preference sorts the members by their weight for a partition.
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

// mix spreads the bits of a hash whose inputs differ in their last characters only (the finaliser of MurmurHash3).
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
