package rig

import (
	"cmp"
	"slices"
)

// Median returns the median of values, the upper of two middle ones.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// Quantile returns the q-quantile of sorted; zero if it is empty.
func Quantile[T cmp.Ordered](sorted []T, q float64) T {
	if len(sorted) == 0 {
		var zero T
		return zero
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
