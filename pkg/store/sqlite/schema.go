package sqlite

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// applicationID marks a file as Parley's (PRAGMA application_id): "Prly".
const applicationID = 0x50726c79

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrations returns the scripts in the order of their versions: the nth migrates to version n (PRAGMA user_version).
func migrations() ([]string, error) {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	scripts := make([]string, len(names))
	for i, name := range names {
		if want := fmt.Sprintf("%04d.sql", i+1); path.Base(name) != want {
			return nil, fmt.Errorf("migration %s, want %s", name, want)
		}
		text, err := migrationFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		scripts[i] = string(text)
	}
	return scripts, nil
}

// migrate migrates the file to the newest version in one transaction. If several processes start concurrently, one
// migrates and the others find the newest version.
func migrate(c *conn, scripts []string) (err error) {
	end, err := sqlitex.ImmediateTransaction(c.Conn)
	if err != nil {
		return err
	}
	defer end(&err)
	version, err := fileVersion(c, len(scripts))
	if err != nil || version == len(scripts) {
		return err
	}
	for _, script := range scripts[version:] {
		if err := c.script(script); err != nil {
			return err
		}
	}
	return c.script(fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d;", applicationID, len(scripts)))
}

// fileVersion returns the version of the file; 0 if empty. It rejects files of other programs and newer versions.
func fileVersion(c *conn, newest int) (int, error) {
	id, err := pragma(c, "PRAGMA application_id")
	if sqlite.ErrCode(err).ToPrimary() == sqlite.ResultNotADB {
		return 0, errors.New("not an SQLite database")
	}
	if err != nil {
		return 0, err
	}
	version, err := pragma(c, "PRAGMA user_version")
	if err != nil {
		return 0, err
	}
	tables, err := pragma(c, "SELECT count(*) FROM sqlite_schema")
	switch {
	case err != nil:
		return 0, err
	case id == 0 && version == 0 && tables == 0:
		return 0, nil
	case id != applicationID:
		return 0, errors.New("not a Parley database")
	case version > newest:
		return 0, fmt.Errorf("written by a newer Parley (version %d); this one supports versions up to %d", version, newest)
	}
	return version, nil
}

// pragma returns the integer result of a statement.
func pragma(c *conn, sql string) (value int, err error) {
	_, err = c.first(sql, func(r *row) { value = int(r.int()) })
	return value, err
}
