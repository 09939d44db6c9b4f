package httpapi

import (
	"maps"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
)

// CheckQuery refuses query parameters that are not in known, with one fault for each: a misspelt one would be ignored, and
// ?dryrun=true would really send. Names are case-sensitive.
func CheckQuery(c echo.Context, known ...string) error {
	if c.Request().URL.RawQuery == "" {
		return nil
	}
	var faults apperr.Fields
	for _, name := range slices.Sorted(maps.Keys(c.QueryParams())) {
		if slices.Contains(known, name) {
			continue
		}
		message := "is not a parameter of this request"
		if i := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, name) }); i >= 0 {
			message += " (" + known[i] + " is)"
		}
		faults.Add(name, message)
	}
	return faults.Err()
}
