package parleyctl

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/admin/view"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

func (a *app) user() resource[account.User, view.User] {
	return resource[account.User, view.User]{
		app:      a,
		argument: "EMAIL",
		parse:    func(email string) (string, error) { return email, nil },
		find:     findUser,
		open:     a.stored,
		view:     view.UserOf,
		id:       func(v view.User) string { return v.ID },
		columns: []column[view.User]{
			{"id", func(v view.User) string { return v.ID }},
			{"email", func(v view.User) string { return v.Email }},
			{"name", func(v view.User) string { return v.Name }},
			{"role", func(v view.User) string { return string(v.Role) }},
			{"company", func(v view.User) string { return v.CompanyID }},
			{"status", func(v view.User) string { return v.Status }},
			{"created", func(v view.User) string { return v.CreatedAt.String() }},
			{"last sign-in", func(v view.User) string { return v.LastSignInAt.String() }},
		},
	}
}

// findUser finds a user by the e-mail address, or by the id if users of several companies have the address.
func findUser(s store.Store, ctx context.Context, reference string) (account.User, error) {
	if id, ok := chat.ParseID(reference); ok {
		return s.User(ctx, id)
	}
	found, err := store.UsersByEmail(ctx, s, reference)
	switch {
	case err != nil:
		return account.User{}, err
	case len(found) == 0:
		return account.User{}, apperr.UserNotFound.New()
	case len(found) > 1:
		ids := view.ListOf(found, func(u account.User) string { return u.ID })
		return account.User{}, usage(reference + " has several users; name one by its id: " + strings.Join(ids, ", "))
	}
	return found[0], nil
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
	var p password
	c := &cobra.Command{
		Use: "create", Short: "Create a user of the panel, and show the password once", Args: exactArgs(),
		Long: `Create a user of the panel. The password is random and shown once; with --password-stdin it is read from standard input. An operator belongs
to no company and may do everything; owner, developer and agent belong to one.`,
		Example: "  parleyctl users create --email you@example.com --role operator\n" +
			"  parleyctl users create --email ada@example.com --role owner --company COMPANY " +
			"--password-stdin < password",
	}
	require(c, "email", "role")
	c.Flags().StringVar(&email, "email", "", "the e-mail address to sign in with")
	c.Flags().StringVar(&title, "name", "", "the name that others see")
	addChoiceFlag(c, &role, "role", "", "operator, owner, developer or agent",
		account.Operator, account.Owner, account.Developer, account.Agent)
	a.addCompanyFlag(c, &company, "the company; none for an operator")
	p.add(a, c)
	return withOperations(c, a.stored, func(ctx context.Context, o operations) error {
		u := account.NewUser(email, title, account.Role(role), company, a.Now())
		u, err := o.CreateUser(ctx, self(), u, p.text)
		if err != nil {
			return err
		}
		u, err = o.store.User(ctx, u.ID)
		if err != nil {
			return err
		}
		return a.printWithPassword(u, p)
	})
}

// password is a user's new password: the one on standard input, or a random one, which is shown once.
type password struct {
	text      string
	fromInput bool
}

func (p *password) add(a *app, c *cobra.Command) {
	c.Flags().BoolVar(&p.fromInput, "password-stdin", false, "read the password from standard input")
	checkFirst(c, func() error {
		if !p.fromInput {
			p.text = account.NewPassword()
			return nil
		}
		data, err := io.ReadAll(a.In)
		if err != nil {
			return usage("--password-stdin: " + err.Error())
		}
		p.text = strings.TrimRight(string(data), "\r\n")
		return nil
	})
}

// userWithPassword is a user with a random password.
type userWithPassword struct {
	view.User
	Password string `json:"password"`
}

func (a *app) printWithPassword(u account.User, p password) error {
	if p.fromInput {
		return a.user().print(u)
	}
	a.note("Keep the password: it is not shown again.")
	v := userWithPassword{view.UserOf(u), p.text}
	return printOne(a, v, append(a.user().rowsOf(v.User), row{"password", p.text})...)
}

func (a *app) usersList() *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "List the panel's users"}
	return a.user().listAny(c, noLimit, store.Store.Users)
}

func (a *app) usersPassword() *cobra.Command {
	var p password
	var removeTOTP bool
	c := &cobra.Command{
		Use: "password EMAIL", Short: "Change a user's password, and end all sessions",
		Example: "  parleyctl users password ada@example.com --remove-totp",
	}
	p.add(a, c)
	c.Flags().BoolVar(&removeTOTP, "remove-totp", false, "also remove the second factor, for a user who has lost it")
	return a.user().on(c, a.stored, func(ctx context.Context, o operations, u account.User) error {
		if removeTOTP {
			if _, err := o.UpdateUser(ctx, self(), "user.totp", u.ID, func(u *account.User) error {
				u.RemoveTOTP()
				return nil
			}); err != nil {
				return err
			}
		}
		u, err := o.SetPassword(ctx, self(), u.ID, "password", p.text)
		if err != nil {
			return err
		}
		return a.printWithPassword(u, p)
	})
}

func (a *app) usersUnbind() *cobra.Command {
	c := &cobra.Command{
		Use:   "unbind EMAIL",
		Short: "Forget a user's identity at the OpenID Connect issuer, and end all sessions",
		Long: `Forget a user's identity at the OpenID Connect issuer, and end all sessions. The first sign-in with the issuer binds a user to the issuer's
subject; another subject with the same address is refused. Unbind after the account at the issuer was created anew, or when the issuer changes:
the next sign-in with that address binds again.`,
	}
	question := func(u account.User) string { return fmt.Sprintf("Unbind %s from %s?", u.Email, u.Issuer) }
	return a.user().confirmed(c, question, a.user().byID((*admin.Service).UnbindIdentity))
}

func (a *app) usersDelete() *cobra.Command {
	c := &cobra.Command{Use: "delete EMAIL", Short: "Delete a user, and end all sessions"}
	question := func(u account.User) string { return fmt.Sprintf("Delete the user %s (%s)?", u.Email, u.Role) }
	remove := func(ctx context.Context, o operations, u account.User) (account.User, error) {
		return u, o.DeleteUser(ctx, self(), u.ID)
	}
	return a.user().confirmed(c, question, remove)
}
