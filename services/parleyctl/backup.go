package parleyctl

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/store/encrypted"
)

// backupView is the result of a backup.
type backupView struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

func (a *app) backup() *cobra.Command {
	var to string
	c := &cobra.Command{
		Use: "backup", Short: "Copy the SQLite database to a file, also while it is in use",
		Long: `Copy the SQLite database to a new file, also while it is in use, and check the copy.

The copy is a consistent snapshot. The file appears when it is complete and checked; an existing file is not overwritten. Only its owner can
read it. Its secrets are encrypted: back up SECRETS_KEY_FILE too, in another place. To restore, stop Parley, remove the files that end with -wal and -shm, and replace the database
by the copy. Use mongodump to back up a MongoDB.`,
		Example: `  parleyctl backup --to /backup/parley-$(date +%F).db`, Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return a.backupTo(c.Context(), to) },
	}
	require(c, "to")
	c.Flags().StringVar(&to, "to", "", "the new file")
	return c
}

func (a *app) backupTo(ctx context.Context, path string) error {
	s, err := a.settings()
	if err != nil {
		return err
	}
	if s.MongoDBURI != "" {
		return usage("MONGODB_URI is set: a MongoDB is backed up with mongodump; backup is for SQLITE_PATH")
	}
	if err := exists(s.SQLitePath); err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return usage(path + " exists; backup writes a new file")
	}
	opened, err := a.openStore(ctx)
	if err != nil {
		return err
	}
	backed, ok := encrypted.Engine(opened).(interface {
		Backup(ctx context.Context, path string) error
	})
	if !ok {
		return fmt.Errorf("the store has no backup: %T", opened)
	}
	if err := backed.Backup(ctx, path); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	v := backupView{path, info.Size()}
	return printOne(a, v, row{"path", v.Path}, row{"bytes", fmt.Sprint(v.Bytes)})
}

// exists rejects a missing database file, which opening would create.
func exists(path string) error {
	if path == "" {
		return usage("SQLITE_PATH is not set")
	}
	if _, err := os.Stat(path); err != nil {
		return usage(fmt.Sprintf("there is no database: %v", err))
	}
	return nil
}
