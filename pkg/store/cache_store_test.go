package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/testkit/storetest"
)

// TestCacheOfEachKind checks that each kind of document is cached, invalidated only by its own kind and key, and read
// again.
func TestCacheOfEachKind(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	v := newVisitor(t, s)
	c, _, err := s.OpenChat(t.Context(), v, store.NewChat{Channel: chat.ChannelWidget, Now: at(0)})
	if err != nil {
		t.Fatal(err)
	}
	cache := store.NewCache(s, store.CacheConfig{TokenTTL: time.Hour, TTL: time.Hour})
	for kind, test := range map[string]struct {
		key  string
		put  func(state string) error
		read func(key string) (state string, err error)
	}{
		store.CachedAccessToken: {
			"hash",
			func(state string) error {
				token := store.Record{Key: "hash", Value: chat.AccessToken{Hash: "hash", Name: state}}
				return s.WriteRecords(t.Context(), "accessTokens", []store.Record{token})
			},
			func(key string) (string, error) { d, err := cache.AccessToken(t.Context(), key); return d.Name, err },
		},
		store.CachedApplication: {
			"app",
			func(state string) error {
				return s.PutApplication(t.Context(), chat.Application{ID: "app", Name: state})
			},
			func(key string) (string, error) { d, err := cache.Application(t.Context(), key); return d.Name, err },
		},
		store.CachedTemplate: {
			"template",
			func(state string) error {
				return s.PutTemplate(t.Context(), chat.MessageTemplate{ID: "template", Name: state})
			},
			func(key string) (string, error) { d, err := cache.Template(t.Context(), key); return d.Name, err },
		},
		store.CachedVisitor: {
			v.ID,
			func(state string) error {
				_, err := s.Register(t.Context(), store.Registration{Visitor: chat.Visitor{ID: v.ID, FirstName: state}})
				return err
			},
			func(key string) (string, error) { d, err := cache.Visitor(t.Context(), key); return d.FirstName, err },
		},
	} {
		steps := []struct {
			change func() error
			want   string
		}{
			{func() error { return test.put("old") }, "old"},
			{func() error { return test.put("new") }, "old"},
			{func() error { cache.Forget(kind, "another key"); cache.Forget("another kind", test.key); return nil }, "old"},
			{func() error { cache.Forget(kind, test.key); return nil }, "new"},
		}
		for n, step := range steps {
			if err := step.change(); err != nil {
				t.Fatal(err)
			}
			if got, err := test.read(test.key); err != nil || got != step.want {
				t.Errorf("%s, step %d: got %q, %v, want %q", kind, n, got, err, step.want)
			}
		}
		if _, err := test.read("nothing"); !apperr.Is(err, apperr.NotFound) {
			t.Errorf("%s: got %v, want NotFound", kind, err)
		}
	}
	testFreshChat(t, s, cache, c)
}

// testFreshChat checks that the cached window stays stale until FreshChat.
func testFreshChat(t *testing.T, s store.Store, cache *store.Cache, c chat.Chat) {
	t.Helper()
	want := func(why string, got chat.Chat, err error, window time.Time) {
		t.Helper()
		if err != nil || !got.WindowStartedAt.Equal(window) {
			t.Errorf("%s: got %+v, %v, want a window from %v", why, got, err, window)
		}
	}
	got, err := cache.Chat(t.Context(), c.ID)
	want("first", got, err, at(0))
	if err := s.AppendMessage(t.Context(), c.ID, text("hello", at(1000), false)); err != nil {
		t.Fatal(err)
	}
	got, err = cache.Chat(t.Context(), c.ID)
	want("cached", got, err, at(0))
	got, err = cache.FreshChat(t.Context(), c.ID)
	want("fresh", got, err, at(1000))
	got, err = cache.Chat(t.Context(), c.ID)
	want("refreshed", got, err, at(1000))
	cache.Forget(store.CachedChat, c.ID)
	got, err = cache.Chat(t.Context(), c.ID)
	want("read anew", got, err, at(1000))
}

func newVisitor(t testing.TB, s store.Store) chat.Visitor {
	t.Helper()
	registered, err := s.Register(t.Context(), store.Registration{Visitor: chat.Visitor{ID: uuid.NewString(), CompanyID: "c", AppID: "a"}})
	v := registered.Visitor
	if err != nil {
		t.Fatalf("saving a visitor: %v", err)
	}
	return v
}

// at counts milliseconds from a fixed time.
func at(milliseconds int) time.Time {
	return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).Add(time.Duration(milliseconds) * time.Millisecond)
}

func text(content string, createdAt time.Time, isFromSupport bool) chat.Message {
	return chat.Message{
		ID: uuid.NewString(), CreatedAt: createdAt, Type: chat.Text, Data: []byte(`{"text":"` + content + `"}`), NameOfSender: "Ada", IsFromSupport: isFromSupport,
	}
}
