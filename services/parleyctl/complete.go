package parleyctl

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

const (
	// completionLimit bounds how long a shell waits for ids, completionSize their number.
	completionLimit = 2 * time.Second
	completionSize  = 200
)

// completer completes the first argument or a flag with existing ids.
type completer = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

func completeIDs[T any](
	a *app, list func(store.Store, context.Context, store.Page) ([]T, error), describe func(T) (id, what string),
) completer {
	return func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 && !strings.HasPrefix(typed, "-") && c.Flags().NFlag() == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(c.Context(), completionLimit)
		defer cancel()
		s, err := a.openStore(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found, err := list(s, ctx, store.Page{Limit: completionSize})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var ids []string
		for _, v := range found {
			if id, what := describe(v); strings.HasPrefix(id, typed) {
				ids = append(ids, id+"\t"+clean(what))
			}
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}

// addCompanyFlag adds --company, which is completed with the ids of the companies.
func (a *app) addCompanyFlag(c *cobra.Command, company *string, usage string) {
	addIDFlag(c, company, "company", usage)
	_ = c.RegisterFlagCompletionFunc("company", a.completeCompanies) // the flag exists
}

func (a *app) completeCompanies(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	describe := func(v chat.Company) (string, string) { return v.ID, v.Name }
	return completeIDs(a, store.Store.Companies, describe)(c, args, typed)
}

func (a *app) completeApplications(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	describe := func(v chat.Application) (string, string) { return v.ID, v.Name }
	return completeIDs(a, ofAll(store.Store.Applications), describe)(c, args, typed)
}

func (a *app) completeTemplates(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	describe := func(v chat.MessageTemplate) (string, string) { return v.ID, v.Name }
	return completeIDs(a, ofAll(store.Store.Templates), describe)(c, args, typed)
}

func (a *app) completeChats(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	read := func(s store.Store, ctx context.Context, p store.Page) ([]chat.Chat, error) {
		return s.Chats(ctx, store.ChatFilter{}, p)
	}
	describe := func(v chat.Chat) (string, string) {
		return v.ID, string(v.Status(a.Now())) + " since " + timestamp(v.CreatedAt).String()
	}
	return completeIDs(a, read, describe)(c, args, typed)
}

// ofAll reads the records of all companies.
func ofAll[R any](read companyReader[R]) func(store.Store, context.Context, store.Page) ([]R, error) {
	return func(s store.Store, ctx context.Context, p store.Page) ([]R, error) { return read(s, ctx, "", p) }
}
