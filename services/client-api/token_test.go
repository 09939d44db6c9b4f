package clientapi_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/store"
	clientapi "github.com/parley-chat/parley/services/client-api"
	"github.com/parley-chat/parley/testkit/timetest"
)

// A revoked token stops working on every replica at once, regardless of the cache's TTL.
func TestRevocationReachesEveryReplica(t *testing.T) {
	t.Parallel()
	believing := func(cfg *clientapi.Config) { cfg.CacheTTL = time.Hour }
	w := start(t, believing)
	first := w.base
	w.run(believing)
	b := w.openBus()
	send := func(base, token string) int {
		w.base = base
		return w.postAs(token, "/message/send", sendBody("TEXT", `{"text":"hi"}`, w.chatID)).Status
	}
	replicas := []string{first, w.base}
	kept := w.addToken(companyID)
	for _, base := range replicas {
		if got := send(base, w.token); got != http.StatusOK {
			t.Fatalf("before: got %d, want 200", got)
		}
	}
	hash, _ := credential.HashAccessToken(w.token)
	w.must(w.store.ChangeAccessToken(t.Context(), hash, store.TokenChange{RevokedAt: time.Now()}))
	w.must(b.RPC().Invalidate(t.Context(), store.CachedAccessToken, hash))
	for _, base := range replicas {
		timetest.Until(t, "the revocation reaching "+base, func() bool { return send(base, w.token) == http.StatusUnauthorized })
		if got := send(base, kept); got != http.StatusOK {
			t.Errorf("another token: got %d, want 200", got)
		}
	}
}

// If the announcement of a revocation is lost, the cache's TTL of one second ends the token.
func TestRevocationWithoutAnnouncement(t *testing.T) {
	t.Parallel()
	w := start(t)
	if got := w.send(`{"text":"hi"}`); got.Status != http.StatusOK {
		t.Fatalf("before: got %d, want 200", got.Status)
	}
	w.revoke(w.token)
	timetest.Until(t, "the end of the token", func() bool { return w.send(`{"text":"hi"}`).Status == http.StatusUnauthorized })
}

// A token is valid up to, but not at, the instant at which it expires.
func TestAccessTokenExpiresOnTheInstant(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	c := timetest.NewClock(began)
	w := start(t, func(cfg *clientapi.Config) { cfg.Now, cfg.CacheTTL = c.Now, time.Hour })
	_, w.chatID = w.openChat("expiry@example.com", began)
	secret, token := credential.NewAccessToken(companyID, "short", began, began.Add(time.Minute))
	w.must(w.store.CreateAccessToken(t.Context(), token))
	w.token = secret
	for _, test := range []struct {
		after time.Duration
		want  int
	}{{0, 200}, {time.Minute - time.Millisecond, 200}, {time.Minute, 401}, {time.Hour, 401}} {
		c.Set(began.Add(test.after))
		if got := w.send(`{"text":"hi"}`); got.Status != test.want {
			t.Errorf("%s after its creation: got %d %s, want %d", test.after, got.Status, got.Body, test.want)
		}
	}
}

// The last use of a token is stored by the time the service has stopped.
func TestLastUseIsWritten(t *testing.T) {
	t.Parallel()
	w := start(t)
	unused := w.addToken(companyID)
	before := time.Now().Truncate(time.Millisecond)
	w.send(`{"text":"hi"}`)
	w.stop()
	if got := w.lastUse(w.token); got.Before(before) || got.After(time.Now()) {
		t.Errorf("got %s, want the time of the request, after %s", got, before)
	}
	if got := w.lastUse(unused); !got.IsZero() {
		t.Errorf("unused token: got %s, want none", got)
	}
}

func (w *world) lastUse(secret string) time.Time {
	w.t.Helper()
	hash, _ := credential.HashAccessToken(secret)
	token, err := w.store.AccessToken(w.t.Context(), hash)
	w.must(err)
	return token.LastUsedAt
}
