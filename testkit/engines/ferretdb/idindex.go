package ferretdb

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"

	_ "modernc.org/sqlite" // FerretDB's own driver, registered as sqlite
)

// IndexIDs adds an index for look-ups by _id to the existing collections of a database on SQLite. FerretDB
// has a unique index over _ferretdb_sjson->"_id" but queries _ferretdb_sjson->'$._id': different expressions
// for SQLite, so each look-up would scan the collection.
func IndexIDs(ctx context.Context, dir, database string) error {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, database+".sqlite")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	tables, err := collectionTables(ctx, db)
	if err != nil {
		return fmt.Errorf("listing the tables of %s: %w", database, err)
	}
	for _, table := range tables {
		_, err := db.ExecContext(ctx, fmt.Sprintf(`CREATE INDEX IF NOT EXISTS "%[1]s_by_id" ON "%[1]s" (_ferretdb_sjson->'$._id')`, table))
		if err != nil {
			return fmt.Errorf("indexing %s: %w", table, err)
		}
	}
	return nil
}

func collectionTables(ctx context.Context, db *sql.DB) (tables []string, err error) {
	rows, err := db.QueryContext(ctx, `SELECT table_name FROM _ferretdb_collections`)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var table string
		if err := rows.Scan(&table); err != nil {
			return nil, err
		}
		tables = append(tables, table)
	}
	return tables, rows.Err()
}
