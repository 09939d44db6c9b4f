package sqlite

import (
	"os"
	"strings"
	"testing"
)

// TestTablesAreDocumented compares docs/data.md with the migrations.
func TestTablesAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/data.md")
	if err != nil {
		t.Fatal(err)
	}
	names, err := read(t.Context(), openTest(t, nil), "reading the schema", func(c *conn) (names []string, err error) {
		// FTS5 keeps an index in tables that begin with its name.
		err = c.query(`SELECT name FROM sqlite_schema
			WHERE name NOT LIKE 'sqlite_%' AND name NOT LIKE 'passage_terms_%'`, appendText(&names))
		return names, err
	})
	if err != nil || len(names) < 20 {
		t.Fatalf("got %v, %v, want all tables and indexes", names, err)
	}
	for _, name := range names {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/data.md: got no `%s`", name)
		}
	}
}
