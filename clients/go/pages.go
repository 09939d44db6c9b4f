package parley

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"regexp"
)

// All returns the elements of a list, page by page. list requests one page: it passes its editor to the operation and
// returns the response's header and elements. An error ends the sequence.
//
//	chats := parley.All(func(page clientapi.RequestEditorFn) (http.Header, *[]clientapi.Chat, error) {
//		answer, err := client.ListChatsWithResponse(ctx, nil, page)
//		if err != nil {
//			return nil, nil, err
//		}
//		return answer.HTTPResponse.Header, answer.JSON200, nil
//	})
func All[T any, Editor ~func(context.Context, *http.Request) error](
	list func(page Editor) (http.Header, *[]T, error),
) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for query, first := "", true; first || query != ""; first = false {
			header, elements, err := list(func(_ context.Context, req *http.Request) error {
				if query != "" {
					req.URL.RawQuery = query
				}
				return nil
			})
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			if elements != nil {
				for _, element := range *elements {
					if !yield(element, nil) {
						return
					}
				}
			}
			query = nextQuery(header)
		}
	}
}

var nextLink = regexp.MustCompile(`<([^>]*)>\s*;[^,]*\brel="?next"?`)

// nextQuery returns the query of the next page (RFC 8288), or "".
func nextQuery(header http.Header) string {
	found := nextLink.FindStringSubmatch(header.Get("Link"))
	if found == nil {
		return ""
	}
	next, err := url.Parse(found[1])
	if err != nil {
		return ""
	}
	return next.RawQuery
}
