package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/parley-chat/parley/pkg/store"
)

// Config configures the file.
type Config struct {
	Path      string // of the database file; its directory must exist
	Logger    *slog.Logger
	IdleClose time.Duration    // inactivity of the visitor after which the chat counts as closed; 0: never
	Now       func() time.Time // for expiry; nil: time.Now
}

// Store implements [store.Store].
type Store struct {
	path      string
	writer    *writer
	readers   *pool
	sweeper   *sweeper
	log       *slog.Logger
	now       func() time.Time
	idleClose time.Duration
}

var _ store.Store = (*Store)(nil)

// Open opens or creates the file and applies the migrations. It rejects a file written by another program or a newer
// Parley.
func Open(_ context.Context, c Config) (*Store, error) {
	if c.Path == "" || c.Logger == nil {
		return nil, errors.New("sqlite: Path and Logger are required")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	w, err := prepare(c.Path)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", c.Path, err)
	}
	s := &Store{
		path:      c.Path,
		writer:    newWriter(w, func() (*conn, error) { return connect(c.Path, writerSettings) }, c.Logger),
		readers:   newPool(max(4, 2*runtime.GOMAXPROCS(0)), func() (*conn, error) { return connect(c.Path, readerSettings) }),
		log:       c.Logger,
		now:       c.Now,
		idleClose: c.IdleClose,
	}
	s.sweeper = startSweeper(s)
	return s, nil
}

// writerSettings make commits durable: synchronous=FULL in WAL mode is one fsync of the WAL per commit.
const writerSettings = `
PRAGMA synchronous = FULL;
PRAGMA cache_size = -8000;
PRAGMA wal_autocheckpoint = 4000;
PRAGMA journal_size_limit = 67108864;
PRAGMA temp_store = MEMORY;`

const readerSettings = `
PRAGMA query_only = TRUE;
PRAGMA cache_size = -8000;
PRAGMA temp_store = MEMORY;`

// prepare creates the file if it does not exist, readable only by its owner, migrates it to the newest version and
// returns the writer's connection.
func prepare(path string) (*conn, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	c, err := connect(path, "")
	if err != nil {
		return nil, err
	}
	if err := initialise(c); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func initialise(c *conn) error {
	scripts, err := migrations()
	if err != nil {
		return err
	}
	c.SetBusyTimeout(operationTimeout)
	if err := inspect(c, len(scripts)); err != nil {
		return err
	}
	if err := enterWAL(c); err != nil {
		return err
	}
	if err := migrate(c, scripts); err != nil {
		return err
	}
	return c.configure(writerSettings)
}

// inspect rejects a file of another program before any change. It reads in one transaction, because another process
// may be creating the tables.
func inspect(c *conn, newest int) error {
	if _, err := c.exec("BEGIN"); err != nil {
		return err
	}
	_, err := fileVersion(c, newest)
	_, end := c.exec("ROLLBACK")
	return orElse(err, end)
}

// enterWAL sets the file's journal mode. It retries, because SQLite returns busy at once if another process
// does the same.
func enterWAL(c *conn) error {
	var mode string
	for deadline := time.Now().Add(operationTimeout); ; time.Sleep(10 * time.Millisecond) {
		_, err := c.first("PRAGMA journal_mode = WAL", func(r *row) { mode = r.text() })
		switch {
		case err == nil && mode == "wal":
			return nil
		case err == nil:
			return fmt.Errorf("the file system does not allow SQLite's WAL mode (it is %q)", mode)
		case !isBusy(err) || time.Now().After(deadline):
			return err
		}
	}
}

// connect opens one connection to an existing file.
func connect(path, settings string) (*conn, error) {
	inner, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: inner}
	if err := c.configure(settings); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Ready returns nil if the file can be read, else an Unavailable error.
func (s *Store) Ready(ctx context.Context) error {
	_, err := read(
		ctx, s, "reading the file's version",
		func(c *conn) (int, error) { return pragma(c, "PRAGMA user_version") },
	)
	return err
}

// Close closes all connections. Operations in progress have until ctx ends to finish.
func (s *Store) Close(ctx context.Context) error {
	s.sweeper.stop()
	if err := errors.Join(s.writer.close(ctx), s.readers.close(ctx)); err != nil {
		return fmt.Errorf("closing SQLite: %w", err)
	}
	return nil
}
