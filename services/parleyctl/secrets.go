package parleyctl

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/admin/view"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/secret"
)

// secretKeys is the file of the keys that encrypt secrets in the database.
func (a *app) secretKeys() keyFile[*secret.KeyFile] {
	return keyFile[*secret.KeyFile]{
		app:      a,
		group:    "secrets",
		setting:  secret.Setting,
		flag:     &a.flags.secretsFile,
		demo:     func(s settings) string { return s.secretsFile },
		generate: func() ([]byte, error) { return secret.Generate(a.Now()) },
		open:     secret.Open,
		keys: func(file *secret.KeyFile) []keyView {
			return view.ListOf(file.Keys(), func(k secret.KeyInfo) keyView {
				return keyView{k.ID.String(), string(k.State), timestamp(k.CreatedAt), timestamp(k.SupersededAt)}
			})
		},
	}
}

func (a *app) secrets() *cobra.Command {
	k := a.secretKeys()
	c := commandGroup("secrets", "Create and rotate the keys that encrypt secrets in the database", []string{"secret"},
		k.create(&cobra.Command{
			Use: "generate", Short: "Create a key file",
			Long: "Create a key file with one key. An existing file is not changed: without its keys the secrets " +
				"in the database are lost.",
			Example: "  parleyctl secrets generate --file secrets-key.json",
		}),
		k.list(&cobra.Command{Use: "list", Short: "List the keys"}),
		a.secretsRotate(k), a.secretsReencrypt(k), a.secretsRetire(k))
	c.Long = fmt.Sprintf(
		`Create and rotate the keys that encrypt secrets in the database: of webhooks, of proofs of identity and of second factors. The services
reload the file when it changes. Four steps replace a key while they run:

  parleyctl secrets rotate       adds a new key, which only decrypts
  parleyctl secrets rotate       %[1]s later, when every service has it: encrypts with it
  parleyctl secrets reencrypt    encrypts with it what the old key has encrypted
  parleyctl secrets retire       %[1]s after the second step: removes old keys that no secret uses

Without the file the secrets are lost. Keep a copy of it, also of old keys as long as a backup of the database may need them, and keep it apart
from those backups.`,
		secret.Propagation,
	)
	c.PersistentFlags().StringVar(&a.flags.secretsFile, "file", "", "the key file ("+secret.Setting+")")
	return c
}

func (a *app) secretsRotate(k keyFile[*secret.KeyFile]) *cobra.Command {
	c := &cobra.Command{
		Use: "rotate", Short: "Take the next step to a new key",
		Long: fmt.Sprintf(
			`Take the next step to a new key. Without a new key, create one, which only decrypts at first. With one that has been in the file for %s, so
that every service has it, encrypt with it. The old key still decrypts.`,
			secret.Propagation,
		),
	}
	return k.change(c, func(_ context.Context, file *secret.KeyFile) error {
		_, err := file.Add(a.Now())
		if err == nil {
			next := timestamp(a.Now().Add(secret.Propagation))
			a.note("The new key decrypts. Rotate again after %s to encrypt with it.", next)
			return nil
		}
		if !apperr.Is(err, apperr.Conflict) {
			return err
		}
		if err := file.Promote(a.Now()); err != nil { // there is a new key
			return err
		}
		a.note("The new key encrypts. Continue with secrets reencrypt.")
		return nil
	})
}

// reencryptedView is the result of secrets reencrypt.
type reencryptedView struct {
	Records int `json:"records"`
}

func (a *app) secretsReencrypt(k keyFile[*secret.KeyFile]) *cobra.Command {
	return &cobra.Command{
		Use: "reencrypt", Short: "Encrypt all secrets with the primary key", Args: exactArgs(),
		Long: `Encrypt with the primary key all secrets of the database that another key has encrypted. The services may run. If it is interrupted, run it
again: it continues with what is left.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if _, err := k.read(); err != nil {
				return err
			}
			s, err := a.openEncrypted(c.Context())
			if err != nil {
				return err
			}
			changed, err := s.Reencrypt(c.Context())
			if err != nil {
				return fmt.Errorf("after %d records: %w; running it again continues from here", changed, err)
			}
			return printOne(a, reencryptedView{changed}, row{"records", strconv.Itoa(changed)})
		},
	}
}

func (a *app) secretsRetire(k keyFile[*secret.KeyFile]) *cobra.Command {
	c := &cobra.Command{
		Use: "retire", Short: "Remove the old keys that no secret uses",
		Long: fmt.Sprintf(
			`Remove the old keys that no secret of the database uses and that were superseded at least %s ago. Keep a copy of the file with them as long as
you keep backups of the database from before secrets reencrypt.`,
			secret.Propagation,
		),
	}
	return k.change(c, func(ctx context.Context, file *secret.KeyFile) error {
		s, err := a.openEncrypted(ctx)
		if err != nil {
			return err
		}
		used, err := s.Usage(ctx)
		if err != nil {
			return err
		}
		retired, err := file.Retire(a.Now(), used)
		if err != nil {
			return err
		}
		a.note("Retired %d keys.", len(retired))
		for _, key := range file.Keys() {
			if n := used[key.ID]; key.State == secret.KeyOld && n > 0 {
				a.note("%d secrets still use the old key %s: see secrets reencrypt.", n, key.ID)
			}
		}
		return nil
	})
}
