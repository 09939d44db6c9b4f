package panel_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-pdf/fpdf"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/admin/view"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/knowledge"
)

// A developer adds a document, finds its passage with a question, changes it, and removes it. Another company finds none
// of it.
func TestDocuments(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	developer := w.as(w.acme.users[account.Developer])
	stranger := w.as(w.other.users[account.Developer])
	find := func(b *browser, question string) []view.Passage {
		t.Helper()
		var found view.Passages
		body, _ := json.Marshal(map[string]string{"question": question})
		b.done(http.StatusOK, http.MethodPost, "/api/documents/search", string(body)).Into(t, &found)
		return found.Passages
	}
	content := func(text string) string {
		body, _ := json.Marshal(map[string]string{"title": "Shop", "format": "markdown", "text": text, "address": "https://shop.example/#returns"})
		return string(body)
	}
	var made struct {
		ID                        string
		Passages, Bytes, Revision int
	}
	developer.done(http.StatusCreated, http.MethodPost, "/api/documents", content("# Parcels\n\nThey leave at noon.")).Into(t, &made)
	if made.Passages != 1 || made.Bytes == 0 || made.Revision != 1 {
		t.Errorf("got %+v, want a document of one passage", made)
	}
	if found := find(developer, "When does my parcel leave?"); len(found) != 1 || found[0].Heading != "Parcels" || found[0].Address == "" {
		t.Errorf("got %+v, want the passage", found)
	}
	if found := find(stranger, "When does my parcel leave?"); len(found) != 0 {
		t.Errorf("another company: got %+v, want nothing", found)
	}

	path := "/api/documents/" + made.ID
	stranger.done(http.StatusNotFound, http.MethodGet, path, "")
	developer.done(http.StatusOK, http.MethodPut, path, content("# Parcels\n\nThey stay."), "If-Match", `"1"`)
	developer.done(http.StatusPreconditionFailed, http.MethodPut, path, content("# Late"), "If-Match", `"1"`)
	if found := find(developer, "at noon"); len(found) != 0 {
		t.Errorf("got %+v, want nothing of the text before", found)
	}
	for _, wrong := range []string{
		`{"title":"","format":"markdown","text":"x"}`, `{"title":"x","format":"pdf","text":"x"}`,
		`{"title":"x","format":"text","text":" "}`, `{"title":"x","format":"text","text":"x","address":"ftp://x"}`,
	} {
		developer.done(http.StatusBadRequest, http.MethodPost, "/api/documents", wrong)
	}
	developer.done(http.StatusBadRequest, http.MethodPost, "/api/documents/search", `{"question":""}`)
	developer.done(http.StatusNoContent, http.MethodDelete, path, "")
	developer.done(http.StatusNotFound, http.MethodGet, path, "")
}

// pdfOf returns a PDF file with a page for each text.
func pdfOf(t *testing.T, pages ...string) string {
	t.Helper()
	return writePDF(t, fpdf.New("P", "mm", "A4", ""), pages)
}

// protectedPDF returns a PDF file with a password.
func protectedPDF(t *testing.T) string {
	t.Helper()
	f := fpdf.New("P", "mm", "A4", "")
	f.SetProtection(fpdf.CnProtectPrint, "user", "owner")
	return writePDF(t, f, []string{"secret"})
}

func writePDF(t *testing.T, f *fpdf.Fpdf, pages []string) string {
	t.Helper()
	f.SetFont("Helvetica", "", 12)
	for _, text := range pages {
		f.AddPage()
		f.Cell(100, 10, text)
	}
	var out strings.Builder
	if err := f.Output(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// A developer gets the text of a PDF file, with its pages.
func TestPDF(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	developer := w.as(w.acme.users[account.Developer])
	var got struct{ Format, Text string }
	file := pdfOf(t, "Soup", "Fish")
	developer.done(http.StatusOK, http.MethodPost, "/api/documents/pdf", file, "Content-Type", "application/pdf").Into(t, &got)
	if want := "# Page 1\n\nSoup\n\n# Page 2\n\nFish\n"; got.Text != want || got.Format != "markdown" {
		t.Errorf("got %+v, want %q", got, want)
	}
}

// A document needs an address only, if its text is fetched from it. A change of the address or of the schedule fetches it
// again; the company may ask for that at any time.
func TestDocumentFromAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	developer := w.as(w.acme.users[account.Developer])
	type answer struct {
		ID, Title, Text string
		RefreshHours    int
		Fetch           *struct {
			FetchedAt *time.Time
			Failure   struct{ Code, Message string }
		}
	}
	send := func(status int, method, path, body string) (d answer) {
		t.Helper()
		developer.done(status, method, path, body).Into(t, &d)
		return d
	}
	d := send(http.StatusCreated, http.MethodPost, "/api/documents", `{"address":"https://shop.example/returns","refreshHours":24}`)
	if d.Title != "shop.example/returns" || d.Text != "" || d.RefreshHours != 24 || d.Fetch == nil || d.Fetch.FetchedAt != nil {
		t.Errorf("got %+v, want a document without a text", d)
	}
	path := "/api/documents/" + d.ID
	stored := func() knowledge.Document {
		t.Helper()
		stored, err := w.store.Document(t.Context(), d.ID)
		w.must(err)
		return stored
	}
	fetched := stored() // as the processor writes it
	fetched.Text, fetched.Bytes = "Free", 4
	fetched.Source.ETag, fetched.Source.FetchedAt = "1", time.Now().UTC().Truncate(time.Millisecond)
	fetched.Source.DueAt = time.Now().Add(time.Hour)
	fetched.Source.Failure = knowledge.FetchFailure{Code: knowledge.FetchRefused, Message: "The server answered 404 Not Found", At: time.Now()}
	w.must(w.store.PutDocument(t.Context(), fetched, knowledge.Cut(fetched)))

	d = send(http.StatusOK, http.MethodGet, path, "")
	if d.Text != "Free" || d.Fetch.FetchedAt == nil || d.Fetch.Failure.Code != knowledge.FetchRefused || d.Fetch.Failure.Message == "" {
		t.Errorf("got %+v, want the text, and what came of the last fetch", d)
	}
	due := func() bool { return !stored().Source.DueAt.After(time.Now()) }
	send(http.StatusOK, http.MethodPut, path, `{"title":"Returns","address":"https://shop.example/returns","refreshHours":24,"text":"ignored"}`)
	if s := stored(); s.Text != "Free" || s.Title != "Returns" || due() {
		t.Errorf("another title: got %+v, want the text of before, and no fetch", s)
	}
	if d = send(http.StatusOK, http.MethodPost, path+"/fetch", ""); d.Text != "" || !due() || stored().Source.ETag != "1" {
		t.Errorf("got %+v, want it due", stored())
	}
	send(http.StatusOK, http.MethodPut, path, `{"title":"Returns","address":"https://shop.example/back","refreshHours":24}`)
	if s := stored(); s.Source.ETag != "" || !due() || s.Text != "Free" {
		t.Errorf("another address: got %+v, want it due, with the text of before", s)
	}
	send(http.StatusOK, http.MethodPut, path, `{"title":"Returns","format":"text","text":"By hand"}`)
	if s := stored(); s.Text != "By hand" || s.Source != (knowledge.Source{}) {
		t.Errorf("got %+v, want the text that was given", s)
	}
	if got := developer.done(http.StatusConflict, http.MethodPost, path+"/fetch", "").Body; !strings.Contains(got, "DOCUMENT_NOT_FETCHED") {
		t.Errorf("got %s, want that there is nothing to fetch", got)
	}
	for _, wrong := range []string{
		`{"refreshHours":24}`, `{"address":"https://shop.example","refreshHours":721}`,
		`{"address":"https://shop.example","refreshHours":-1}`, `{"address":"https://shop.example"}`,
	} {
		developer.done(http.StatusBadRequest, http.MethodPost, "/api/documents", wrong)
	}
}

// A company has a number of documents; above it, none is added, and those that it has are changed as before.
func TestDocumentsOfACompanyAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	developer := w.as(w.acme.users[account.Developer])
	for range knowledge.MaxDocuments - 1 { // it had one before
		w.must(w.store.PutDocument(t.Context(), knowledge.Document{
			ID: chat.NewID(), CompanyID: w.acme.id, Title: "x", Format: knowledge.Text, CreatedAt: time.Now(), UpdatedAt: time.Now(),
		}, nil))
	}
	content := `{"title":"Shop","format":"text","text":"hello"}`
	got := developer.done(http.StatusConflict, http.MethodPost, "/api/documents", content).Body
	if !strings.Contains(got, "TOO_MANY_DOCUMENTS") {
		t.Errorf("got %s, want the bound", got)
	}
	developer.done(http.StatusOK, http.MethodPut, "/api/documents/"+w.acme.document, content)
}

// Visitors' questions without an answer are found among many others, a page at a time.
func TestCallsWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	var want []string
	for n := range 60 {
		c := bots.Call{ID: chat.NewID(), CompanyID: w.acme.id, AppID: w.acme.app, At: time.Now(), Kind: bots.Model}
		c.Unanswered = n%10 == 0
		c.Version = n / 10 % 2 // 0: a test
		if c.Unanswered && c.Version > 0 {
			want = append([]string{c.ID}, want...)
		}
		w.must(w.store.AppendBotCall(t.Context(), c))
	}
	developer := w.as(w.acme.users[account.Developer])
	path := "/api/applications/" + w.acme.app + "/bot/calls?unanswered=true&limit=2"
	var got []string
	for cursor, more := "", true; more; more = cursor != "" {
		var page struct {
			Calls []bots.Call
			Next  string
		}
		developer.done(http.StatusOK, http.MethodGet, path+"&cursor="+cursor, "").Into(t, &page)
		for _, c := range page.Calls {
			got = append(got, c.ID)
		}
		cursor = page.Next
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A developer ranks passages by meaning: a server that gives no embedding is an error at its field, and a question finds
// first what has the direction of its embedding.
func TestRanking(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	developer := w.as(w.acme.users[account.Developer])
	get := func() (got view.Ranking) {
		t.Helper()
		developer.done(http.StatusOK, http.MethodGet, "/api/ranking", "").Into(t, &got)
		return got
	}
	if got := get(); got.ConnectionID != "" || got.Revision != 0 || got.Embedded != 0 {
		t.Errorf("got %+v, want words alone", got)
	}
	body := func(connection, model string) string {
		return `{"connectionId":"` + connection + `","model":"` + model + `"}`
	}
	for wrong, field := range map[string]string{
		body(w.acme.connection, ""): "model", body("", "small"): "model", body(w.other.connection, "small"): "connectionId",
		body(w.acme.connection, "unknown"): "model", body(w.acme.connection, "locked"): "connectionId",
	} {
		got := developer.done(http.StatusBadRequest, http.MethodPut, "/api/ranking", wrong).Body
		if !strings.Contains(got, `"field":"`+field+`"`) {
			t.Errorf("%s: got %s, want an error at %s", wrong, got, field)
		}
	}
	developer.done(http.StatusOK, http.MethodPut, "/api/ranking", body(w.acme.connection, "small"), "If-Match", `"0"`)
	developer.done(http.StatusPreconditionFailed, http.MethodPut, "/api/ranking", body("", ""), "If-Match", `"0"`)
	got := developer.done(http.StatusConflict, http.MethodDelete, "/api/connections/"+w.acme.connection, "").Body
	if !strings.Contains(got, "the ranking of documents") {
		t.Errorf("got %s, want what uses the connection", got)
	}

	d := knowledge.Document{ID: chat.NewID(), CompanyID: w.acme.id, Title: "Shop", Format: knowledge.Text}
	passages := []knowledge.Passage{
		{DocumentID: d.ID, CompanyID: d.CompanyID, Number: 1, Text: "parcel parcel parcel"},
		{DocumentID: d.ID, CompanyID: d.CompanyID, Number: 2, Text: "parcel parcel of others"},
		{DocumentID: d.ID, CompanyID: d.CompanyID, Number: 3, Text: "parcel of a refund for money"},
	}
	w.must(w.store.PutDocument(t.Context(), d, passages))
	for i := range passages {
		passages[i].Embedding.Model = knowledge.EmbeddingModel("https://models.example.com/v1", "small")
		passages[i].Embedding.Vector = []byte{byte(i / 2), 1}
	}
	w.must(w.store.PutEmbeddings(t.Context(), passages))
	if got := get(); got.Embedded != 3 || got.Passages != 3 || got.Model != "small" || got.Revision != 1 {
		t.Errorf("got %+v, want three passages", got)
	}
	var found view.Passages
	developer.done(http.StatusOK, http.MethodPost, "/api/documents/search", `{"question":"parcel"}`).Into(t, &found)
	if len(found.Passages) != 3 || found.Passages[1].Text != passages[2].Text {
		t.Errorf("got %+v, want the third in the second place", found.Passages)
	}
	developer.done(http.StatusOK, http.MethodPut, "/api/ranking", `{}`)
	developer.done(http.StatusNoContent, http.MethodDelete, "/api/connections/"+w.acme.connection, "")
}
