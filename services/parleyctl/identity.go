package parleyctl

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/chat"
)

func (a *app) identity() *cobra.Command {
	return commandGroup(
		"identity", "Set how an application's visitors prove their identity", nil, a.identitySet(),
		a.identityRotate(),
	)
}

func (a *app) identitySet() *cobra.Command {
	c := &cobra.Command{
		Use: "set APPLICATION off|session|required", Short: "Set the identity verification of an application",
		Long: `Set the identity verification. With "off" a claim is enough: anyone who knows a visitor's e-mail address gets that visitor's history.
With "session" a registration with a known identity continues that chat only with the visitor's token or a proof (identityToken or
userHash); otherwise it creates a separate visitor. With "required" every registration needs a proof, and the application a secret:
see "identity rotate". It takes effect within a second.`,
		Args: exactArgs("APPLICATION", "MODE"), ValidArgsFunction: a.completeModes,
	}
	mode := func() chat.Verification { return chat.Verification(c.Flags().Arg(1)) }
	checkFirst(c, func() error {
		if !mode().Known() {
			return usage("the mode must be off, session or required")
		}
		return nil
	})
	return a.application().change(c, func(
		ctx context.Context, o operations, app chat.Application,
	) (chat.Application, error) {
		return o.SetVerification(ctx, self(), app.ID, mode())
	})
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
		Use: "rotate APPLICATION", Short: "Create a new identity secret, and show it once",
		Long: `Create a new identity secret for the company's own server, which signs proofs of its users' identities with it (see the integrator's
guide). It is shown once. The earlier secrets stay valid for the overlap, so that the server can be changed without an interruption.`,
		Example: "  parleyctl applications identity rotate APPLICATION --overlap 24h",
	}
	c.Flags().DurationVar(&overlap, "overlap", 24*time.Hour, "how long the earlier secrets stay valid")
	checkFirst(c, func() error { return notNegative("--overlap", overlap) })
	return a.application().on(c, a.cached, func(ctx context.Context, o operations, app chat.Application) error {
		fresh, changed, err := o.RotateIdentitySecret(ctx, self(), app.ID, overlap)
		if fresh == "" {
			return err
		}
		v := newSecretView{AppID: app.ID, Secret: string(fresh)}
		if secrets := changed.Identity.Secrets; err == nil && len(secrets) > 1 {
			v.Others = timestamp(secrets[1].ExpiresAt).String()
		}
		a.note("Keep the secret: it is not shown again.")
		// the secret is stored even if the notice or the audit log failed
		printed := printOne(
			a, v,
			row{"application", v.AppID},
			row{"secret", v.Secret},
			row{"others until", v.Others},
		)
		return cmp.Or(printed, err)
	})
}
