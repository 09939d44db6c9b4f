package parleyctl

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/secret"
)

type secretKeyView struct {
	ID           string    `json:"kid"`
	State        string    `json:"state"`
	CreatedAt    timestamp `json:"createdAt,omitzero"`
	SupersededAt timestamp `json:"supersededAt,omitzero"`
}

func (a *app) printSecretKeys(file *secret.KeyFile) error {
	var views []secretKeyView
	for _, k := range file.Keys() {
		views = append(
			views,
			secretKeyView{k.ID.String(), string(k.State), timestamp(k.CreatedAt), timestamp(k.SupersededAt)},
		)
	}
	return printList(a, views,
		column[secretKeyView]{"kid", func(v secretKeyView) string { return v.ID }},
		column[secretKeyView]{"state", func(v secretKeyView) string { return v.State }},
		column[secretKeyView]{"created", func(v secretKeyView) string { return v.CreatedAt.String() }},
		column[secretKeyView]{"superseded", func(v secretKeyView) string { return v.SupersededAt.String() }})
}

func (a *app) secrets() *cobra.Command {
	c := commandGroup("secrets", "Create and rotate the keys that encrypt secrets in the database", []string{"secret"},
		a.secretsGenerate(), a.secretsList(), a.secretsRotate(), a.secretsReencrypt(), a.secretsRetire())
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

// secretsPath returns the path of the flag, of the environment, or of the demo.
func (a *app) secretsPath() (string, error) {
	if a.flags.secretsFile != "" {
		return a.flags.secretsFile, nil
	}
	if path := a.Getenv(secret.Setting); path != "" {
		return path, nil
	}
	s, err := a.settings()
	if err != nil || s.secretsFile == "" {
		return "", usage(secret.Setting + " is not set, nor --file, and this is not the folder of a demo (make run)")
	}
	return s.secretsFile, nil
}

func (a *app) openSecretKeys() (*secret.KeyFile, error) {
	path, err := a.secretsPath()
	if err != nil {
		return nil, err
	}
	file, err := secret.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, apperr.New(apperr.NotFound, "NO_KEY_FILE", "There is no key file "+path+"; see secrets generate")
	}
	return file, err
}

func (a *app) secretsGenerate() *cobra.Command {
	var ifMissing bool
	c := &cobra.Command{
		Use: "generate", Short: "Create a key file", Args: exactArgs(),
		Long:    "Create a key file with one key. An existing file is not changed: without its keys the secrets in the database are lost.",
		Example: "  parleyctl secrets generate --file secrets-key.json",
		RunE: func(*cobra.Command, []string) error {
			path, err := a.secretsPath()
			if err != nil {
				return err
			}
			keys, err := secret.Generate(a.Now())
			if err != nil {
				return err
			}
			if err := createFile(path, keys); err != nil && (!ifMissing || !apperr.Is(err, apperr.Conflict)) {
				return err
			}
			file, err := secret.Open(path)
			if err != nil {
				return err
			}
			return a.printSecretKeys(file)
		},
	}
	c.Flags().BoolVar(&ifMissing, "if-missing", false, "succeed if the file exists, and show its keys")
	return c
}

func (a *app) secretsList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the keys", Aliases: []string{"ls"}, Args: exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			file, err := a.openSecretKeys()
			if err != nil {
				return err
			}
			return a.printSecretKeys(file)
		},
	}
}

func (a *app) secretsRotate() *cobra.Command {
	return &cobra.Command{
		Use: "rotate", Short: "Take the next step to a new key", Args: exactArgs(),
		Long: fmt.Sprintf(
			`Take the next step to a new key. Without a new key, create one, which only decrypts at first. With one that has been in the file for %s, so
that every service has it, encrypt with it. The old key still decrypts.`,
			secret.Propagation,
		),
		RunE: func(*cobra.Command, []string) error {
			file, err := a.openSecretKeys()
			if err != nil {
				return err
			}
			_, err = file.Add(a.Now())
			switch {
			case err == nil:
				a.note(
					"The new key decrypts. Rotate again after %s to encrypt with it.",
					timestamp(a.Now().Add(secret.Propagation)),
				)
			case apperr.Is(err, apperr.Conflict): // there is a new key
				if err := file.Promote(a.Now()); err != nil {
					return err
				}
				a.note("The new key encrypts. Continue with secrets reencrypt.")
			default:
				return err
			}
			return a.printSecretKeys(file)
		},
	}
}

// reencryptedView is the result of secrets reencrypt.
type reencryptedView struct {
	Records int `json:"records"`
}

func (a *app) secretsReencrypt() *cobra.Command {
	return &cobra.Command{
		Use: "reencrypt", Short: "Encrypt all secrets with the primary key", Args: exactArgs(),
		Long: `Encrypt with the primary key all secrets of the database that another key has encrypted. The services may run. If it is interrupted, run it
again: it continues with what is left.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if _, err := a.openSecretKeys(); err != nil {
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
			return printOne(
				a,
				reencryptedView{changed},
				column[reencryptedView]{"records", func(v reencryptedView) string { return fmt.Sprint(v.Records) }},
			)
		},
	}
}

func (a *app) secretsRetire() *cobra.Command {
	return &cobra.Command{
		Use: "retire", Short: "Remove the old keys that no secret uses", Args: exactArgs(),
		Long: fmt.Sprintf(
			`Remove the old keys that no secret of the database uses and that were superseded at least %s ago. Keep a copy of the file with them as long as
you keep backups of the database from before secrets reencrypt.`,
			secret.Propagation,
		),
		RunE: func(c *cobra.Command, _ []string) error {
			file, err := a.openSecretKeys()
			if err != nil {
				return err
			}
			s, err := a.openEncrypted(c.Context())
			if err != nil {
				return err
			}
			used, err := s.Usage(c.Context())
			if err != nil {
				return err
			}
			retired, err := file.Retire(a.Now(), used)
			if err != nil {
				return err
			}
			a.note("Retired %d keys.", len(retired))
			for _, k := range file.Keys() {
				if n := used[k.ID]; k.State == secret.KeyOld && n > 0 {
					a.note("%d secrets still use the old key %s: see secrets reencrypt.", n, k.ID)
				}
			}
			return a.printSecretKeys(file)
		},
	}
}
