package parleyctl

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/store"
)

// pagedList makes c list the records that read returns, a page at a time. The first column is the id after
// which the next page continues. Flags of c are checked in its PreRunE, before the store is opened.
func pagedList[T, V any](
	a *app,
	c *cobra.Command,
	read func(context.Context, store.Store, store.Page) ([]T, error),
	view func(T) V,
	columns []column[V],
) *cobra.Command {
	var page store.Page
	c.Flags().IntVar(&page.Limit, "limit", 100, "maximum number; 0: all")
	c.Flags().StringVar(&page.After, "after", "", "continue after this id, the last one of the previous page")
	id := func(item T) string { return columns[0].of(view(item)) }
	c.RunE = func(c *cobra.Command, _ []string) error {
		if page.Limit < 0 {
			return usage("--limit must not be negative")
		}
		s, err := a.openStore(c.Context())
		if err != nil {
			return err
		}
		found, more, err := readUpTo(
			c.Context(), page,
			func(ctx context.Context, p store.Page) ([]T, error) { return read(ctx, s, p) }, id,
		)
		if err != nil {
			return err
		}
		if err := printViews(a, found, view, columns); err != nil {
			return err
		}
		if more && !a.wantsJSON() {
			a.note("There may be more: --after %s", id(found[len(found)-1]))
		}
		return nil
	}
	return c
}

// readUpTo reads p.Limit records, or all if it is 0, page by page. more reports that there may be more.
func readUpTo[T any](
	ctx context.Context, p store.Page, read func(context.Context, store.Page) ([]T, error), id func(T) string,
) (found []T, more bool, err error) {
	for q := p; ; {
		page, err := read(ctx, q)
		if err != nil {
			return nil, false, err
		}
		found = append(found, page...)
		if len(page) < q.Size() {
			return found, false, nil
		}
		if len(found) == p.Limit {
			return found, true, nil
		}
		q = store.Page{After: id(found[len(found)-1]), Limit: p.Limit - len(found)}
	}
}

// printViews is printList with a view of each item.
func printViews[T, V any](a *app, items []T, view func(T) V, columns []column[V]) error {
	var views []V
	for _, item := range items {
		views = append(views, view(item))
	}
	return printList(a, views, columns...)
}
