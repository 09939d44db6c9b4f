package parleyctl

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/admin/view"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/store"
)

// What the commands on records have in common: they check their flags, open the store, and NATS for a change
// of records that services cache. Then they find the record of their argument, call one operation of package
// admin, and print a view.

// operations are those of package admin, and the store that they change.
type operations struct {
	*admin.Service
	store store.Store
}

// opener opens what operations need.
type opener func(context.Context) (operations, error)

// stored opens the store: for reads, and for changes of records that no service caches.
func (a *app) stored(ctx context.Context) (operations, error) {
	s, err := a.openStore(ctx)
	if err != nil {
		return operations{}, err
	}
	return operations{admin.New(s, nil, a.Now), s}, nil
}

// cached opens the store and NATS, for changes that invalidate caches: it fails before any change.
func (a *app) cached(ctx context.Context) (operations, error) {
	b, err := a.openBus(ctx)
	if err != nil {
		return operations{}, err
	}
	s, err := a.openStore(ctx)
	if err != nil {
		return operations{}, err
	}
	return operations{admin.New(s, b, a.Now), s}, nil
}

// withOperations makes c open what do needs and run it.
func withOperations(c *cobra.Command, open opener, do func(context.Context, operations) error) *cobra.Command {
	c.RunE = func(c *cobra.Command, _ []string) error {
		o, err := open(c.Context())
		if err != nil {
			return err
		}
		return do(c.Context(), o)
	}
	return c
}

// withBus makes c connect to NATS and run do.
func (a *app) withBus(c *cobra.Command, do func(context.Context, *bus.Bus, []string) error) *cobra.Command {
	c.RunE = func(c *cobra.Command, args []string) error {
		b, err := a.openBus(c.Context())
		if err != nil {
			return err
		}
		return do(c.Context(), b, args)
	}
	return c
}

// checkFirst adds a check of the command line, which runs before anything is opened. Checks run in the order
// in which they are added.
func checkFirst(c *cobra.Command, check func() error) {
	before := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error {
		if before != nil {
			if err := before(c, args); err != nil {
				return err
			}
		}
		return check()
	}
}

// require makes flags required; c reports all that are missing at once.
func require(c *cobra.Command, names ...string) {
	checkFirst(c, func() error { return required(c, names...) })
}

// addIDFlag adds a flag for an optional id.
func addIDFlag(c *cobra.Command, id *string, name, usage string) {
	c.Flags().StringVar(id, name, "", usage)
	checkFirst(c, func() error { return optionalID("--"+name, id) })
}

const (
	defaultLimit = 100 // of a list
	noLimit      = 0   // of a list that a company's bounds keep short
)

// addChoiceFlag adds a flag that is completed with words.
func addChoiceFlag[W ~string](c *cobra.Command, value *string, name, preset, usage string, words ...W) {
	c.Flags().StringVar(value, name, preset, usage)
	texts := view.ListOf(words, func(w W) string { return string(w) })
	_ = c.RegisterFlagCompletionFunc(name, fixed(texts...)) // the flag exists
}

// resource says how commands find and print one kind of record: R is the record, V its view.
type resource[R, V any] struct {
	app      *app
	argument string                       // of commands on one record, such as CHAT
	parse    func(string) (string, error) // of the argument; nil: it is a UUID
	find     func(store.Store, context.Context, string) (R, error)
	complete completer
	open     opener // what a change needs
	view     func(R) V
	id       func(V) string // after which the next page of a list continues
	columns  []column[V]
	rows     func(V) []row // of a single record; nil: the columns
}

// print prints one record.
func (r resource[R, V]) print(record R) error {
	v := r.view(record)
	return printOne(r.app, v, r.rowsOf(v)...)
}

func (r resource[R, V]) rowsOf(v V) []row {
	if r.rows != nil {
		return r.rows(v)
	}
	return rowsOf(v, r.columns)
}

// on makes c run do with the record that its argument names.
func (r resource[R, V]) on(
	c *cobra.Command, open opener, do func(context.Context, operations, R) error,
) *cobra.Command {
	if c.Args == nil {
		c.Args = exactArgs(r.argument)
	}
	if c.ValidArgsFunction == nil {
		c.ValidArgsFunction = r.complete
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		id, err := r.parseArgument(args[0])
		if err != nil {
			return err
		}
		o, err := open(c.Context())
		if err != nil {
			return err
		}
		found, err := r.find(o.store, c.Context(), id)
		if err != nil {
			return err
		}
		return do(c.Context(), o, found)
	}
	return c
}

func (r resource[R, V]) parseArgument(arg string) (string, error) {
	if r.parse != nil {
		return r.parse(arg)
	}
	return parseID(r.argument, arg)
}

// show makes c print the record that its argument names.
func (r resource[R, V]) show(c *cobra.Command) *cobra.Command {
	return r.on(c, r.app.stored, func(_ context.Context, _ operations, record R) error { return r.print(record) })
}

// change makes c change the record that its argument names, and print what change returns.
func (r resource[R, V]) change(
	c *cobra.Command, change func(context.Context, operations, R) (R, error),
) *cobra.Command {
	return r.on(c, r.open, func(ctx context.Context, o operations, record R) error {
		changed, err := change(ctx, o, record)
		if err != nil {
			return err
		}
		return r.print(changed)
	})
}

// byID returns the change that an operation of package admin makes, which needs only the id of the record.
func (r resource[R, V]) byID(
	change func(*admin.Service, context.Context, admin.Actor, string) (R, error),
) func(context.Context, operations, R) (R, error) {
	return func(ctx context.Context, o operations, record R) (R, error) {
		return change(o.Service, ctx, self(), r.id(r.view(record)))
	}
}

// confirmed is change for a destructive command, which asks question first or has --yes.
func (r resource[R, V]) confirmed(
	c *cobra.Command, question func(R) string, change func(context.Context, operations, R) (R, error),
) *cobra.Command {
	var yes bool
	addYesFlag(c, &yes)
	return r.change(c, func(ctx context.Context, o operations, record R) (R, error) {
		if err := r.app.confirm(yes, "%s", question(record)); err != nil {
			return record, err
		}
		return change(ctx, o, record)
	})
}

// create makes c print the record that make returns. A new record is in no cache.
func (r resource[R, V]) create(c *cobra.Command, make func(context.Context, operations) (R, error)) *cobra.Command {
	return withOperations(c, r.app.stored, func(ctx context.Context, o operations) error {
		made, err := make(ctx, o)
		if err != nil {
			return err
		}
		return r.print(made)
	})
}

// list makes c list the records that read returns, a page at a time.
func (r resource[R, V]) list(
	c *cobra.Command, limit int, read func(context.Context, store.Store, store.Page) ([]R, error),
) *cobra.Command {
	return r.listPages(c, limit, func(ctx context.Context, s store.Store, p store.Page) ([]R, string, error) {
		found, err := read(ctx, s, p)
		if err != nil || len(found) < p.Size() {
			return found, "", err
		}
		return found, r.id(r.view(found[len(found)-1])), nil
	})
}

// listPages is list for a list whose pages have a cursor, because they may be short.
func (r resource[R, V]) listPages(
	c *cobra.Command, limit int, read func(context.Context, store.Store, store.Page) ([]R, string, error),
) *cobra.Command {
	var page store.Page
	c.Aliases = append(c.Aliases, "ls")
	if c.Args == nil {
		c.Args = exactArgs()
	}
	c.Flags().IntVar(&page.Limit, "limit", limit, "maximum number; 0: all")
	c.Flags().StringVar(&page.After, "after", "", "continue after this id, the last one of the previous page")
	checkFirst(c, func() error { return notNegative("--limit", page.Limit) })
	return withOperations(c, r.app.stored, func(ctx context.Context, o operations) error {
		readPage := func(ctx context.Context, p store.Page) ([]R, string, error) { return read(ctx, o.store, p) }
		found, next, err := readUpTo(ctx, page, readPage)
		if err != nil {
			return err
		}
		if err := printList(r.app, view.ListOf(found, r.view), r.columns...); err != nil {
			return err
		}
		if next != "" && !r.app.wantsJSON() {
			r.app.note("There may be more: --after %s", next)
		}
		return nil
	})
}

// companyReader reads a page of a company's records, or of all companies' if companyID is empty.
type companyReader[R any] = func(s store.Store, ctx context.Context, companyID string, p store.Page) ([]R, error)

// listAny makes c list the records of --company, or of all companies.
func (r resource[R, V]) listAny(c *cobra.Command, limit int, read companyReader[R]) *cobra.Command {
	var company string
	r.app.addCompanyFlag(c, &company, "only this company's")
	return r.list(c, limit, func(ctx context.Context, s store.Store, p store.Page) ([]R, error) {
		return read(s, ctx, company, p)
	})
}

// listOfCompany makes c list all records of --company. Its bounds keep the list short.
func (r resource[R, V]) listOfCompany(c *cobra.Command, read companyReader[R]) *cobra.Command {
	var company string
	require(c, "company")
	r.app.addCompanyFlag(c, &company, "the company")
	return r.list(c, noLimit, func(ctx context.Context, s store.Store, p store.Page) ([]R, error) {
		if _, err := s.Company(ctx, company); err != nil {
			return nil, err
		}
		return read(s, ctx, company, p)
	})
}

// readUpTo reads p.Limit records, or all if it is 0, page by page, and returns the cursor of the next page, or "".
func readUpTo[T any](
	ctx context.Context, p store.Page, read func(context.Context, store.Page) (page []T, next string, err error),
) (found []T, next string, err error) {
	for q := p; ; {
		page, next, err := read(ctx, q)
		if err != nil {
			return nil, "", err
		}
		found = append(found, page...)
		if next == "" || p.Limit > 0 && len(found) >= p.Limit {
			return found, next, nil
		}
		q = store.Page{After: next, Limit: max(0, p.Limit-len(found))}
	}
}
