package parleyctl

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/admin/view"
	"github.com/parley-chat/parley/pkg/credential"
)

// defaultTokenTTL is VISITOR_TOKEN_TTL's default.
const defaultTokenTTL = 720 * time.Hour

// visitorKeys is the file of the keys that sign visitors' tokens.
func (a *app) visitorKeys(flag *string) keyFile[*credential.KeyFile] {
	return keyFile[*credential.KeyFile]{
		app:      a,
		group:    "keys",
		setting:  "VISITOR_KEYS_FILE",
		flag:     flag,
		demo:     func(s settings) string { return s.keysFile },
		generate: credential.GenerateKeySet,
		open:     credential.OpenKeyFile,
		keys: func(file *credential.KeyFile) []keyView {
			return view.ListOf(file.Keys(), func(k credential.KeyInfo) keyView {
				return keyView{k.ID, string(k.State), timestamp(k.CreatedAt), timestamp(k.SupersededAt)}
			})
		},
	}
}

func (a *app) keys() *cobra.Command {
	var path string
	k := a.visitorKeys(&path)
	c := commandGroup("keys", "Create and rotate the keys that sign visitors' tokens", []string{"key"},
		k.create(&cobra.Command{
			Use: "generate", Short: "Create a key file",
			Long: "Create a key file with one key. An existing file is not changed: with new keys every visitor " +
				"would have to register again.",
			Example: "  parleyctl keys generate --file visitor-keys.json",
		}),
		k.list(&cobra.Command{Use: "list", Short: "List the keys, the one that signs first"}),
		a.keysRotate(k), a.keysRetire(k), a.keysRemove(k))
	c.Long = fmt.Sprintf(
		`Create and rotate the keys that sign visitors' tokens: a JWK Set file whose first key signs while all verify. The Widget API reloads it
when it changes. Three steps replace a key without ending sessions:

  parleyctl keys rotate    adds a new key, which only verifies
  parleyctl keys rotate    %s later, when every service has it: signs with it
  parleyctl keys retire    when the last token of the old key has expired: removes that key`,
		credential.KeyPropagation,
	)
	c.PersistentFlags().StringVar(&path, "file", "", "the key file (VISITOR_KEYS_FILE)")
	return c
}

func (a *app) keysRotate(k keyFile[*credential.KeyFile]) *cobra.Command {
	var urgent bool
	c := &cobra.Command{
		Use: "rotate", Short: "Take the next step to a new signing key",
		Long: fmt.Sprintf(
			`Take the next step to a new signing key. Without a new key, create one, which only verifies at first. With one that
has been in the file for %s, so that every service has it, sign with it. The old key still verifies, so no visitor has to register
again. With --urgent, for example after a leak, do both at once: for a moment some services may refuse new tokens.`,
			credential.KeyPropagation,
		),
	}
	c.Flags().BoolVar(&urgent, "urgent", false, "let the new key sign at once")
	return k.change(c, func(_ context.Context, file *credential.KeyFile) error {
		added, err := a.addKey(file)
		if err != nil {
			return err
		}
		if added != "" && !urgent {
			next := timestamp(a.Now().Add(credential.KeyPropagation))
			a.note("The new key verifies tokens. Rotate again after %s to sign with it.", next)
			return nil
		}
		_, err = file.Promote(added, a.Now(), urgent)
		return err
	})
}

// addKey adds a new key unless a new one exists; its id is then empty.
func (a *app) addKey(file *credential.KeyFile) (id string, err error) {
	for _, k := range file.Keys() {
		if k.State == credential.KeyNew {
			return "", nil
		}
	}
	added, err := file.Add(a.Now())
	return added.ID, err
}

func (a *app) keysRetire(k keyFile[*credential.KeyFile]) *cobra.Command {
	var ttl string
	c := &cobra.Command{
		Use: "retire", Short: "Remove the old keys whose last token has expired",
		Long: "Remove the old keys whose last token has expired. No visitor has to register again. See keys remove " +
			"for a leaked key.",
	}
	c.Flags().StringVar(&ttl, "ttl", "", "lifetime of tokens (VISITOR_TOKEN_TTL); default: 720h")
	var lifetime time.Duration
	checkFirst(c, func() (err error) {
		lifetime, err = parseDuration(cmp.Or(ttl, a.Getenv("VISITOR_TOKEN_TTL"), defaultTokenTTL.String()))
		if err != nil || lifetime < 0 {
			return usage("--ttl must be a duration such as 720h or 30d")
		}
		return nil
	})
	return k.change(c, func(_ context.Context, file *credential.KeyFile) error {
		retired, err := file.Retire(a.Now(), lifetime)
		if err != nil {
			return err
		}
		a.note("Retired %d keys.", len(retired))
		return nil
	})
}

func (a *app) keysRemove(k keyFile[*credential.KeyFile]) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use:               "remove KID",
		Short:             "Remove a key even if its tokens are valid",
		Args:              exactArgs("KID"),
		ValidArgsFunction: a.completeKeys(k),
		Long: "Remove a key even if its tokens are valid, for example a leaked one: visitors with its " +
			"tokens must register again.",
	}
	addYesFlag(c, &yes)
	return k.change(c, func(_ context.Context, file *credential.KeyFile) error {
		kid := c.Flags().Arg(0)
		if err := a.confirm(yes, "Remove the key %s? Visitors with its tokens must register again.", kid); err != nil {
			return err
		}
		return file.Remove(kid)
	})
}

func (a *app) completeKeys(k keyFile[*credential.KeyFile]) completer {
	return func(_ *cobra.Command, args []string, _ string) (kids []string, _ cobra.ShellCompDirective) {
		file, err := k.read()
		if len(args) > 0 || err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		for _, k := range file.Keys() {
			if k.State != credential.KeySigning {
				kids = append(kids, k.ID+"\t"+string(k.State))
			}
		}
		return kids, cobra.ShellCompDirectiveNoFileComp
	}
}
