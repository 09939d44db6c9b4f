package http

import (
	"context"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/store"
)

// Every list is answered in pages. A request names the size of its page (limit) and where it begins (cursor); the answer has the cursor
// of the page after it (next), or null. A page may be short and still have a next one.

const (
	defaultPage = 50
	maxPage     = 200
	// maxCursor is the longest cursor in bytes: they are ids, hashes, and ids with a time.
	maxCursor = 128
)

// pageOf parses the page that a request asks for.
func pageOf(c echo.Context) (store.Page, error) {
	p := store.Page{After: c.QueryParam("cursor"), Limit: defaultPage}
	if len(p.After) > maxCursor || !utf8.ValidString(p.After) {
		return p, errCursor()
	}
	text := c.QueryParam("limit")
	if text == "" {
		return p, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxPage {
		return p, apperr.Fields{{Name: "limit", Message: "must be 1 to 200"}}.Err()
	}
	p.Limit = n
	return p, nil
}

// errCursor is the error for a cursor that no answer had, or whose record is gone.
func errCursor() error {
	return apperr.Fields{{Name: "cursor", Message: "must be the next of another answer"}}.Err()
}

// readPage reads the records of the page that a request asks for; id returns the cursor after a record. next is the cursor of the page
// after it, or "".
func readPage[R any](
	c echo.Context, read func(context.Context, store.Page) ([]R, error), id func(R) string,
) (found []R, next string, err error) {
	p, err := pageOf(c)
	if err != nil {
		return nil, "", err
	}
	wanted := p.Limit
	p.Limit++ // one more shows that there is a next page
	found, err = read(ctxOf(c), p)
	if p.After != "" && apperr.Is(err, apperr.NotFound) {
		return nil, "", errCursor()
	}
	if len(found) > wanted {
		found = found[:wanted]
		next = id(found[wanted-1])
	}
	return found, next, err
}

// viewsOf returns the views of records.
func viewsOf[R, V any](found []R, view func(R) V) []V {
	rows := make([]V, len(found))
	for i, r := range found {
		rows[i] = view(r)
	}
	return rows
}

// answerPage answers a page with its members and next.
func answerPage(c echo.Context, next string, members map[string]any) error {
	members["next"] = nil
	if next != "" {
		members["next"] = next
	}
	return answerJSON(c, http.StatusOK, members)
}
