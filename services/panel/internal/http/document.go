package http

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/admin/view"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/pkg/pdf"
)

func (a api) getDocuments(c echo.Context, _ caller, company string) error {
	id := func(d knowledge.Document) string { return d.ID }
	return answerList(c, "documents", recordsOf(a.Store.Documents, company), id, view.DocumentOf, nil)
}

// document finds the document of a route.
func (a api) document(c echo.Context, who caller) (knowledge.Document, error) {
	return recordOf(
		c, who, a.Store.Document, func(d knowledge.Document) string { return d.CompanyID }, apperr.DocumentNotFound,
	)
}

func (a api) getDocument(_ echo.Context, _ caller, d knowledge.Document) (any, error) {
	return view.DocumentOf(d), nil
}

func (a api) createDocument(c echo.Context, who caller, company string, r admin.DocumentContent) (any, error) {
	d, err := a.Admin.CreateDocument(ctxOf(c), who.actor(), company, r)
	return created(view.DocumentOf(d)), err
}

func (a api) updateDocument(c echo.Context, who caller, d knowledge.Document, r admin.DocumentContent) (any, error) {
	d, err := a.Admin.UpdateDocument(ctxOf(c), who.actor(), d.ID, revisionOf(c), r)
	return view.DocumentOf(d), err
}

// fetchDocument answers without the text, so that the answer is small.
func (a api) fetchDocument(c echo.Context, who caller, d knowledge.Document) (any, error) {
	d, err := a.Admin.FetchDocument(ctxOf(c), who.actor(), d.ID)
	d.Text = ""
	return view.DocumentOf(d), err
}

func (a api) deleteDocument(c echo.Context, who caller, d knowledge.Document) (any, error) {
	return nil, a.Admin.DeleteDocument(ctxOf(c), who.actor(), d.ID)
}

// pdfText is what a PDF file is as the text of a document.
type pdfText struct {
	Format knowledge.Format `json:"format"`
	Text   string           `json:"text"`
}

// readPDF answers the text of a PDF file and stores nothing: the form shows it, and sends it as that of a document. The
// request has its place before its body is read.
func (a api) readPDF(c echo.Context, _ caller) error {
	data, err := httpapi.ReadFile(c, "application/pdf", pdf.MaxBytes)
	if err != nil {
		return err
	}
	text, err := pdf.Text(ctxOf(c), data)
	return answer(c, pdfText{knowledge.Markdown, text}, err)
}

type searchRequest struct {
	Question string `json:"question"`
}

// searchDocuments answers what a bot would get for a question.
func (a api) searchDocuments(c echo.Context, _ caller, company string, r searchRequest) (any, error) {
	if strings.TrimSpace(r.Question) == "" || utf8.RuneCountInString(r.Question) > chat.MaxTextLength {
		message := "must have 1 to " + strconv.Itoa(chat.MaxTextLength) + " characters"
		return nil, apperr.Fields{{Name: "question", Message: message}}.Err()
	}
	found, err := a.Admin.FindPassages(ctxOf(c), company, r.Question, bots.MaxPassages)
	return view.PassagesOf(found), err
}
