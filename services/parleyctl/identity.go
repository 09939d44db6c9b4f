package parleyctl

import (
	"cmp"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/store"
)

func (a *app) identity() *cobra.Command {
	return under("identity", "Say how an application's visitors prove who they are", nil, a.identitySet(), a.identityRotate())
}

func (a *app) identitySet() *cobra.Command {
	return &cobra.Command{
		Use: "set APPLICATION off|optional|required", Short: "Switch identity verification off, on for those who show a userHash, or on for all",
		Long: `Switch identity verification: with "optional" who shows a userHash must show the right one, with "required" everybody must.
It needs a secret: see "identity rotate". It holds within a second.`,
		Args: takes("APPLICATION", "MODE"), ValidArgsFunction: a.completeModes,
		RunE: func(c *cobra.Command, args []string) error {
			mode := chat.Verification(args[1])
			if !mode.Known() {
				return usage("the mode must be off, optional or required")
			}
			err := a.changeApplication(c.Context(), args[0], func(s store.Store, app *chat.Application) error {
				return s.SetVerification(c.Context(), app.ID, mode)
			})
			if err != nil {
				return err
			}
			return a.showApplication(c.Context(), args[0])
		},
	}
}

func (a *app) completeModes(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return a.completeApplications(c, args, typed)
	}
	return []string{string(chat.VerificationOff), string(chat.VerificationOptional), string(chat.VerificationRequired)}, cobra.ShellCompDirectiveNoFileComp
}

type newSecretView struct {
	AppID  string `json:"appId"`
	Secret string `json:"secret"`
	Others string `json:"othersUntil,omitempty"`
}

func (a *app) identityRotate() *cobra.Command {
	var overlap time.Duration
	c := &cobra.Command{
		Use: "rotate APPLICATION", Short: "Make a new identity secret, and show it once", Args: takes("APPLICATION"),
		Long: `Make a new identity secret for the company's own server, which signs its users' ids with it (HMAC-SHA256, see the integrator's
guide). It is shown once. The secrets before it hold on for the overlap, so that the server can be changed without a gap.`,
		Example:           "  parleyctl applications identity rotate APPLICATION --overlap 24h",
		ValidArgsFunction: a.completeApplications,
		RunE: func(c *cobra.Command, args []string) error {
			if overlap < 0 {
				return usage("--overlap must not be negative")
			}
			fresh, view := credential.NewIdentitySecret(), newSecretView{}
			err := a.changeApplication(c.Context(), args[0], func(s store.Store, app *chat.Application) error {
				v, err := s.RotateIdentitySecret(c.Context(), app.ID, fresh, a.Now(), overlap)
				if err == nil && len(v.Secrets) > 1 {
					view.Others = stamp(v.Secrets[1].ExpiresAt).String()
				}
				view.AppID, view.Secret = app.ID, string(fresh)
				return err
			})
			if view.Secret == "" {
				return err
			}
			a.note("Keep the secret: it is not shown again.")
			return cmp.Or(printOne(a, view,
				column[newSecretView]{"application", func(v newSecretView) string { return v.AppID }},
				column[newSecretView]{"secret", func(v newSecretView) string { return v.Secret }},
				column[newSecretView]{"others until", func(v newSecretView) string { return v.Others }}), err)
		},
	}
	c.Flags().DurationVar(&overlap, "overlap", 24*time.Hour, "how long the secrets before it hold on")
	return c
}
