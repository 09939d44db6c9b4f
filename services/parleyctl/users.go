package parleyctl

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/store"
)

type userView struct {
	ID           string       `json:"id"`
	Email        string       `json:"email"`
	Name         string       `json:"name"`
	Role         account.Role `json:"role"`
	CompanyID    string       `json:"companyId,omitempty"`
	Status       string       `json:"status"`
	CreatedAt    timestamp    `json:"createdAt"`
	LastSignInAt timestamp    `json:"lastSignInAt,omitzero"`
	Password     string       `json:"password,omitempty"` // only at creation
}

func viewOfUser(u account.User) userView {
	return userView{
		ID:           u.ID,
		Email:        u.Email,
		Name:         u.Name,
		Role:         u.Role,
		CompanyID:    u.CompanyID,
		Status:       u.Status(),
		CreatedAt:    timestamp(u.CreatedAt),
		LastSignInAt: timestamp(u.LastSignInAt),
	}
}

func userColumns() []column[userView] {
	return []column[userView]{
		{"id", func(v userView) string { return v.ID }},
		{"email", func(v userView) string { return v.Email }},
		{"name", func(v userView) string { return v.Name }},
		{"role", func(v userView) string { return string(v.Role) }},
		{"company", func(v userView) string { return v.CompanyID }},
		{"status", func(v userView) string { return v.Status }},
		{"created", func(v userView) string { return v.CreatedAt.String() }},
		{"last sign-in", func(v userView) string { return v.LastSignInAt.String() }},
	}
}

// self returns parleyctl as the actor in the audit log.
func self() admin.Actor { return admin.Actor{Name: name} }

func (a *app) users() *cobra.Command {
	return commandGroup(
		"users", "Create and list the panel's users, set their passwords, and unbind their single sign-on",
		[]string{"user"}, a.usersCreate(), a.usersList(), a.usersPassword(), a.usersUnbind(), a.usersDelete(),
	)
}

func (a *app) usersCreate() *cobra.Command {
	var email, title, role, company string
	var fromInput bool
	c := &cobra.Command{
		Use: "create", Short: "Create a user of the panel, and show the password once", Args: exactArgs(),
		Long: `Create a user of the panel. The password is random and shown once; with --password-stdin it is read from standard input. An operator belongs
to no company and may do everything; owner, developer and agent belong to one.`,
		Example: "  parleyctl users create --email you@example.com --role operator\n" +
			"  parleyctl users create --email ada@example.com --role owner --company COMPANY --password-stdin < password",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := required(c, "email", "role"); err != nil {
				return err
			}
			if err := optionalID("--company", &company); err != nil {
				return err
			}
			password, made, err := a.password(fromInput)
			if err != nil {
				return err
			}
			s, err := a.openStore(c.Context())
			if err != nil {
				return err
			}
			u := account.NewUser(email, title, account.Role(role), company, a.Now())
			if err := admin.New(s, nil, a.Now).CreateUser(c.Context(), self(), u, password); err != nil {
				return err
			}
			if u, err = s.User(c.Context(), u.ID); err != nil {
				return err
			}
			return a.printWithPassword(u, made)
		},
	}
	c.Flags().StringVar(&email, "email", "", "the e-mail address to sign in with")
	c.Flags().StringVar(&title, "name", "", "the name that others see")
	c.Flags().StringVar(&role, "role", "", "operator, owner, developer or agent")
	a.addCompanyFlag(c, &company, "the company; none for an operator")
	c.Flags().BoolVar(&fromInput, "password-stdin", false, "read the password from standard input")
	_ = c.RegisterFlagCompletionFunc(
		"role",
		fixed(string(account.Operator), string(account.Owner), string(account.Developer), string(account.Agent)),
	) // the flag exists
	return c
}

// password returns the one on standard input, or a new one to be shown.
func (a *app) password(fromInput bool) (password, made string, err error) {
	if !fromInput {
		made = account.NewPassword()
		return made, made, nil
	}
	data, err := io.ReadAll(a.In)
	if err != nil {
		return "", "", usage("--password-stdin: " + err.Error())
	}
	return strings.TrimRight(string(data), "\r\n"), "", nil
}

func (a *app) printWithPassword(u account.User, made string) error {
	view := viewOfUser(u)
	if view.Password = made; made != "" {
		a.note("Keep the password: it is not shown again.")
	}
	return printOne(
		a,
		view,
		append(userColumns(), column[userView]{"password", func(v userView) string { return v.Password }})...)
}

func (a *app) usersList() *cobra.Command {
	var company string
	c := &cobra.Command{
		Use: "list", Short: "List the panel's users", Aliases: []string{"ls"}, Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := optionalID("--company", &company); err != nil {
				return err
			}
			s, err := a.openStore(c.Context())
			if err != nil {
				return err
			}
			read := func(ctx context.Context, p store.Page) ([]account.User, error) { return s.Users(ctx, company, p) }
			found, _, err := readUpTo(c.Context(), store.Page{}, read, func(u account.User) string { return u.ID })
			if err != nil {
				return err
			}
			return printViews(a, found, viewOfUser, userColumns())
		},
	}
	a.addCompanyFlag(c, &company, "only this company's")
	return c
}

func (a *app) usersPassword() *cobra.Command {
	var fromInput, removeTOTP bool
	c := &cobra.Command{
		Use: "password EMAIL", Short: "Change a user's password, and end all sessions", Args: exactArgs("EMAIL"),
		Example: "  parleyctl users password ada@example.com --remove-totp",
		RunE: func(c *cobra.Command, args []string) error {
			password, made, err := a.password(fromInput)
			if err != nil {
				return err
			}
			s, err := a.openStore(c.Context())
			if err != nil {
				return err
			}
			operations := admin.New(s, nil, a.Now)
			id := account.UserID(args[0])
			if removeTOTP {
				if _, err := operations.UpdateUser(c.Context(), self(), "user.totp", id, func(u *account.User) error {
					u.RemoveTOTP()
					return nil
				}); err != nil {
					return err
				}
			}
			u, err := operations.SetPassword(c.Context(), self(), id, "password", password)
			if err != nil {
				return err
			}
			return a.printWithPassword(u, made)
		},
	}
	c.Flags().BoolVar(&fromInput, "password-stdin", false, "read the password from standard input")
	c.Flags().BoolVar(&removeTOTP, "remove-totp", false, "also remove the second factor, for a user who has lost it")
	return c
}

func (a *app) usersUnbind() *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use:   "unbind EMAIL",
		Short: "Forget a user's identity at the OpenID Connect issuer, and end all sessions",
		Args:  exactArgs("EMAIL"),
		Long: `Forget a user's identity at the OpenID Connect issuer, and end all sessions. The first sign-in with the issuer binds a user to the issuer's
subject; another subject with the same address is refused. Unbind after the account at the issuer was created anew, or when the issuer changes:
the next sign-in with that address binds again.`,
		RunE: func(c *cobra.Command, args []string) error {
			s, err := a.openStore(c.Context())
			if err != nil {
				return err
			}
			u, err := s.User(c.Context(), account.UserID(args[0]))
			if err != nil {
				return err
			}
			if err := a.confirm(yes, "Unbind %s from %s?", u.Email, u.Issuer); err != nil {
				return err
			}
			if u, err = admin.New(s, nil, a.Now).UnbindIdentity(c.Context(), self(), u.ID); err != nil {
				return err
			}
			return printOne(a, viewOfUser(u), userColumns()...)
		},
	}
	addYesFlag(c, &yes)
	return c
}

func (a *app) usersDelete() *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use: "delete EMAIL", Short: "Delete a user, and end all sessions", Args: exactArgs("EMAIL"),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := a.openStore(c.Context())
			if err != nil {
				return err
			}
			u, err := s.User(c.Context(), account.UserID(args[0]))
			if err != nil {
				return err
			}
			if err := a.confirm(yes, "Delete the user %s (%s)?", u.Email, u.Role); err != nil {
				return err
			}
			if err := admin.New(s, nil, a.Now).DeleteUser(c.Context(), self(), u.ID); err != nil {
				return err
			}
			return printOne(a, viewOfUser(u), userColumns()...)
		},
	}
	addYesFlag(c, &yes)
	return c
}
