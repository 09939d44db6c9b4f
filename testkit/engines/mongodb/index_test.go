package mongodb_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/parley-chat/parley/pkg/store/mongodb"
	testkit "github.com/parley-chat/parley/testkit/engines/mongodb"
)

// TestIndexes creates the indexes twice and checks the drift. FerretDB has no TTL indexes: exactly those fail there.
func TestIndexes(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, e testkit.Engine) {
		database := e.Database(t)
		s, raw := e.Open(t, database), e.Raw(t, database)
		var all, impossible []string
		for _, i := range mongodb.Indexes() {
			all = append(all, "missing: "+i.String())
			if i.Expires && e.IsFerretDB() {
				impossible = append(impossible, "missing: "+i.String())
			}
		}
		wantDrift(t, s, all)
		for range 2 {
			err := s.EnsureIndexes(t.Context())
			if (err != nil) != (len(impossible) > 0) {
				t.Fatalf("got %v, want an error only for the %d that the engine does not have", err, len(impossible))
			}
		}
		wantDrift(t, s, impossible)

		indexes := raw.Collection("messages").Indexes()
		ok(t, indexes.DropOne(t.Context(), "side"))
		_, err := indexes.CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "chatId", Value: 1}}, Options: options.Index().SetName("side")})
		ok(t, err)
		wantDrift(t, s, append(slices.Clone(impossible), "differs: messages.side {chatId: 1}, want messages.side {chatId: 1, isFromSupport: 1, order: 1}"))
		if err := s.EnsureIndexes(t.Context()); err == nil || !strings.Contains(err.Error(), "messages.side") {
			t.Errorf("got %v, want an error that names messages.side", err)
		}
	})
}

func wantDrift(t *testing.T, s *mongodb.Store, want []string) {
	t.Helper()
	got, err := s.IndexDrift(t.Context())
	ok(t, err)
	slices.Sort(got)
	want = slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("got the drift\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestIndexesAreDocumented compares docs/data.md with the declared indexes.
func TestIndexesAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/data.md")
	ok(t, err)
	for _, i := range mongodb.Indexes() {
		if line := "`" + i.String() + "`"; !strings.Contains(string(text), line) {
			t.Errorf("docs/data.md: got no %s", line)
		}
	}
}
