package parleyctl

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/admin/view"
	"github.com/parley-chat/parley/pkg/knowledge"
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
		},
	}
}

func (a *app) documents() *cobra.Command {
	return commandGroup(
		"documents", "Add, list and change the documents that a company's bots answer from", []string{"document"},
		a.documentsAdd(), a.documentsList(), a.documentsShow(), a.documentsUpdate(), a.documentsDelete(),
	)
}

// documentFlags are the content of a document on the command line.
type documentFlags struct{ title, address, format, file string }

func (f *documentFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.title, "title", "", "its title; default: the name of the file")
	c.Flags().StringVar(&f.address, "address", "", "where visitors can read it")
	addChoiceFlag(c, &f.format, "format", "", "how it is written; default: by the name of the file",
		string(knowledge.Markdown), string(knowledge.HTML), string(knowledge.Text))
	c.Flags().StringVar(&f.file, "file", "", "file with its text; - is standard input")
	require(c, "file")
}

// formats are those of files, by the ends of their names.
var formats = map[string]knowledge.Format{
	".md": knowledge.Markdown, ".markdown": knowledge.Markdown, ".html": knowledge.HTML, ".htm": knowledge.HTML,
}

// content reads the file.
func (f *documentFlags) content(a *app) (admin.DocumentContent, error) {
	text, err := a.readFile("--file", f.file)
	if err != nil {
		return admin.DocumentContent{}, err
	}
	extension := filepath.Ext(f.file)
	c := admin.DocumentContent{Title: f.title, Address: f.address, Format: knowledge.Format(f.format), Text: string(text)}
	if c.Title == "" {
		c.Title = strings.TrimSuffix(filepath.Base(f.file), extension)
	}
	if c.Format == "" {
		c.Format = knowledge.Text
		if known, ok := formats[strings.ToLower(extension)]; ok {
			c.Format = known
		}
	}
	return c, nil
}

func (a *app) documentsAdd() *cobra.Command {
	var f documentFlags
	var companyID string
	var content admin.DocumentContent
	c := &cobra.Command{
		Use: "add", Short: "Add a document from a file", Args: exactArgs(), Aliases: []string{"create"},
		Example: "  parleyctl documents add --company COMPANY --file returns.md --address https://shop.example.com/returns",
	}
	require(c, "company")
	a.addCompanyFlag(c, &companyID, "the company that it is for")
	f.add(c)
	checkFirst(c, func() (err error) {
		content, err = f.content(a)
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
		Use: "update DOCUMENT", Short: "Replace a document by a file",
		Example: "  parleyctl documents update DOCUMENT --file returns.md --title Returns",
	}
	f.add(c)
	checkFirst(c, func() (err error) {
		content, err = f.content(a)
		return err
	})
	return a.document().change(c, func(
		ctx context.Context, o operations, d knowledge.Document,
	) (knowledge.Document, error) {
		return o.UpdateDocument(ctx, self(), d.ID, admin.AnyRevision, content)
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
