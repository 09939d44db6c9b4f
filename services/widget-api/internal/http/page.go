package http

import (
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
func pageOf(query string) (conversation.Page, error) {
	var wrong apperr.Fields
	values, err := url.ParseQuery(query)
	if err != nil {
		wrong.Add("query", "must be a valid query string")
		return conversation.Page{}, wrong.Err()
	}
	var page conversation.Page
	if given, text := once(&wrong, values, "before"); given {
		page.Before, page.Limit = text, defaultLimit
		if text == "" {
			wrong.Add("before", "must be the id of a message of the chat")
		}
	}
	if given, text := once(&wrong, values, "limit"); given {
		if page.Limit, err = strconv.Atoi(text); err != nil || page.Limit < 1 || page.Limit > maxLimit {
			wrong.Add("limit", "must be a whole number from 1 to "+strconv.Itoa(maxLimit))
		}
	}
	return page, wrong.Err()
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

// linkToNext returns the Link header of the page before this one (RFC 8288). Its target is relative, so that it holds for every
// address of the API.
func linkToNext(page conversation.Page, first string) string {
	target := url.Values{"before": {first}, "limit": {strconv.Itoa(maxLimit)}}
	if page.Limit > 0 {
		target.Set("limit", strconv.Itoa(page.Limit))
	}
	return "<?" + target.Encode() + `>; rel="next"`
}
