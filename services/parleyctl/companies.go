package parleyctl

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

type companyView struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

func viewOfCompany(c chat.Company) companyView { return companyView{ID: c.ID, Name: c.Name} }

func companyColumns() []column[companyView] {
	return []column[companyView]{
		{"id", func(v companyView) string { return v.ID }},
		{"name", func(v companyView) string { return v.Name }},
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
		RunE: func(c *cobra.Command, _ []string) error {
			if err := required(c, "name"); err != nil {
				return err
			}
			s, err := a.openStore(c.Context())
			if err != nil {
				return err
			}
			if id, err = newID(c.Context(), id, s.Company); err != nil {
				return err
			}
			created, err := admin.New(s, nil, a.Now).PutCompany(c.Context(), self(), chat.Company{ID: id, Name: name})
			if err != nil {
				return err
			}
			return printOne(a, viewOfCompany(created), companyColumns()...)
		},
	}
	c.Flags().StringVar(&name, "name", "", "its name")
	c.Flags().StringVar(&id, "id", "", "its id, a UUID; default: a new one")
	return c
}

// newID returns the wanted id if it is valid and unused, or else a new one.
func newID[T any](ctx context.Context, wanted string, get func(context.Context, string) (T, error)) (string, error) {
	if wanted == "" {
		return chat.NewID(), nil
	}
	id, err := parseID("--id", wanted)
	if err != nil {
		return "", err
	}
	_, err = get(ctx, id)
	if err == nil {
		return "", apperr.New(apperr.Conflict, "ID_TAKEN", "A record has the id "+id+" already")
	}
	if !apperr.Is(err, apperr.NotFound) {
		return "", err
	}
	return id, nil
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

func (a *app) companiesList() *cobra.Command {
	return pagedList(
		a,
		&cobra.Command{Use: "list", Short: "List the companies", Aliases: []string{"ls"}, Args: exactArgs()},
		func(ctx context.Context, s store.Store, page store.Page) ([]chat.Company, error) {
			return s.Companies(ctx, page)
		},
		viewOfCompany,
		companyColumns(),
	)
}

func (a *app) companiesShow() *cobra.Command {
	return &cobra.Command{
		Use: "show COMPANY", Short: "Show a company", Args: exactArgs("COMPANY"), ValidArgsFunction: a.completeCompanies,
		RunE: func(c *cobra.Command, args []string) error {
			company, err := a.company(c.Context(), args[0])
			if err != nil {
				return err
			}
			return printOne(a, viewOfCompany(company), companyColumns()...)
		},
	}
}

func (a *app) company(ctx context.Context, arg string) (chat.Company, error) {
	id, err := parseID("COMPANY", arg)
	if err != nil {
		return chat.Company{}, err
	}
	s, err := a.openStore(ctx)
	if err != nil {
		return chat.Company{}, err
	}
	return s.Company(ctx, id)
}

func (a *app) companiesRename() *cobra.Command {
	return &cobra.Command{
		Use:               "rename COMPANY NAME",
		Short:             "Rename a company",
		Args:              exactArgs("COMPANY", "NAME"),
		ValidArgsFunction: a.completeCompanies,
		RunE: func(c *cobra.Command, args []string) error {
			company, err := a.company(c.Context(), args[0])
			if err != nil {
				return err
			}
			if company.Name = args[1]; company.Name == "" {
				return usage("NAME must not be empty")
			}
			if company, err = admin.New(a.connections.store, nil, a.Now).PutCompany(c.Context(), self(), company); err != nil {
				return err
			}
			return printOne(a, viewOfCompany(company), companyColumns()...)
		},
	}
}
