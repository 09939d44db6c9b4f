package parleyctl

import (
	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/store"
)

// pageFlags are those of every list that may be long.
func pageFlags(c *cobra.Command, p *store.Page) {
	c.Flags().IntVar(&p.Limit, "limit", 100, "at most so many; 0: all")
	c.Flags().StringVar(&p.After, "after", "", "continue after this id, the last one of the previous page")
}

// checkPage refuses what no list understands.
func checkPage(p store.Page) error {
	if p.Limit < 0 {
		return usage("--limit must not be negative")
	}
	return nil
}

// more prints the command for the next page, if there may be one.
func (a *app) more(p store.Page, found int, last string) {
	if p.Limit > 0 && found == p.Limit && !a.wantsJSON() {
		a.note("There may be more: --after %s", last)
	}
}
