package mongodb

import (
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOpenRejectsInvalidConfigs(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	for why, c := range map[string]Config{
		"nothing":        {},
		"no scheme":      {URI: "localhost:27017", Database: "d", Logger: log},
		"a wrong option": {URI: "mongodb://localhost/?w=-7", Database: "d", Logger: log},
		"no database":    {URI: "mongodb://localhost", Logger: log},
		"no logger":      {URI: "mongodb://localhost", Database: "d"},
	} {
		if s, err := Open(c); err == nil {
			_ = s.Close(t.Context())
			t.Errorf("%s: got no error", why)
		}
	}
	_, err := Open(Config{URI: "mongodb://user:pa%ss@localhost/", Database: "d", Logger: log})
	if err == nil || strings.Contains(err.Error(), "pa%ss") {
		t.Errorf("got %v, want an error without the password", err)
	}
}

func TestWritesWaitForTheJournal(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]struct {
		w       any
		journal bool
	}{
		"mongodb://localhost":                            {"majority", true},
		"mongodb://localhost/?replicaSet=rs0&w=majority": {"majority", true},
		"mongodb://localhost/?w=2":                       {2, true},
		"mongodb://localhost/?w=majority&journal=false":  {"majority", false},
	} {
		got := clientOptions(Config{URI: uri}, newConnState(slog.New(slog.DiscardHandler), 0)).WriteConcern
		if got.W != want.w || got.Journal == nil || *got.Journal != want.journal {
			t.Errorf("%s: got %+v, want w %v and the journal %v", uri, got, want.w, want.journal)
		}
	}
}

// TestSilentServer uses a server that accepts connections but never responds: lookups and lists time out.
func TestUnresponsiveServer(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	s, err := Open(Config{URI: "mongodb://" + listener.Addr().String() + "/?directConnection=true", Database: "d", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(t.Context()) }()
	_, lookUp := s.Company(t.Context(), "c")
	_, list := s.AccessTokens(t.Context(), "c", store.Page{})
	_, records := s.ReadRecords(t.Context(), "chats", "", 1)
	for name, err := range map[string]error{"look-up": lookUp, "list": list, "records": records, "ready": s.Ready(t.Context())} {
		if !apperr.Is(err, apperr.Unavailable) {
			t.Errorf("%s: got %v, want Unavailable", name, err)
		}
	}
	if _, err := s.ReadRecords(t.Context(), "nothing", "", 1); !errors.Is(err, errUnknownKind) {
		t.Errorf("got %v, want an unknown kind", err)
	}
}

func TestOrderIsTheHistorysOrder(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, pair := range [][2]chat.Message{
		{{ID: "b", CreatedAt: noon}, {ID: "a", CreatedAt: noon.Add(time.Millisecond)}},
		{{ID: "a", CreatedAt: noon}, {ID: "b", CreatedAt: noon}},
		{{ID: "a", CreatedAt: noon}, {ID: "a ", CreatedAt: noon}},
		{{ID: "z"}, {ID: "a", CreatedAt: noon}},
	} {
		a, b := orderOf(pair[0].CreatedAt, pair[0].ID), orderOf(pair[1].CreatedAt, pair[1].ID)
		if a >= b || chat.CompareMessages(pair[0], pair[1]) >= 0 {
			t.Errorf("got %q and %q, want them in this order", a, b)
		}
	}
}

func TestTextAndFieldNames(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		`{"text":"Hello"}`:             "Hello",
		`{"text":5,"caption":"A cat"}`: "A cat",
		`{"body":"Choose\u0000"}`:      "Choose",
		`[]`:                           "",
		`{"text":"` + strings.Repeat("é", 5000) + `"}`: strings.Repeat("é", chat.MaxTextLength),
	} {
		if got := textOf([]byte(data)); got != want {
			t.Errorf("%.40s: got %.40q, want %.40q", data, got, want)
		}
	}
	for _, id := range []string{"plain", "a.b$c%2Ed\x00", "%", "%25"} {
		if field := fieldName(id); strings.ContainsAny(field, ".$\x00") || idOf(field) != id {
			t.Errorf("%q: got the field %q and back %q", id, field, idOf(field))
		}
	}
}
