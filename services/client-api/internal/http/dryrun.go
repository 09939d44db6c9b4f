package http

import (
	"encoding/json"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
)

// queryDryRun is the parameter dryRun of the query: check everything, send nothing.
type queryDryRun uint8

const (
	dryRunNo queryDryRun = iota
	dryRunYes
	dryRunMalformed
)

// queryDryRunOf parses the query only if there is one.
func queryDryRunOf(c echo.Context) queryDryRun {
	if c.Request().URL.RawQuery == "" {
		return dryRunNo
	}
	values, there := c.QueryParams()["dryRun"]
	switch {
	case !there:
		return dryRunNo
	case len(values) == 1 && values[0] == "true":
		return dryRunYes
	case len(values) == 1 && values[0] == "false":
		return dryRunNo
	}
	return dryRunMalformed // a caller that asked for a dry run must not send
}

// validate adds the error of the parameter.
func (d queryDryRun) validate(f *apperr.Fields) {
	if d == dryRunMalformed {
		f.Add("dryRun", "must be true or false")
	}
}

// bodyDryRun is a member dryRun of the body, where it has no effect: the parameter belongs to the query.
type bodyDryRun json.RawMessage

// UnmarshalJSON implements [json.Unmarshaler].
func (d *bodyDryRun) UnmarshalJSON(value []byte) error {
	*d = append((*d)[:0], value...)
	return nil
}

// validate refuses a body that asks for a dry run: ignored, it would send.
func (d bodyDryRun) validate(f *apperr.Fields) {
	switch string(d) {
	case "", "null", "false":
	default:
		f.Add("dryRun", "is not a field of the body but a parameter of the query: ?dryRun=true")
	}
}
