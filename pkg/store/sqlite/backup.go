package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"zombiezen.com/go/sqlite"
)

// backupStep is the number of pages copied between checks for cancellation.
const backupStep = 1000

// ErrDamaged is returned by [Store.Check] and [Store.Backup] if SQLite finds the file corrupt.
var ErrDamaged = errors.New("the database is damaged")

// Check reads the whole file and returns [ErrDamaged], with SQLite's message, if a table or an index is corrupt (PRAGMA
// integrity_check). Reads and writes continue meanwhile.
func (s *Store) Check(ctx context.Context) error {
	return s.maintain(ctx, "checking the database", check)
}

func check(c *conn) error {
	var faults []string
	err := c.query("PRAGMA integrity_check", func(r *row) bool {
		if text := r.text(); text != "ok" {
			faults = append(faults, text)
		}
		return true
	})
	if err == nil && len(faults) > 0 {
		err = fmt.Errorf("%w: %s", ErrDamaged, strings.Join(faults, "; "))
	}
	return err
}

// Backup writes a copy of the current database to a new file, and checks the copy. Reads and writes continue meanwhile.
// The file at path appears when it is complete; an existing one is not overwritten.
func (s *Store) Backup(ctx context.Context, path string) (err error) {
	unfinished := path + ".unfinished"
	if err := reserve(path, unfinished); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, removeIfThere(unfinished))
		}
	}()
	if err := s.maintain(ctx, "copying the database", func(c *conn) error { return copyTo(ctx, c, unfinished) }); err != nil {
		return err
	}
	if err := syncFile(unfinished); err != nil {
		return err
	}
	return os.Rename(unfinished, path)
}

// reserve creates the unfinished file, readable only by its owner, unless the copy exists.
func reserve(path, unfinished string) error {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s exists", path)
	}
	f, err := os.OpenFile(unfinished, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// copyTo copies the database within one read transaction, so that concurrent writes do not restart the copy.
func copyTo(ctx context.Context, source *conn, path string) (err error) {
	inner, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return err
	}
	target := &conn{Conn: inner}
	defer func() { err = errors.Join(err, target.Close()) }()
	if _, err := source.exec("BEGIN"); err != nil {
		return err
	}
	defer func() {
		_, end := source.exec("ROLLBACK")
		err = errors.Join(err, end)
	}()
	backup, err := sqlite.NewBackup(target.Conn, "main", source.Conn, "main")
	if err != nil {
		return err
	}
	for more := true; more && err == nil; {
		if more, err = backup.Step(backupStep); err == nil {
			err = ctx.Err()
		}
	}
	if err = errors.Join(err, backup.Close()); err != nil {
		return err
	}
	if err := check(target); err != nil {
		return err
	}
	// A single file without a WAL, until the next process opens it.
	return target.query("PRAGMA journal_mode = DELETE", func(*row) bool { return true })
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}

// maintain runs a long operation on a reader's connection, until ctx ends.
func (s *Store) maintain(ctx context.Context, act string, op func(*conn) error) error {
	_, err := read(ctx, s, act, func(c *conn) (struct{}, error) {
		c.SetInterrupt(ctx.Done())
		defer c.SetInterrupt(nil)
		return struct{}{}, op(c)
	})
	return err
}
