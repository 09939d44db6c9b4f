package http

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
)

// maxText bounds, in characters, a parameter that is compared with stored text.
const maxText = 256

// query reads the parameters of a list request and collects their errors.
type query struct {
	values url.Values
	wrong  apperr.Fields
}

func queryOf(c echo.Context) *query {
	values, err := url.ParseQuery(c.Request().URL.RawQuery)
	q := &query{values: values}
	if err != nil {
		q.wrong.Add("query", "must be a valid query string")
	}
	return q
}

// text returns a parameter, or "" if it is absent.
func (q *query) text(name string) string {
	switch all := q.values[name]; {
	case len(all) == 0:
		return ""
	case len(all) > 1:
		q.wrong.Add(name, "must be given once")
	case all[0] == "":
		q.wrong.Add(name, "must not be empty")
	case utf8.RuneCountInString(all[0]) > maxText || !utf8.ValidString(all[0]):
		q.wrong.Add(name, "must have at most 256 characters")
	default:
		return all[0]
	}
	return ""
}

// phone returns the digits of a phone number in any form that [chat.ParsePhone] accepts. A query decodes an
// unescaped + to a space, which is ignored like any other.
func (q *query) phone(name string) string {
	text := q.text(name)
	if text == "" {
		return ""
	}
	phone, ok := chat.ParsePhone(text)
	if !ok {
		q.wrong.Add(name, "must be a phone number: "+chat.PhoneRule)
	}
	return strings.TrimPrefix(phone, "+")
}

func (q *query) id(name string) string {
	text := q.text(name)
	if text == "" {
		return ""
	}
	id, ok := chat.ParseID(text)
	if !ok {
		q.wrong.Add(name, "must be a UUID")
	}
	return id
}

func (q *query) oneOf(name string, words ...string) string {
	text := q.text(name)
	if text != "" && !slices.Contains(words, text) {
		q.wrong.Add(name, "must be one of "+strings.Join(words, ", "))
	}
	return text
}

func (q *query) limit(byDefault, most int) int {
	text := q.text("limit")
	if text == "" {
		return byDefault
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		q.wrong.Add("limit", "must be a whole number from 1 to "+strconv.Itoa(most))
	}
	return n
}

// setNext sets the Link header to the next page (RFC 8288): the same query with another cursor. Its target is
// relative, so that it holds for every address of the API.
func (q *query) setNext(c echo.Context, name, cursor string) {
	q.values.Set(name, cursor)
	c.Response().Header().Set("Link", "<?"+q.values.Encode()+`>; rel="next"`)
}
