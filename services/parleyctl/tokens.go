package parleyctl

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/admin/view"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

// shownHash is the length of a hash in a table, sufficient to identify a token.
const shownHash = 12

func (a *app) token() resource[chat.AccessToken, view.Token] {
	return resource[chat.AccessToken, view.Token]{
		app:      a,
		argument: "TOKEN",
		parse:    func(reference string) (string, error) { return reference, nil },
		find:     oneToken,
		open:     a.cached,
		view:     func(t chat.AccessToken) view.Token { return view.TokenOf(t, a.Now()) },
		id:       func(v view.Token) string { return v.ID },
		columns: []column[view.Token]{
			{"hash", func(v view.Token) string { return v.ID[:min(shownHash, len(v.ID))] }},
			{"prefix", func(v view.Token) string { return v.Prefix }},
			{"name", func(v view.Token) string { return v.Name }},
			{"status", func(v view.Token) string { return v.Status }},
			{"created", func(v view.Token) string { return v.CreatedAt.String() }},
			{"last used", func(v view.Token) string { return v.LastUsedAt.String() }},
			{"expires", func(v view.Token) string { return v.ExpiresAt.String() }},
			{"revoked", func(v view.Token) string { return v.RevokedAt.String() }},
		},
	}
}

func (a *app) tokens() *cobra.Command {
	return commandGroup(
		"tokens", "Create, list and revoke a company's access tokens", []string{"token"}, a.tokensCreate(),
		a.tokensList(), a.tokensRevoke(),
	)
}

// newToken is a token with its secret, which is shown once.
type newToken struct {
	view.Token
	Secret string `json:"secret"`
}

func (a *app) tokensCreate() *cobra.Command {
	var company, title, expires string
	var end time.Time
	c := &cobra.Command{
		Use: "create", Short: "Create an access token, and show its secret once", Args: exactArgs(),
		Example: "  parleyctl tokens create --company COMPANY --name CRM --expires 90d\n" +
			"  TOKEN=$(parleyctl tokens create --company COMPANY --name CRM -o json | jq -r .secret)",
	}
	require(c, "company", "name")
	a.addCompanyFlag(c, &company, "the company that it is for")
	c.Flags().StringVar(&title, "name", "", "what it is for")
	c.Flags().StringVar(&expires, "expires", "",
		"its lifetime (90d, 12h) or end (2027-01-31, 2027-01-31T12:00:00Z); default: no end")
	checkFirst(c, func() (err error) {
		end, err = a.parseEnd("--expires", expires)
		return err
	})
	return withOperations(c, a.stored, func(ctx context.Context, o operations) error {
		secret, made, err := o.CreateToken(ctx, self(), company, title, end)
		if err != nil {
			return err
		}
		a.note("Keep the secret: it is not shown again.")
		v := newToken{a.token().view(made), secret}
		return printOne(a, v, append(a.token().rowsOf(v.Token), row{"secret", secret})...)
	})
}

// parseEnd parses a time in the future; empty: none.
func (a *app) parseEnd(flag, s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := parseDuration(s); err == nil {
		return a.Now().Add(d), nil
	}
	t, err := parseTime(s)
	if err != nil {
		return time.Time{}, usage(flag + " must be a duration such as 90d or a time such as 2027-01-31T12:00:00Z")
	}
	return t, nil
}

// parseDuration is [time.ParseDuration] with days.
func parseDuration(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n < 100_000 {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	return time.ParseDuration(s)
}

func parseTime(s string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time", s)
}

func (a *app) tokensList() *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "List a company's access tokens"}
	return a.token().listOfCompany(c, store.Store.AccessTokens)
}

func (a *app) tokensRevoke() *cobra.Command {
	c := &cobra.Command{
		Use: "revoke TOKEN", Short: "Revoke an access token",
		Long: "Revoke an access token, named by its hash, eight or more characters of it, or its prefix. It takes " +
			"effect everywhere within a second.",
		Example: "  parleyctl tokens revoke pat_Ab3dE6 --yes",
	}
	question := func(t chat.AccessToken) string {
		return fmt.Sprintf("Revoke the token %s (%s) of company %s?", t.Prefix, t.Name, t.CompanyID)
	}
	return a.token().confirmed(c, question, a.token().byID((*admin.Service).RevokeToken))
}

// oneToken returns the token that a reference identifies.
func oneToken(s store.Store, ctx context.Context, reference string) (chat.AccessToken, error) {
	found, err := tokensNamed(ctx, s, reference)
	switch {
	case err != nil:
		return chat.AccessToken{}, err
	case len(found) == 0:
		return chat.AccessToken{}, apperr.AccessTokenNotFound.WithMessage("No access token is named " + reference)
	case len(found) > 1:
		text := fmt.Sprintf("%d tokens are named %s; give more of the hash", len(found), reference)
		return chat.AccessToken{}, usage(text)
	}
	return found[0], nil
}

// minReference is the length of the shortest beginning of a hash, or prefix, that names a token.
const minReference = 8

// tokensNamed lists the tokens with reference as display prefix or as the beginning of the hash. It reads the tokens of
// all companies: they are few, and an operator's command needs no index.
func tokensNamed(ctx context.Context, s store.Store, reference string) (found []chat.AccessToken, err error) {
	if len(reference) < minReference {
		return nil, nil
	}
	list := func(ctx context.Context, p store.Page) ([]store.Record, error) {
		return s.ReadRecords(ctx, "accessTokens", p.After, p.Limit)
	}
	for r, err := range store.All(ctx, list, func(r store.Record) string { return r.Key }) {
		if err != nil {
			return nil, err
		}
		t, isToken := r.Value.(chat.AccessToken)
		if isToken && (t.Prefix == reference || strings.HasPrefix(t.Hash, reference)) {
			found = append(found, t)
		}
	}
	return found, nil
}
