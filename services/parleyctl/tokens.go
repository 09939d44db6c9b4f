package parleyctl

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

// shownHash is the length of a hash in a table, sufficient to identify a token.
const shownHash = 12

type tokenView struct {
	Hash       string    `json:"hash"`
	CompanyID  string    `json:"companyId"`
	Name       string    `json:"name"`
	Prefix     string    `json:"prefix"`
	Status     string    `json:"status"`
	CreatedAt  timestamp `json:"createdAt"`
	LastUsedAt timestamp `json:"lastUsedAt,omitzero"`
	ExpiresAt  timestamp `json:"expiresAt,omitzero"`
	RevokedAt  timestamp `json:"revokedAt,omitzero"`
	Secret     string    `json:"secret,omitempty"` // only at creation
}

func (a *app) viewOfToken(t chat.AccessToken) tokenView {
	v := tokenView{
		Hash: t.Hash, CompanyID: t.CompanyID, Name: t.Name, Prefix: t.Prefix, Status: "valid",
		CreatedAt:  timestamp(t.CreatedAt),
		LastUsedAt: timestamp(t.LastUsedAt),
		ExpiresAt:  timestamp(t.ExpiresAt),
		RevokedAt:  timestamp(t.RevokedAt),
	}
	switch {
	case !t.RevokedAt.IsZero():
		v.Status = "revoked"
	case !t.Valid(a.Now()):
		v.Status = "expired"
	}
	return v
}

func tokenColumns() []column[tokenView] {
	return []column[tokenView]{
		{"hash", func(v tokenView) string { return v.Hash[:min(shownHash, len(v.Hash))] }},
		{"prefix", func(v tokenView) string { return v.Prefix }},
		{"name", func(v tokenView) string { return v.Name }},
		{"status", func(v tokenView) string { return v.Status }},
		{"created", func(v tokenView) string { return v.CreatedAt.String() }},
		{"last used", func(v tokenView) string { return v.LastUsedAt.String() }},
		{"expires", func(v tokenView) string { return v.ExpiresAt.String() }},
		{"revoked", func(v tokenView) string { return v.RevokedAt.String() }},
	}
}

func (a *app) tokens() *cobra.Command {
	return commandGroup(
		"tokens", "Create, list and revoke a company's access tokens", []string{"token"}, a.tokensCreate(),
		a.tokensList(), a.tokensRevoke(),
	)
}

func (a *app) tokensCreate() *cobra.Command {
	var company, title, expires string
	c := &cobra.Command{
		Use: "create", Short: "Create an access token, and show its secret once", Args: exactArgs(),
		Example: "  parleyctl tokens create --company COMPANY --name CRM --expires 90d\n" +
			"  TOKEN=$(parleyctl tokens create --company COMPANY --name CRM -o json | jq -r .secret)",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := required(c, "company", "name"); err != nil {
				return err
			}
			end, err := a.parseEnd("--expires", expires)
			if err != nil {
				return err
			}
			owner, err := parseID("--company", company)
			if err != nil {
				return err
			}
			s, err := a.openStore(c.Context())
			if err != nil {
				return err
			}
			secret, token, err := admin.New(s, nil, a.Now).CreateToken(c.Context(), self(), owner, title, end)
			if err != nil {
				return err
			}
			view := a.viewOfToken(token)
			view.Secret = secret
			a.note("Keep the secret: it is not shown again.")
			return printOne(
				a,
				view,
				append(tokenColumns(), column[tokenView]{"secret", func(v tokenView) string { return v.Secret }})...)
		},
	}
	a.addCompanyFlag(c, &company, "the company that it is for")
	c.Flags().StringVar(&title, "name", "", "what it is for")
	c.Flags().
		StringVar(&expires, "expires", "", "its lifetime (90d, 12h) or end (2027-01-31, 2027-01-31T12:00:00Z); default: no end")
	return c
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
	var company string
	c := &cobra.Command{
		Use: "list", Short: "List a company's access tokens", Aliases: []string{"ls"}, Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := required(c, "company"); err != nil {
				return err
			}
			owner, err := a.company(c.Context(), company)
			if err != nil {
				return err
			}
			read := func(ctx context.Context, p store.Page) ([]chat.AccessToken, error) {
				return a.connections.store.AccessTokens(ctx, owner.ID, p)
			}
			found, _, err := readUpTo(c.Context(), store.Page{}, read, func(t chat.AccessToken) string { return t.Hash })
			if err != nil {
				return err
			}
			return printViews(a, found, a.viewOfToken, tokenColumns())
		},
	}
	a.addCompanyFlag(c, &company, "the company")
	return c
}

func (a *app) tokensRevoke() *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use: "revoke TOKEN", Short: "Revoke an access token", Args: exactArgs("TOKEN"),
		Long:    "Revoke an access token, named by its hash, eight or more characters of it, or its prefix. It takes effect everywhere within a second.",
		Example: "  parleyctl tokens revoke pat_Ab3dE6 --yes",
		RunE: func(c *cobra.Command, args []string) error {
			s, b, err := a.openBoth(c.Context())
			if err != nil {
				return err
			}
			token, err := oneToken(c.Context(), s, args[0])
			if err != nil {
				return err
			}
			if err := a.confirm(yes, "Revoke the token %s (%s) of company %s?", token.Prefix, token.Name, token.CompanyID); err != nil {
				return err
			}
			if token, err = admin.New(s, b, a.Now).RevokeToken(c.Context(), self(), token.Hash); err != nil {
				return err
			}
			return printOne(a, a.viewOfToken(token), tokenColumns()...)
		},
	}
	addYesFlag(c, &yes)
	return c
}

// oneToken returns the token that a reference identifies.
func oneToken(ctx context.Context, s store.Store, reference string) (chat.AccessToken, error) {
	found, err := s.FindAccessTokens(ctx, reference)
	switch {
	case err != nil:
		return chat.AccessToken{}, err
	case len(found) == 0:
		return chat.AccessToken{}, apperr.AccessTokenNotFound.WithMessage("No access token is named " + reference)
	case len(found) > 1:
		return chat.AccessToken{}, usage(fmt.Sprintf("%d tokens are named %s; give more of the hash", len(found), reference))
	}
	return found[0], nil
}
