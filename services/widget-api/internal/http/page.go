package http

import (
	"cmp"
	"net/url"
	"strconv"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/services/widget-api/internal/conversation"
)

const (
	maxLimit     = conversation.MaxPage
	defaultLimit = 100 // of a page with only before
)

// pageOf parses the page of a query. Without limit and before it is as much as one answer holds.
func pageOf(query string) (conversation.PageQuery, error) {
	var wrong apperr.Fields
	values, err := url.ParseQuery(query)
	if err != nil {
		wrong.Add("query", "must be a valid query string")
		return conversation.PageQuery{}, wrong.Err()
	}
	var page conversation.PageQuery
	if given, text := once(&wrong, values, "before"); given {
		page.Before = text
		page.Limit = defaultLimit
		if text == "" {
			wrong.Add("before", "must be the id of a message of the chat")
		}
	}
	if given, text := once(&wrong, values, "limit"); given {
		page.Limit = limitOf(&wrong, text, maxLimit)
	}
	return page, wrong.Err()
}

func limitOf(wrong *apperr.Fields, text string, most int) int {
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > most {
		wrong.Add("limit", "must be a whole number from 1 to "+strconv.Itoa(most))
	}
	return limit
}

// once returns the parameter's value. A repeated parameter is an error.
func once(wrong *apperr.Fields, values url.Values, name string) (given bool, value string) {
	switch all := values[name]; len(all) {
	case 0:
		return false, ""
	case 1:
		return true, all[0]
	}
	wrong.Add(name, "must be given once")
	return false, ""
}

// linkToNext returns the Link header of the page before this one.
func linkToNext(page conversation.PageQuery, first string) string {
	return linkTo("before", first, cmp.Or(page.Limit, maxLimit))
}

// linkTo returns the Link header of the page at a cursor (RFC 8288). Its target is relative, so that it holds
// for every address of the API.
func linkTo(parameter, cursor string, limit int) string {
	target := url.Values{parameter: {cursor}, "limit": {strconv.Itoa(limit)}}
	return "<?" + target.Encode() + `>; rel="next"`
}
