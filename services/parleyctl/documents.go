package parleyctl

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/admin/view"
	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/pkg/pdf"
	"github.com/parley-chat/parley/pkg/store"
)

func (a *app) document() resource[knowledge.Document, view.Document] {
	return resource[knowledge.Document, view.Document]{
		app:      a,
		argument: "DOCUMENT",
		find:     store.Store.Document,
		open:     a.stored,
		view:     view.DocumentOf,
		id:       func(v view.Document) string { return v.ID },
		columns: []column[view.Document]{
			{"id", func(v view.Document) string { return v.ID }},
			{"company", func(v view.Document) string { return v.CompanyID }},
			{"title", func(v view.Document) string { return v.Title }},
			{"format", func(v view.Document) string { return string(v.Format) }},
			{"bytes", func(v view.Document) string { return strconv.Itoa(v.Bytes) }},
			{"passages", func(v view.Document) string { return strconv.Itoa(v.Passages) }},
			{"address", func(v view.Document) string { return v.Address }},
			{"fetched", fetchState},
		},
	}
}

// fetchState says what came of the last fetch of a document, and is empty for one whose text is given by hand.
func fetchState(v view.Document) string {
	switch {
	case v.Fetch == nil:
		return ""
	case v.Fetch.Failure != nil:
		return v.Fetch.Failure.Message
	case v.Fetch.FetchedAt == nil:
		return "not yet"
	}
	return v.Fetch.FetchedAt.String()
}

func (a *app) documents() *cobra.Command {
	return commandGroup(
		"documents", "Add, list and change the documents that a company's bots answer from", []string{"document"},
		a.documentsAdd(), a.documentsList(), a.documentsShow(), a.documentsUpdate(), a.documentsFetch(),
		a.documentsDelete(),
	)
}

// documentFlags are the content of a document on the command line.
type documentFlags struct {
	title, address, format, file string
	refresh                      time.Duration
}

func (f *documentFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.title, "title", "", "its title; default: the name of the file")
	c.Flags().StringVar(&f.address, "address", "", "where visitors can read it")
	addChoiceFlag(c, &f.format, "format", "", "how it is written; default: by the name of the file",
		string(knowledge.Markdown), string(knowledge.HTML), string(knowledge.Text))
	c.Flags().StringVar(&f.file, "file", "", "file with its text, or a PDF; - is standard input")
	c.Flags().DurationVar(&f.refresh, "refresh", 0,
		"fetch the text from its address, again after this time, such as 24h: in place of a file")
}

// formats are those of files, by the ends of their names.
var formats = map[string]knowledge.Format{
	".md": knowledge.Markdown, ".markdown": knowledge.Markdown, ".html": knowledge.HTML, ".htm": knowledge.HTML,
}

// content reads the file, if the text is not fetched.
func (f *documentFlags) content(a *app, c *cobra.Command) (admin.DocumentContent, error) {
	if f.refresh != 0 {
		return f.fetched()
	}
	if err := required(c, "file"); err != nil {
		return admin.DocumentContent{}, err
	}
	text, err := a.readFile("--file", f.file)
	if err != nil {
		return admin.DocumentContent{}, err
	}
	extension := filepath.Ext(f.file)
	content := admin.DocumentContent{
		Title: f.title, Address: f.address, Format: knowledge.Format(f.format), Text: string(text),
	}
	if content.Title == "" {
		content.Title = strings.TrimSuffix(filepath.Base(f.file), extension)
	}
	if strings.HasPrefix(content.Text, "%PDF-") {
		content.Format = knowledge.Markdown
		content.Text, err = pdf.Text(c.Context(), text)
		return content, err
	}
	if content.Format == "" {
		content.Format = knowledge.Text
		if known, ok := formats[strings.ToLower(extension)]; ok {
			content.Format = known
		}
	}
	return content, nil
}

func (f *documentFlags) fetched() (admin.DocumentContent, error) {
	c := admin.DocumentContent{Title: f.title, Address: f.address, RefreshHours: int(f.refresh.Hours())}
	if f.file != "" {
		return c, usage("--file and --refresh exclude each other")
	}
	if f.refresh%time.Hour != 0 || c.RefreshHours < 1 || c.RefreshHours > knowledge.MaxRefreshHours {
		return c, usage(fmt.Sprintf("--refresh must be 1h to %dh, in whole hours", knowledge.MaxRefreshHours))
	}
	return c, nil
}

func (a *app) documentsAdd() *cobra.Command {
	var f documentFlags
	var companyID string
	var content admin.DocumentContent
	c := &cobra.Command{
		Use: "add", Short: "Add a document from a file, or from its address", Args: exactArgs(), Aliases: []string{"create"},
		Example: "  parleyctl documents add --company COMPANY --file returns.md --address https://shop.example.com/returns\n" +
			"  parleyctl documents add --company COMPANY --address https://shop.example.com/returns --refresh 24h",
	}
	require(c, "company")
	a.addCompanyFlag(c, &companyID, "the company that it is for")
	f.add(c)
	checkFirst(c, func() (err error) {
		content, err = f.content(a, c)
		return err
	})
	return a.document().create(c, func(ctx context.Context, o operations) (knowledge.Document, error) {
		return o.CreateDocument(ctx, self(), companyID, content)
	})
}

func (a *app) documentsList() *cobra.Command {
	return a.document().listOfCompany(
		&cobra.Command{Use: "list", Short: "List a company's documents"}, store.Store.Documents,
	)
}

func (a *app) documentsShow() *cobra.Command {
	return a.document().show(&cobra.Command{Use: "show DOCUMENT", Short: "Show a document, with its text (-o json)"})
}

func (a *app) documentsUpdate() *cobra.Command {
	var f documentFlags
	var content admin.DocumentContent
	c := &cobra.Command{
		Use: "update DOCUMENT", Short: "Replace a document by a file, or by what its address has",
		Example: "  parleyctl documents update DOCUMENT --file returns.md --title Returns",
	}
	f.add(c)
	checkFirst(c, func() (err error) {
		content, err = f.content(a, c)
		return err
	})
	return a.document().change(c, func(
		ctx context.Context, o operations, d knowledge.Document,
	) (knowledge.Document, error) {
		return o.UpdateDocument(ctx, self(), d.ID, admin.AnyRevision, content)
	})
}

func (a *app) documentsFetch() *cobra.Command {
	c := &cobra.Command{
		Use: "fetch DOCUMENT", Short: "Fetch the text of a document from its address now, not by its schedule",
	}
	return a.document().change(c, func(
		ctx context.Context, o operations, d knowledge.Document,
	) (knowledge.Document, error) {
		return o.FetchDocument(ctx, self(), d.ID)
	})
}

func (a *app) documentsDelete() *cobra.Command {
	c := &cobra.Command{Use: "delete DOCUMENT", Short: "Remove a document; bots do not find it any more"}
	question := func(d knowledge.Document) string {
		return fmt.Sprintf("Remove the document %s of company %s?", d.Title, d.CompanyID)
	}
	return a.document().confirmed(c, question, func(
		ctx context.Context, o operations, d knowledge.Document,
	) (knowledge.Document, error) {
		return d, o.DeleteDocument(ctx, self(), d.ID)
	})
}
