package httpapi

import (
	"maps"
	"slices"
	"strings"
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
			faults.Add(name, "is not a parameter of this request"+meant(name, known))
		}
	}
	return faults.Err()
}

// meant suggests the parameter that differs from name only in case.
func meant(name string, known []string) string {
	for _, k := range known {
		if strings.EqualFold(k, name) {
			return " (" + k + " is)"
		}
	}
	return ""
}
