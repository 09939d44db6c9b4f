package parleyctl_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-pdf/fpdf"

	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/services/parleyctl"
)

func TestDocuments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seed()
	file := filepath.Join(t.TempDir(), "returns.md")
	write := func(text string) {
		t.Helper()
		w.must(os.WriteFile(file, []byte(text), 0o600))
	}
	write("# Costs\n\nReturns are free.\n")
	made := decoded[object](w.ctl("documents", "add", "--company", companyID, "--file", file, "-o", "json"))
	id := made["id"].(string)
	if made["title"] != "returns" || made["format"] != "markdown" || made["passages"] != 1.0 {
		t.Errorf("got %v, want what the file's name says", made)
	}
	search := func(question string) int {
		t.Helper()
		found, err := w.store.SearchPassages(t.Context(), companyID, knowledge.Terms(question), 5)
		w.must(err)
		return len(found)
	}
	if search("What does a return cost?") != 1 {
		t.Error("got nothing, want the passage")
	}
	write("# Shipping\n\nParcels leave at noon.\n")
	w.ctl("documents", "update", id, "--file", file, "--title", "Shipping", "--format", "text").done()
	if d, err := w.store.Document(t.Context(), id); err != nil || d.Title != "Shipping" || d.Format != knowledge.Text || d.Revision != 2 {
		t.Errorf("got %+v and %v, want it replaced", d, err)
	}
	if search("What does a return cost?") != 0 {
		t.Error("got the old passage, want nothing")
	}
	if list := w.ctl("documents", "list", "--company", companyID).done(); !strings.Contains(list, "Shipping") {
		t.Errorf("got %s, want the document", list)
	}
	page := decoded[object](w.ctl("documents", "add", "--company", companyID, "--address", "https://shop.example/faq",
		"--refresh", "24h", "-o", "json"))["id"].(string)
	if d, err := w.store.Document(t.Context(), page); err != nil || d.Source.RefreshHours != 24 || d.Title != "shop.example/faq" {
		t.Errorf("got %+v and %v, want a document that is fetched", d, err)
	}
	w.ctl("documents", "fetch", page).done()
	if list := w.ctl("documents", "list", "--company", companyID).done(); !strings.Contains(list, "not yet") {
		t.Errorf("got %s, want that it was not fetched", list)
	}
	w.ctl("documents", "fetch", id).fails(parleyctl.ExitRefused, "given by hand")
	for _, refresh := range []string{"90m", "721h", "-1h"} {
		w.ctl("documents", "add", "--company", companyID, "--address", "https://shop.example", "--refresh", refresh).
			fails(parleyctl.ExitUsage, "--refresh must be")
	}
	w.ctl("documents", "add", "--company", companyID, "--file", file, "--refresh", "1h").fails(parleyctl.ExitUsage, "exclude")
	w.ctl("documents", "add", "--company", companyID, "--refresh", "1h").fails(parleyctl.ExitRefused, "address")
	w.ctl("documents", "add", "--company", companyID).fails(parleyctl.ExitUsage, "--file required")
	var menu bytes.Buffer
	f := fpdf.New("P", "mm", "A4", "")
	f.SetFont("Helvetica", "", 12)
	f.AddPage()
	f.Cell(100, 10, "Soup of the day")
	w.must(f.Output(&menu))
	write(menu.String())
	made = decoded[object](w.ctl("documents", "add", "--company", companyID, "--file", file, "-o", "json"))
	if made["format"] != "markdown" || search("Which soup?") != 1 {
		t.Errorf("got %v, want the text of the PDF", made)
	}
	write("%PDF-1.7 and no more")
	w.ctl("documents", "add", "--company", companyID, "--file", file).fails(parleyctl.ExitRefused, "not a PDF")
	write(" ")
	w.ctl("documents", "add", "--company", companyID, "--file", file).fails(parleyctl.ExitRefused, "text")
	w.ctl("documents", "delete", id, "--yes").done()
	w.ctl("documents", "show", id).fails(parleyctl.ExitNotFound, "not found")
}

// Passages are ranked by meaning with a model of the company; a connection in use stays.
func TestRanking(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seed()
	show := func() object { return decoded[object](w.ctl("ranking", "show", "--company", companyID, "-o", "json")) }
	if got := show(); got["passages"] != 0.0 || got["connectionId"] != nil {
		t.Errorf("got %v, want words alone", got)
	}
	made := decoded[object](w.ctl("connections", "create", "--company", companyID, "--name", "Models", "--url", "https://models.example", "-o", "json"))
	connection := made["id"].(string)
	w.ctl("ranking", "set", "--company", companyID, "--connection", connection).fails(parleyctl.ExitRefused, "model")
	w.ctl("ranking", "set", "--company", companyID, "--connection", companyID, "--model", "small").fails(parleyctl.ExitRefused, "connectionId")
	w.ctl("ranking", "set", "--company", companyID, "--connection", "x", "--model", "small").fails(parleyctl.ExitUsage, "UUID")
	w.ctl("ranking", "set", "--company", companyID, "--connection", connection, "--model", "small", "--unchecked").done()
	if got := show(); got["model"] != "small" || got["connectionId"] != connection || got["embedded"] != 0.0 {
		t.Errorf("got %v, want the model", got)
	}
	w.ctl("connections", "delete", connection, "--yes").fails(parleyctl.ExitRefused, "the ranking of documents")
	w.ctl("ranking", "set", "--company", companyID).done()
	w.ctl("connections", "delete", connection, "--yes").done()
}
