package http

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/admin/view"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/store"
)

// Every list is answered in pages. A request names the size of its page (limit) and where it begins (cursor);
// the answer has the cursor of the page after it (next), or null. A page may be short and still have a next
// one.

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

// reader reads records of a page, and the cursor of the next one, or "". A page may be short and still have a
// next one.
type reader[R any] = func(context.Context, store.Page) (found []R, next string, err error)

// whole is the reader of a list whose pages are short only at its end; id returns the cursor after a record.
func whole[R any](read func(context.Context, store.Page) ([]R, error), id func(R) string) reader[R] {
	return func(ctx context.Context, p store.Page) ([]R, string, error) {
		found, err := read(ctx, p)
		if err != nil || len(found) < p.Size() {
			return found, "", err
		}
		return found, id(found[len(found)-1]), nil
	}
}

// readPage reads the records of the page that a request asks for; id returns the cursor after a record. next
// is the cursor of the page after it, or "". It is for records of at most a few KiB.
func readPage[R any](
	c echo.Context, read func(context.Context, store.Page) ([]R, error), id func(R) string,
) (found []R, next string, err error) {
	next, err = walkPage(c, smallRecords, whole(read, id), id, func(r R) (int, error) {
		found = append(found, r)
		return 0, nil
	})
	return found, next, err
}

const (
	// smallRecords and largeRecords are the numbers of records that are read at once: a page and the next
	// record, or a part of a page.
	smallRecords = maxPage + 1
	largeRecords = 4
	// pageBytes bounds the rows of a page: they are copied several times until they are written.
	pageBytes = 1 << 20
)

// walkPage calls take for the records of a page until it has as many as the request asks for, or [pageBytes];
// take returns the size of a record's row. It reads one record more, which shows that there is a next page. A
// short read with a next one has examined as many records as one request may: it ends the page.
func walkPage[R any](
	c echo.Context,
	batch int,
	read reader[R],
	id func(R) string,
	take func(R) (int, error),
) (next string, err error) {
	p, err := pageOf(c)
	if err != nil {
		return "", err
	}
	last := p.After      // the cursor of the last record that was taken
	remaining := p.Limit // records of the page that are still to come
	size := 0            // of the rows so far
	for {
		part := store.Page{After: last, Limit: min(batch, remaining+1)}
		found, next, err := read(ctxOf(c), part)
		if last != "" && apperr.Is(err, apperr.NotFound) {
			return "", errCursor()
		}
		if err != nil {
			return "", err
		}
		for _, r := range found {
			if remaining == 0 || size >= pageBytes {
				return last, nil
			}
			n, err := take(r)
			if err != nil {
				return "", err
			}
			last = id(r)
			remaining--
			size += n
		}
		if len(found) < part.Limit {
			return next, nil
		}
	}
}

// recordsOf fixes the owner of the records that read returns, such as their company.
func recordsOf[R any](
	read func(ctx context.Context, owner string, p store.Page) ([]R, error), owner string,
) func(context.Context, store.Page) ([]R, error) {
	return func(ctx context.Context, p store.Page) ([]R, error) { return read(ctx, owner, p) }
}

// answerPage answers a page with its members and next.
func answerPage(c echo.Context, next string, members map[string]any) error {
	members["next"] = nil
	if next != "" {
		members["next"] = next
	}
	return answerJSON(c, http.StatusOK, members)
}

// answerList answers a page of records as the member name, beside other members; see [readPage].
func answerList[R, V any](
	c echo.Context,
	name string,
	read func(context.Context, store.Page) ([]R, error),
	id func(R) string,
	of func(R) V,
	members map[string]any,
) error {
	found, next, err := readPage(c, read, id)
	if err != nil {
		return err
	}
	if members == nil {
		members = map[string]any{}
	}
	members[name] = view.ListOf(found, of)
	return answerPage(c, next, members)
}

// answerRows is answerList for larger records, such as an application with up to 1 MiB of settings. It holds few
// records at a time, and rows of at most [pageBytes] and one row more.
func answerRows[R, V any](
	c echo.Context,
	name string,
	read func(context.Context, store.Page) ([]R, error),
	id func(R) string,
	of func(R) V,
) error {
	return answerParts(c, name, largeRecords, whole(read, id), id, of)
}

// answerExamined is answerRows for a list that examines records one by one. The page is read at once, so that a request
// examines no more than one page of the store does.
func answerExamined[R, V any](
	c echo.Context, name string, read reader[R], id func(R) string, of func(R) V,
) error {
	return answerParts(c, name, smallRecords, read, id, of)
}

func answerParts[R, V any](
	c echo.Context,
	name string,
	batch int,
	read reader[R],
	id func(R) string,
	of func(R) V,
) error {
	rows := []json.RawMessage{}
	next, err := walkPage(c, batch, read, id, func(r R) (int, error) {
		row, err := encodeJSON(of(r))
		rows = append(rows, row)
		return len(row), err
	})
	if err != nil {
		return err
	}
	return answerPage(c, next, map[string]any{name: rows})
}
