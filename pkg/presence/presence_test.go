package presence_test

import (
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/presence"
	"github.com/parley-chat/parley/pkg/redisclient"
	"github.com/parley-chat/parley/testkit/redistest"
)

// Both stores pass the same contract tests. advance moves the store's time.
func TestStores(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) (s presence.Store, advance func(time.Duration)){
		"memory": func(*testing.T) (presence.Store, func(time.Duration)) {
			now := time.Now()
			return presence.NewMemory(func() time.Time { return now }), func(d time.Duration) { now = now.Add(d) }
		},
		"redis": func(t *testing.T) (presence.Store, func(time.Duration)) {
			r, err := redistest.Start("127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(r.Stop)
			client, err := redisclient.New(r.URL(), redisclient.Timeouts{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { client.Close() })
			return presence.NewRedis(client), r.Advance
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, advance := open(t)
			testContract(t, s, advance)
		})
	}
}

func testContract(t *testing.T, s presence.Store, advance func(time.Duration)) {
	ctx, left := t.Context(), time.Now().UTC().Truncate(time.Millisecond)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	want := func(what string, wanted ...presence.State) {
		t.Helper()
		got, err := s.States(ctx, "ada", "bea")
		must(err)
		for i := range wanted {
			if got[i].Online != wanted[i].Online || !got[i].SeenAt.Equal(wanted[i].SeenAt) {
				t.Errorf("%s: got %+v, want %+v", what, got, wanted)
			}
		}
	}
	online, unknown, gone := presence.State{Online: true}, presence.State{}, presence.State{SeenAt: left}
	must(s.SetOnline(ctx, "one"))
	must(s.SetOffline(ctx, "one", left))
	want("at first", unknown, unknown)
	must(s.SetOnline(ctx, "one", "ada", "bea"))
	want("held", online, online)
	must(s.SetOffline(ctx, "one", left, "ada"))
	want("left", gone, online)
	must(s.SetOnline(ctx, "one", "ada"))
	must(s.SetOnline(ctx, "two", "ada"))
	must(s.SetOffline(ctx, "one", left, "ada"))
	want("left one of two", online, online)
	advance(presence.TTL - presence.Refresh)
	must(s.SetOnline(ctx, "two", "ada"))
	advance(presence.Refresh)
	want("refreshed by one of two", online, unknown)
	must(s.SetOffline(ctx, "two", left, "ada"))
	want("left both", gone, unknown)
	advance(presence.SeenTTL)
	want("a day later", unknown, unknown)
}

// A visitor's key is the same by ids and by room.
func TestKeys(t *testing.T) {
	t.Parallel()
	if got, want := presence.Visitor("app", "visitor"), presence.Room("app-visitor"); got != want {
		t.Errorf("got %s and %s, want one key", got, want)
	}
}
