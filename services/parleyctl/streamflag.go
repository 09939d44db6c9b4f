package parleyctl

import (
	"slices"
	"strings"

	"github.com/parley-chat/parley/pkg/inspect"
)

// matchStreams returns the streams that were requested; all by default.
func matchStreams(wanted []string) ([]string, error) {
	if len(wanted) == 0 {
		return inspect.StreamNames(), nil
	}
	var matched []string
	for _, w := range wanted {
		name := strings.ToUpper(w)
		if !slices.Contains(inspect.StreamNames(), name) {
			return nil, usage("--stream must be one of " + strings.Join(inspect.StreamNames(), ", "))
		}
		matched = append(matched, name)
	}
	return matched, nil
}
