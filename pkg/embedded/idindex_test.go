package embedded_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

func insertOne(t *testing.T, c *mongo.Collection) {
	t.Helper()
	if _, err := c.InsertOne(t.Context(), bson.D{{Key: "_id", Value: "one"}}); err != nil {
		t.Fatalf("inserting: %v", err)
	}
}

// wantIndexed asks the engine how it looks up by _id: through an index, and not by reading all there is. A connection of the engine
// learns of a new index with its next query, so each asking comes behind one.
func wantIndexed(t *testing.T, c *mongo.Collection) {
	t.Helper()
	byID := bson.D{{Key: "_id", Value: "one"}}
	find := bson.D{{Key: "find", Value: c.Name()}, {Key: "filter", Value: byID}}
	var plan bson.Raw
	for range 100 {
		if err := c.FindOne(t.Context(), byID).Err(); err != nil {
			t.Fatalf("looking up: %v", err)
		}
		var err error
		if plan, err = c.Database().RunCommand(t.Context(), bson.D{{Key: "explain", Value: find}}).Raw(); err != nil {
			t.Fatalf("explaining: %v", err)
		}
		if strings.Contains(plan.String(), "USING INDEX") {
			return
		}
	}
	t.Errorf("got the plan %s, want the use of an index", plan)
}

func TestMongoDBLooksUpByIndex(t *testing.T) {
	t.Parallel()
	db := connectMongoDB(t, startMongoDB(t, "127.0.0.1:0", t.TempDir(), quiet()).URI())
	inserted, counted := db.Collection("Inserted here"), db.Collection("counted")
	insertOne(t, inserted)
	if err := counters()["update"](t.Context(), counted); err != nil {
		t.Fatal(err)
	}
	wantIndexed(t, inserted)
	wantIndexed(t, counted)
}

func TestMongoDBIndexesWhatIsMadeAnew(t *testing.T) {
	t.Parallel()
	db := connectMongoDB(t, startMongoDB(t, "127.0.0.1:0", t.TempDir(), quiet()).URI())
	c := db.Collection("c")
	insertOne(t, c)
	if err := c.Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	insertOne(t, c)
	wantIndexed(t, c)
	if err := db.Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	insertOne(t, c)
	wantIndexed(t, c)
}

// TestMongoDBIndexesWhatItFinds starts on a folder that has no such indexes, as one that an older version left.
func TestMongoDBIndexesWhatItFinds(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "with blanks & 100%")
	m := startMongoDB(t, "127.0.0.1:0", dir, quiet())
	insertOne(t, connectMongoDB(t, m.URI()).Collection("c"))
	m.Stop()
	if n := dropIndexes(t, filepath.Join(dir, "test.sqlite")); n == 0 {
		t.Fatal("got no index to drop")
	}
	wantIndexed(t, connectMongoDB(t, startMongoDB(t, "127.0.0.1:0", dir, quiet()).URI()).Collection("c"))
}

// dropIndexes takes our indexes out of a database file and returns how many there were.
func dropIndexes(t *testing.T, file string) int {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	var names []string
	rows, err := db.QueryContext(t.Context(), `SELECT name FROM sqlite_master WHERE type = 'index' AND name LIKE '%_by_id'`)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	rows.Close()
	for _, name := range names {
		if _, err := db.ExecContext(t.Context(), fmt.Sprintf(`DROP INDEX %q`, name)); err != nil {
			t.Fatal(err)
		}
	}
	return len(names)
}
