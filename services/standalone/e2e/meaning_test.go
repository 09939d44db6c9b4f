package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// meanings is a model whose embeddings have a direction for each group of words with one meaning.
type meanings struct{ citingModel }

func (m *meanings) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/embeddings") {
		m.citingModel.ServeHTTP(w, r)
		return
	}
	var asked struct{ Input []string }
	if json.NewDecoder(r.Body).Decode(&asked) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	groups := [][]string{{"money back", "refund"}, {"noon", "carrier"}}
	type embedding struct {
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	}
	var answer struct {
		Data []embedding `json:"data"`
	}
	for i, text := range asked.Input {
		vector := []float32{0.1, 0.1}
		for direction, words := range groups {
			for _, word := range words {
				if strings.Contains(strings.ToLower(text), word) {
					vector[direction] = 1
				}
			}
		}
		answer.Data = append(answer.Data, embedding{i, vector})
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// TestMeaning asks in other words than the documents have: the passage that words alone do not rank first is sent to the
// model when the company ranks by meaning, also after the document has changed.
func TestMeaning(t *testing.T) {
	s := commonStandalone(t)
	o := newOperator(t, s)
	m := &meanings{}
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	company, app, connection := o.documentBot("Thinkers", server.URL, `{"passages":2,"search":"plain"}`)
	const shop = "# Parcels\n\nA parcel leaves at noon; a parcel of a parcel service arrives with the carrier.\n\n" +
		"# Parcel sizes\n\nA parcel has at most two meters.\n\n# Complaints\n\n"
	document := o.create("documents", "add", "--company", company, "--title", "Shop", "--file",
		o.write("shop.md", shop+"We refund a parcel that is broken."))

	there := s.place
	there.AppID, there.CompanyID = app, company
	v := register(t, there, there.widgetAPI(t))
	socket := connected(t, s.SocketURLs[0], v.token, "websocket")
	answer := func(want string) {
		t.Helper()
		v.write(t, "Do I get my money back for a parcel, whatever the parcel sizes?")
		var read reading
		socket.finish(t, &read)
		if told := m.last(); !strings.Contains(told, want) {
			t.Errorf("got the instructions %q, want %q in them", told, want)
		}
	}
	embedded := func(want int) {
		t.Helper()
		eventually(t, "embeddings of the passages", func() error {
			got := ask[struct{ Passages, Embedded int }](o, "ranking", "show", "--company", company)
			if got.Embedded != want || got.Passages != want {
				return fmt.Errorf("got %+v, want %d of %d", got, want, want)
			}
			return nil
		})
	}
	answer("leaves at noon")
	o.run("ranking", "set", "--company", company, "--connection", connection, "--model", "meanings")
	embedded(3)
	answer("We refund")
	o.run("documents", "update", document, "--title", "Shop", "--file", o.write("shop.md", shop+"The refund comes at once for a parcel."))
	embedded(3)
	answer("at once")
	o.run("ranking", "set", "--company", company)
	answer("leaves at noon")
}
