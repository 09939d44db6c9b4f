package parleyctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/backend"
	"github.com/parley-chat/parley/pkg/store/transfer"
)

// migrationView is the result of one kind: the number of records that are the same in both stores.
type migrationView struct {
	Kind    string `json:"kind"`
	Records int64  `json:"records"`
}

func (a *app) migrate() *cobra.Command {
	var from, to string
	c := &cobra.Command{
		Use: "migrate", Short: "Copy all records from one store to another",
		Long: `Copy all records from one store to another: from SQLite to MongoDB, or back.

Stop the services first: records that they write during the copy would be missing. A store is a MongoDB URI, sqlite:PATH, or one of
mongodb and sqlite, which mean MONGODB_URI and SQLITE_PATH. MONGODB_DATABASE names the database. The target must be empty,
or have only records of the source. At the end both stores are read, and each record is compared.

An interrupted copy continues when the command runs again: it copies what the target lacks.`,
		Example: `  parleyctl migrate --from sqlite:/var/lib/parley/parley.db --to mongodb`, Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return a.migrateStores(c.Context(), from, to) },
	}
	require(c, "from", "to")
	c.Flags().StringVar(&from, "from", "", "the store to read")
	c.Flags().StringVar(&to, "to", "", "the store to fill")
	return c
}

func (a *app) migrateStores(ctx context.Context, from, to string) (err error) {
	source, err := a.namedStore("--from", from)
	if err != nil {
		return err
	}
	target, err := a.namedStore("--to", to)
	if err != nil {
		return err
	}
	if storeName(source) == storeName(target) {
		return usage("--from and --to name the same store")
	}
	if source.SQLitePath != "" {
		if err := exists(source.SQLitePath); err != nil {
			return err
		}
	}
	reading, err := openNamed(ctx, source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, backend.Close(reading)) }()
	writing, err := openNamed(ctx, target)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, backend.Close(writing)) }()
	summaries, err := transfer.Run(ctx, transfer.Config{
		From:   reading,
		To:     writing,
		Now:    a.Now,
		Copied: a.printProgress(),
	})
	if errors.Is(err, transfer.ErrForeign) {
		return usage(err.Error())
	}
	if err != nil {
		return fmt.Errorf("%w; running it again continues from here", err)
	}
	var views []migrationView
	for _, s := range summaries {
		views = append(views, migrationView{string(s.Kind), s.Count})
	}
	return printList(a, views,
		column[migrationView]{"kind", func(v migrationView) string { return v.Kind }},
		column[migrationView]{"records", func(v migrationView) string { return fmt.Sprint(v.Records) }})
}

// printProgress returns a function that prints the progress of the copy.
func (a *app) printProgress() func(store.Kind, int64) {
	const pause = 2 * time.Second
	last := a.Now()
	return func(kind store.Kind, copied int64) {
		if now := a.Now(); a.Interactive && now.Sub(last) >= pause {
			last = now
			a.note("%s: %d copied", kind, copied)
		}
	}
}

// namedStore returns the store in a flag.
func (a *app) namedStore(flag, value string) (config.Store, error) {
	s := config.Store{MongoDBDatabase: cmp.Or(a.flags.mongoDB, a.Getenv("MONGODB_DATABASE"))}
	if err := config.SetDefaults(&s); err != nil {
		return s, usage(err.Error())
	}
	switch path, isSQLite := strings.CutPrefix(value, "sqlite:"); {
	case value == "mongodb":
		s.MongoDBURI = cmp.Or(a.flags.mongoURI, a.Getenv("MONGODB_URI"))
	case value == "sqlite":
		s.SQLitePath = cmp.Or(a.flags.sqlite, a.Getenv("SQLITE_PATH"))
	case isSQLite:
		s.SQLitePath = path
	case strings.HasPrefix(value, "mongodb:"), strings.HasPrefix(value, "mongodb+srv:"):
		if hasPassword(value) {
			return s, passwordInFlag(flag, "MONGODB_URI")
		}
		s.MongoDBURI = value
	default:
		return s, usage(flag + " must be a MongoDB URI, sqlite:PATH, mongodb or sqlite")
	}
	if s.SQLitePath != "" {
		absolute, err := filepath.Abs(s.SQLitePath)
		if err != nil {
			return s, err
		}
		s.SQLitePath = absolute
	}
	for _, problem := range s.Validate() {
		return s, usage(flag + ": " + problem)
	}
	return s, nil
}

// storeName returns a store's name without its password, to detect identical stores.
func storeName(s config.Store) string {
	if s.SQLitePath != "" {
		return "sqlite:" + s.SQLitePath
	}
	return redacted(s.MongoDBURI) + " " + s.MongoDBDatabase
}

// openNamed returns a working connection.
func openNamed(ctx context.Context, s config.Store) (store.Store, error) {
	opened, err := backend.Open(backend.Config{Store: s, AppName: name, Logger: slog.New(slog.DiscardHandler)})
	if err != nil && s.MongoDBURI != "" {
		return nil, usage("the MongoDB URI is invalid") // the cause could contain a password
	}
	if err != nil {
		return nil, usage(err.Error())
	}
	ctx, cancel := context.WithTimeout(ctx, reachLimit)
	defer cancel()
	if err := opened.Ready(ctx); err != nil {
		err = unreachable("the store", cmp.Or(s.MongoDBURI, s.SQLitePath), err)
		return nil, errors.Join(err, backend.Close(opened))
	}
	return opened, nil
}
