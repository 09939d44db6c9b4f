package bus

import (
	"fmt"
	"testing"
)

func TestAssignIsEvenAndMovesFewPartitions(t *testing.T) {
	t.Parallel()
	for _, partitions := range []int{1, 8, 32, 100} {
		var before []string
		for n := 1; n <= 12; n++ {
			members := make([]string, n)
			for i := range members {
				members[i] = fmt.Sprintf("replica-%d", i)
			}
			owners := assign(partitions, members)
			load, moved := make(map[string]int), 0
			for p, owner := range owners {
				load[owner]++
				if before != nil && owner != before[p] && owner != members[n-1] {
					moved++
				}
			}
			for _, m := range members {
				if got := load[m]; got < partitions/n || got > partitions/n+1 {
					t.Errorf("%d partitions, %d replicas: got %d of %s, want %d or one more", partitions, n, got, m, partitions/n)
				}
			}
			if moved > partitions/2 {
				t.Errorf("%d partitions, replica %d joins: got %d moves among the others, want few", partitions, n, moved)
			}
			before = owners
		}
	}
}
