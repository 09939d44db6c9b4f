package http

import (
	"encoding/json"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
)

// dryRun is the dryRun parameter of a request: check everything, send nothing.
type dryRun uint8

const (
	dryRunNo dryRun = iota
	dryRunYes
	dryRunMalformed
)

// dryRunOf parses the query only if there is one.
func dryRunOf(c echo.Context) dryRun {
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

// validate adds the error of the parameter to those of the body.
func (d dryRun) validate(body apperr.Fields) apperr.Fields {
	if d == dryRunMalformed {
		body.Add("dryRun", "must be true or false")
	}
	return body
}

// dryRunInBody is a member dryRun of the body, where it has no effect: the parameter belongs to the query.
type dryRunInBody json.RawMessage

// UnmarshalJSON implements [json.Unmarshaler].
func (d *dryRunInBody) UnmarshalJSON(value []byte) error {
	*d = append((*d)[:0], value...)
	return nil
}

// validate refuses a body that asks for a dry run: ignored, it would send.
func (d dryRunInBody) validate(body apperr.Fields) apperr.Fields {
	switch string(d) {
	case "", "null", "false":
	default:
		body.Add("dryRun", "is not a field of the body but a parameter of the query: ?dryRun=true")
	}
	return body
}
