//go:build nosqlite

package backend

import (
	"errors"

	"github.com/parley-chat/parley/pkg/store"
)

// openSQLite returns an error: images of the services, which run on many machines, are built without SQLite.
func openSQLite(Config) (store.Store, error) {
	return nil, errors.New("store: this binary was built without SQLite; set MONGODB_URI")
}
