package parleyctl

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/admin/view"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

func (a *app) company() resource[chat.Company, view.Company] {
	return resource[chat.Company, view.Company]{
		app:      a,
		argument: "COMPANY",
		find:     store.Store.Company,
		complete: a.completeCompanies,
		open:     a.stored,
		view:     view.CompanyOf,
		id:       func(v view.Company) string { return v.ID },
		columns: []column[view.Company]{
			{"id", func(v view.Company) string { return v.ID }},
			{"name", func(v view.Company) string { return v.Name }},
		},
	}
}

func (a *app) companies() *cobra.Command {
	return commandGroup("companies", "Create, list and rename companies", []string{"company"},
		a.companiesCreate(), a.companiesList(), a.companiesShow(), a.companiesRename())
}

func (a *app) companiesCreate() *cobra.Command {
	var name, id string
	c := &cobra.Command{
		Use: "create", Short: "Create a company", Example: `  parleyctl companies create --name "Acme"`, Args: exactArgs(),
	}
	c.Flags().StringVar(&name, "name", "", "its name")
	require(c, "name")
	addIDFlag(c, &id, "id", "its id, a UUID; default: a new one")
	return a.company().create(c, func(ctx context.Context, o operations) (chat.Company, error) {
		if err := unused(ctx, id, o.store.Company); err != nil {
			return chat.Company{}, err
		}
		return o.PutCompany(ctx, self(), chat.Company{ID: id, Name: name})
	})
}

// unused returns Conflict if a record has the wanted id already.
func unused[R any](ctx context.Context, wanted string, find func(context.Context, string) (R, error)) error {
	if wanted == "" {
		return nil
	}
	_, err := find(ctx, wanted)
	if err == nil {
		return apperr.New(apperr.Conflict, "ID_TAKEN", "A record has the id "+wanted+" already")
	}
	if apperr.Is(err, apperr.NotFound) {
		return nil
	}
	return err
}

// parseID parses an id of the command line into its canonical form.
func parseID(what, s string) (string, error) {
	id, ok := chat.ParseID(s)
	if !ok {
		return "", usage(what + " must be a UUID")
	}
	return id, nil
}

// optionalID is parseID for a flag that may be empty.
func optionalID(what string, id *string) (err error) {
	if *id != "" {
		*id, err = parseID(what, *id)
	}
	return err
}

// notNegative rejects a negative number.
func notNegative[N ~int | ~int64 | ~float64](flag string, n N) error {
	if n < 0 {
		return usage(flag + " must not be negative")
	}
	return nil
}

func (a *app) companiesList() *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "List the companies"}
	return a.company().list(c, defaultLimit, func(
		ctx context.Context, s store.Store, p store.Page,
	) ([]chat.Company, error) {
		return s.Companies(ctx, p)
	})
}

func (a *app) companiesShow() *cobra.Command {
	return a.company().show(&cobra.Command{Use: "show COMPANY", Short: "Show a company"})
}

func (a *app) companiesRename() *cobra.Command {
	c := &cobra.Command{
		Use:   "rename COMPANY NAME",
		Short: "Rename a company",
		Args:  exactArgs("COMPANY", "NAME"),
	}
	return a.company().change(c, func(ctx context.Context, o operations, found chat.Company) (chat.Company, error) {
		found.Name = c.Flags().Arg(1)
		if found.Name == "" {
			return found, usage("NAME must not be empty")
		}
		return o.PutCompany(ctx, self(), found)
	})
}
