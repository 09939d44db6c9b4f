package parleyctl

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/credential"
)

// defaultTokenTTL is VISITOR_TOKEN_TTL's default.
const defaultTokenTTL = 720 * time.Hour

type keyView struct {
	ID           string    `json:"kid"`
	State        string    `json:"state"`
	CreatedAt    timestamp `json:"createdAt,omitzero"`
	SupersededAt timestamp `json:"supersededAt,omitzero"`
}

func keyColumns() []column[keyView] {
	return []column[keyView]{
		{"kid", func(v keyView) string { return v.ID }},
		{"state", func(v keyView) string { return v.State }},
		{"created", func(v keyView) string { return v.CreatedAt.String() }},
		{"superseded", func(v keyView) string { return v.SupersededAt.String() }},
	}
}

func (a *app) printKeys(keys ...credential.KeyInfo) error {
	var views []keyView
	for _, k := range keys {
		views = append(views, keyView{k.ID, string(k.State), timestamp(k.CreatedAt), timestamp(k.SupersededAt)})
	}
	return printList(a, views, keyColumns()...)
}

func (a *app) keys() *cobra.Command {
	var path string
	c := commandGroup("keys", "Create and rotate the keys that sign visitors' tokens", []string{"key"},
		a.keysGenerate(&path), a.keysList(&path), a.keysRotate(&path), a.keysRetire(&path), a.keysRemove(&path))
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

// keysPath returns the path of the flag, of the environment, or of the demo.
func (a *app) keysPath(flag string) (string, error) {
	if path := cmp.Or(flag, a.Getenv("VISITOR_KEYS_FILE")); path != "" {
		return path, nil
	}
	s, err := a.settings()
	if err != nil || s.keysFile == "" {
		return "", usage("VISITOR_KEYS_FILE is not set, nor --file, and this is not the folder of a demo (make run)")
	}
	return s.keysFile, nil
}

func (a *app) openKeys(flag string) (*credential.KeyFile, error) {
	path, err := a.keysPath(flag)
	if err != nil {
		return nil, err
	}
	file, err := credential.OpenKeyFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, apperr.New(apperr.NotFound, "NO_KEY_FILE", "There is no key file "+path+"; see keys generate")
	}
	return file, err
}

func (a *app) keysGenerate(flag *string) *cobra.Command {
	var ifMissing bool
	c := &cobra.Command{
		Use: "generate", Short: "Create a key file", Args: exactArgs(),
		Long:    "Create a key file with one key. An existing file is not changed: with new keys every visitor would have to register again.",
		Example: "  parleyctl keys generate --file visitor-keys.json",
		RunE: func(*cobra.Command, []string) error {
			path, err := a.keysPath(*flag)
			if err != nil {
				return err
			}
			set, err := credential.GenerateKeySet()
			if err != nil {
				return err
			}
			if err := createFile(path, set); err != nil && (!ifMissing || !apperr.Is(err, apperr.Conflict)) {
				return err
			}
			file, err := credential.OpenKeyFile(path)
			if err != nil {
				return err
			}
			return a.printKeys(file.Keys()...)
		},
	}
	c.Flags().BoolVar(&ifMissing, "if-missing", false, "succeed if the file exists, and show its keys")
	return c
}

// createFile creates a new file that only its owner can read.
func createFile(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return apperr.New(apperr.Conflict, "KEY_FILE_EXISTS", path+" exists already; rotate its keys instead")
	}
	if err != nil {
		return fmt.Errorf("creating the key file: %w", err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(fmt.Errorf("writing the key file: %w", err), os.Remove(path))
	}
	return nil
}

func (a *app) keysList(flag *string) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the keys, the one that signs first", Aliases: []string{"ls"}, Args: exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			file, err := a.openKeys(*flag)
			if err != nil {
				return err
			}
			return a.printKeys(file.Keys()...)
		},
	}
}

func (a *app) keysRotate(flag *string) *cobra.Command {
	var urgent bool
	c := &cobra.Command{
		Use: "rotate", Short: "Take the next step to a new signing key", Args: exactArgs(),
		Long: fmt.Sprintf(
			`Take the next step to a new signing key. Without a new key, create one, which only verifies at first. With one that
has been in the file for %s, so that every service has it, sign with it. The old key still verifies, so no visitor has to register
again. With --urgent, for example after a leak, do both at once: for a moment some services may refuse new tokens.`,
			credential.KeyPropagation,
		),
		RunE: func(*cobra.Command, []string) error {
			file, err := a.openKeys(*flag)
			if err != nil {
				return err
			}
			added, err := a.addKey(file)
			if err != nil {
				return err
			}
			if added == "" || urgent {
				if _, err := file.Promote(added, a.Now(), urgent); err != nil {
					return err
				}
			} else {
				a.note("The new key verifies tokens. Rotate again after %s to sign with it.", timestamp(a.Now().Add(credential.KeyPropagation)))
			}
			return a.printKeys(file.Keys()...)
		},
	}
	c.Flags().BoolVar(&urgent, "urgent", false, "let the new key sign at once")
	return c
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

func (a *app) keysRetire(flag *string) *cobra.Command {
	var ttl string
	c := &cobra.Command{
		Use: "retire", Short: "Remove the old keys whose last token has expired", Args: exactArgs(),
		Long: "Remove the old keys whose last token has expired. No visitor has to register again. See keys remove for a leaked key.",
		RunE: func(*cobra.Command, []string) error {
			holds, err := parseDuration(cmp.Or(ttl, a.Getenv("VISITOR_TOKEN_TTL"), defaultTokenTTL.String()))
			if err != nil || holds < 0 {
				return usage("--ttl must be a duration such as 720h or 30d")
			}
			file, err := a.openKeys(*flag)
			if err != nil {
				return err
			}
			retired, err := file.Retire(a.Now(), holds)
			if err != nil {
				return err
			}
			a.note("Retired %d keys.", len(retired))
			return a.printKeys(file.Keys()...)
		},
	}
	c.Flags().StringVar(&ttl, "ttl", "", "lifetime of tokens (VISITOR_TOKEN_TTL); default: 720h")
	return c
}

func (a *app) keysRemove(flag *string) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use:               "remove KID",
		Short:             "Remove a key even if its tokens are valid",
		Args:              exactArgs("KID"),
		ValidArgsFunction: a.completeKeys(flag),
		Long:              "Remove a key even if its tokens are valid, for example a leaked one: visitors with its tokens must register again.",
		RunE: func(_ *cobra.Command, args []string) error {
			file, err := a.openKeys(*flag)
			if err != nil {
				return err
			}
			if err := a.confirm(yes, "Remove the key %s? Visitors with its tokens must register again.", args[0]); err != nil {
				return err
			}
			if err := file.Remove(args[0]); err != nil {
				return err
			}
			return a.printKeys(file.Keys()...)
		},
	}
	addYesFlag(c, &yes)
	return c
}

func (a *app) completeKeys(flag *string) completer {
	return func(_ *cobra.Command, args []string, _ string) (kids []string, _ cobra.ShellCompDirective) {
		file, err := a.openKeys(*flag)
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
