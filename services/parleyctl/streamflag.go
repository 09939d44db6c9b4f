package parleyctl

import (
	"slices"
	"strings"

	"github.com/parley-chat/parley/pkg/inspect"
)

// matchStreams returns the event streams that were requested; all by default.
func matchStreams(wanted []string) ([]string, error) {
	return matchAmong(inspect.StreamNames(), wanted)
}

// matchAmong returns the known streams that were requested; all by default.
func matchAmong(known, wanted []string) ([]string, error) {
	if len(wanted) == 0 {
		return known, nil
	}
	var matched []string
	for _, w := range wanted {
		name := strings.ToUpper(w)
		if !slices.Contains(known, name) {
			return nil, usage("--stream must be one of " + strings.Join(known, ", "))
		}
		matched = append(matched, name)
	}
	return matched, nil
}
