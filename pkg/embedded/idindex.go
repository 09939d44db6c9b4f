package embedded

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the engine's own driver, by the name of sqlite

	"github.com/parley-chat/parley/pkg/embedded/internal/writegate"
)

const (
	databaseSuffix = ".sqlite"
	// The engine's catalogue of its collections.
	listCollections = `SELECT name, table_name FROM _ferretdb_collections`
	// The expression must be the one of the engine's queries, letter by letter.
	createIDIndex = `CREATE INDEX IF NOT EXISTS %s ON %s (_ferretdb_sjson->'$._id')`
	idIndexSuffix = "_by_id"
)

// idIndexes gives every collection an index that serves look-ups by _id.
//
// The engine makes a unique index over _ferretdb_sjson->"_id" and asks for _ferretdb_sjson->'$._id'. These are the same value, but
// to SQLite two expressions, so that without an index of ours each look-up, update and deletion by _id reads the whole collection.
//
// Its methods are called one at a time: before the gate opens, and then under the gate's lock, where nobody else writes.
type idIndexes struct {
	dir  string
	log  *slog.Logger
	have map[collectionName]struct{}
}

type collectionName struct{ database, collection string }

func newIDIndexes(dir string, log *slog.Logger) *idIndexes {
	return &idIndexes{dir: dir, log: log, have: make(map[collectionName]struct{})}
}

// addToAll indexes what is in the folder already.
func (x *idIndexes) addToAll() {
	files, _ := filepath.Glob(filepath.Join(x.dir, "*"+databaseSuffix)) // as the engine finds them
	for _, file := range files {
		x.add(strings.TrimSuffix(filepath.Base(file), databaseSuffix))
	}
}

// wrote indexes a collection behind the first write, which may have made it. Commands that change more than documents may have
// taken collections, and so their indexes, away.
func (x *idIndexes) wrote(w writegate.Write) {
	switch w.Command {
	case "insert", "update", "findAndModify", "findandmodify":
		if _, ok := x.have[collectionName{w.Database, w.Collection}]; !ok {
			x.add(w.Database)
		}
	case "delete":
	default:
		clear(x.have)
	}
}

// add indexes all collections of a database. Without the index all is slower and nothing wrong, so failing is a warning.
func (x *idIndexes) add(database string) {
	if err := x.tryAdd(database); err != nil {
		x.log.Warn("look-ups by _id in the embedded MongoDB will be slow", "database", database, "error", err)
	}
}

func (x *idIndexes) tryAdd(database string) error {
	file := filepath.Join(x.dir, database+databaseSuffix)
	if _, err := os.Stat(file); filepath.Base(database) != database || errors.Is(err, fs.ErrNotExist) {
		return nil // the write failed: no database has such a name
	}
	db, err := sql.Open("sqlite", existingDatabase(file))
	if err != nil {
		return fmt.Errorf("opening its file: %w", err)
	}
	defer func() { _ = db.Close() }()
	tables, err := tablesOf(db)
	if err != nil {
		return fmt.Errorf("listing its collections: %w", err)
	}
	for collection, table := range tables {
		if _, err := db.Exec(fmt.Sprintf(createIDIndex, quoteName(table+idIndexSuffix), quoteName(table))); err != nil {
			return fmt.Errorf("indexing %s: %w", collection, err)
		}
		x.have[collectionName{database, collection}] = struct{}{}
	}
	return nil
}

// existingDatabase names a database file that is opened only if it is there. The engine may be writing, for a moment.
func existingDatabase(file string) string {
	u := url.URL{Scheme: "file", Path: file, RawQuery: url.Values{"mode": {"rw"}, "_pragma": {"busy_timeout(10000)"}}.Encode()}
	return u.String()
}

func tablesOf(db *sql.DB) (map[string]string, error) {
	rows, err := db.Query(listCollections)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	tables := make(map[string]string)
	for rows.Next() {
		var collection, table string
		if err := rows.Scan(&collection, &table); err != nil {
			return nil, err
		}
		tables[collection] = table
	}
	return tables, rows.Err()
}

// quoteName quotes an SQL name.
func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
