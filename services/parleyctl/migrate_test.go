package parleyctl_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/services/parleyctl"
	"github.com/parley-chat/parley/testkit/storetest"
)

func TestBackup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	storetest.Fill(t, w.store)
	path := filepath.Join(t.TempDir(), "copy.db")
	w.ctl("backup").fails(parleyctl.ExitUsage, "--to required")
	if out := w.ctl("backup", "--to", path).done(); !strings.Contains(out, path) { // while the store is open
		t.Errorf("got %s, want the path", out)
	}
	w.ctl("backup", "--to", path).fails(parleyctl.ExitUsage, "exists")
	copied := storetest.OpenAt(t, path)
	for _, kind := range store.Kinds() {
		if got, want := storetest.Records(t, copied, kind), storetest.Records(t, w.store, kind); len(got) != len(want) {
			t.Errorf("%s in the copy: got %d records, want %d", kind, len(got), len(want))
		}
	}

	w.ctl("backup", "--to", path+"2", "--sqlite-path", path+"none").fails(parleyctl.ExitUsage, "there is no database")
	delete(w.env, "SQLITE_PATH")
	w.env["MONGODB_URI"] = "mongodb://localhost"
	w.ctl("backup", "--to", path+"2").fails(parleyctl.ExitUsage, "mongodump")
	if _, err := os.Stat(path + "none"); err == nil {
		t.Error("a database that was not there: got a new one, want none")
	}
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seed()
	storetest.Fill(t, w.store)
	dir := t.TempDir()
	target := filepath.Join(dir, "target.db")
	for args, text := range map[string]string{
		"--from sqlite":                            "--to required",
		"--from x --to sqlite":                     "--from must be a MongoDB URI",
		"--from sqlite --to mongodb":               "--to: MONGODB_URI or SQLITE_PATH is required",
		"--from sqlite --to sqlite":                "the same store",
		"--from sqlite:" + target + " --to sqlite": "there is no database",
	} {
		w.ctl(append([]string{"migrate"}, strings.Fields(args)...)...).fails(parleyctl.ExitUsage, text)
	}
	type kind struct {
		Kind    string
		Records int64
	}
	run := func() result {
		return w.ctl("migrate", "--from", "sqlite", "--to", "sqlite:"+target, "-o", "json")
	}
	summaries := decoded[[]kind](run())
	if len(summaries) != len(store.Kinds()) || summaries[0].Kind != "companies" || summaries[0].Records != 2 {
		t.Errorf("got %+v, want a count of each kind", summaries)
	}
	run().done() // nothing is left to copy
	w.ctl("companies", "show", companyID, "--sqlite-path", target).done()
	storetest.Fill(t, storetest.OpenAt(t, target))
	run().fails(parleyctl.ExitUsage, "not those of the source")
}
