package httpapi

import (
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
)

const (
	maxNamedParameters = 8  // names listed in one response
	maxParameterName   = 64 // bytes; a longer name is not repeated
)

// CheckQuery rejects query parameters that are not in known, and lists the first few: a misspelt one would be ignored,
// and ?dryrun=true would really send. Names are case-sensitive.
func CheckQuery(c echo.Context, known ...string) error {
	if c.Request().URL.RawQuery == "" {
		return nil
	}
	var faults apperr.Fields
	for _, name := range slices.Sorted(maps.Keys(c.QueryParams())) {
		switch {
		case slices.Contains(known, name):
		case len(faults) == maxNamedParameters:
			return faults.Err()
		case name == "" || len(name) > maxParameterName || !utf8.ValidString(name):
			faults.Add("query", "has a parameter that is not one of this request")
		default:
			faults.Add(name, "is not a parameter of this request"+suggestion(name, known))
		}
	}
	return faults.Err()
}

// suggestion names the parameter that name stands for, if any.
func suggestion(name string, known []string) string {
	if k := meant(name, known); k != "" {
		return " (" + k + " is)"
	}
	return ""
}
