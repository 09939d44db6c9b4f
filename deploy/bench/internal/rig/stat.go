package rig

import (
	"cmp"
	"slices"
)

// Median returns the middle of values, the upper one of two.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// Quantile returns the value below which the part q of sorted lies; of nothing it is zero.
func Quantile[T cmp.Ordered](sorted []T, q float64) T {
	if len(sorted) == 0 {
		var zero T
		return zero
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
