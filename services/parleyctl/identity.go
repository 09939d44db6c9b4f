package parleyctl

import (
	"cmp"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/chat"
)

func (a *app) identity() *cobra.Command {
	return commandGroup(
		"identity", "Set how an application's visitors prove their identity", nil, a.identitySet(),
		a.identityRotate(),
	)
}

func (a *app) identitySet() *cobra.Command {
	return &cobra.Command{
		Use: "set APPLICATION off|session|required", Short: "Set the identity verification of an application",
		Long: `Set the identity verification. With "off" a claim is enough: anyone who knows a visitor's e-mail address gets that visitor's history.
With "session" a registration with a known identity continues that chat only with the visitor's token or a proof (identityToken or
userHash); otherwise it creates a separate visitor. With "required" every registration needs a proof, and the application a secret:
see "identity rotate". It takes effect within a second.`,
		Args: exactArgs("APPLICATION", "MODE"), ValidArgsFunction: a.completeModes,
		RunE: func(c *cobra.Command, args []string) error {
			mode := chat.Verification(args[1])
			if !mode.Known() {
				return usage("the mode must be off, session or required")
			}
			err := a.changeApplication(c.Context(), args[0], func(operations *admin.Service, app *chat.Application) error {
				_, err := operations.SetVerification(c.Context(), self(), app.ID, mode)
				return err
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
	return []string{
		string(chat.VerificationOff),
		string(chat.VerificationSession),
		string(chat.VerificationRequired),
	}, cobra.ShellCompDirectiveNoFileComp
}

type newSecretView struct {
	AppID  string `json:"appId"`
	Secret string `json:"secret"`
	Others string `json:"othersUntil,omitempty"`
}

func (a *app) identityRotate() *cobra.Command {
	var overlap time.Duration
	c := &cobra.Command{
		Use: "rotate APPLICATION", Short: "Create a new identity secret, and show it once", Args: exactArgs("APPLICATION"),
		Long: `Create a new identity secret for the company's own server, which signs proofs of its users' identities with it (see the integrator's
guide). It is shown once. The earlier secrets stay valid for the overlap, so that the server can be changed without an interruption.`,
		Example:           "  parleyctl applications identity rotate APPLICATION --overlap 24h",
		ValidArgsFunction: a.completeApplications,
		RunE: func(c *cobra.Command, args []string) error {
			if overlap < 0 {
				return usage("--overlap must not be negative")
			}
			view := newSecretView{}
			err := a.changeApplication(c.Context(), args[0], func(operations *admin.Service, app *chat.Application) error {
				fresh, changed, err := operations.RotateIdentitySecret(c.Context(), self(), app.ID, overlap)
				if secrets := changed.Identity.Secrets; err == nil && len(secrets) > 1 {
					view.Others = timestamp(secrets[1].ExpiresAt).String()
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
	c.Flags().DurationVar(&overlap, "overlap", 24*time.Hour, "how long the earlier secrets stay valid")
	return c
}
