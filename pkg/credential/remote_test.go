package credential

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/testkit/timetest"
)

// jwksServer is the other service, an http.RoundTripper so that it works in a synctest bubble.
type jwksServer struct {
	mu      sync.Mutex
	status  int
	body    string
	err     error
	hang    bool
	fetches int
}

func (s *jwksServer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.fetches++
	status, body, failure, hang := s.status, s.body, s.err, s.hang
	s.mu.Unlock()
	if hang {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if failure != nil {
		return nil, failure
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func (s *jwksServer) serve(set *KeySet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status, s.body, s.err, s.hang = http.StatusOK, string(set.JWKS()), nil, false
}

func (s *jwksServer) fail() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = errors.New("connection refused")
}

func (s *jwksServer) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fetches
}

func newRemoteKeys(t testing.TB, server *jwksServer, log *slog.Logger) *RemoteKeys {
	t.Helper()
	remote, err := NewRemoteKeys(RemoteKeysConfig{
		URL:    "http://widget-api/.well-known/jwks.json",
		Client: &http.Client{Transport: server},
		Logger: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	return remote
}

func TestRemoteKeysSurviveAnOutageAndRotation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		old, fresh := newKey(t), newKey(t)
		set := newKeySet(t, old)
		server := &jwksServer{}
		server.fail()
		logged, log := bufferLogger()
		remote := newRemoteKeys(t, server, log)
		v := NewVerifier(remote, timetest.NewClock(testTime).Now)
		token := mustSign(t, set, testClaims())

		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- remote.Run(ctx) }()
		synctest.Wait()

		if remote.Ready(ctx) == nil {
			t.Error("Ready before the first fetch: got nil, want an error")
		}
		if _, err := v.Verify(ctx, token); !apperr.Is(err, apperr.Unavailable) {
			t.Errorf("server down from the start: got %v, want Unavailable", err)
		}

		server.serve(set)
		time.Sleep(defaultPause + time.Second)
		synctest.Wait()
		if err := remote.Ready(ctx); err != nil {
			t.Errorf("Ready after the server started: got %v, want nil", err)
		}
		if _, err := v.Verify(ctx, token); err != nil {
			t.Errorf("server up: got %v, want the token to verify", err)
		}

		server.fail()
		time.Sleep(2 * defaultRefresh)
		synctest.Wait()
		if _, err := v.Verify(ctx, token); err != nil {
			t.Errorf("server down again: got %v, want the old keys kept", err)
		}
		rotated := newKeySet(t, fresh, old)
		tokenOfFresh := mustSign(t, rotated, testClaims())
		if _, err := v.Verify(ctx, tokenOfFresh); !apperr.Is(err, apperr.Unavailable) {
			t.Errorf("unknown key while the server is down: got %v, want Unavailable", err)
		}

		server.serve(rotated)
		time.Sleep(defaultPause)
		if _, err := v.Verify(ctx, tokenOfFresh); err != nil {
			t.Errorf("after rotation: got %v, want the new key to be fetched for the token", err)
		}
		if _, err := v.Verify(ctx, token); err != nil {
			t.Errorf("after rotation: got %v, want the old key still valid", err)
		}

		server.serve(newKeySet(t, fresh))
		time.Sleep(defaultRefresh + time.Second)
		synctest.Wait()
		if _, err := v.Verify(ctx, token); !apperr.Is(err, apperr.Unauthenticated) {
			t.Errorf("after the old key was removed: got %v, want Unauthenticated", err)
		}
		if got := strings.Count(logged.String(), "retrying"); got != 2 {
			t.Errorf("log lines about the outage: got %d, want one for each of the two times", got)
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: got %v, want nil", err)
		}
	})
}

func TestUnknownKeyFetchesAreRateLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &jwksServer{}
		server.serve(newKeySet(t, newKey(t)))
		remote := newRemoteKeys(t, server, nil)
		var group sync.WaitGroup
		for range 100 {
			group.Go(func() {
				if _, err := remote.Key(t.Context(), "invented"); !errors.Is(err, ErrUnknownKey) {
					t.Errorf("unknown kid: got %v, want ErrUnknownKey", err)
				}
			})
		}
		group.Wait()
		if got := server.count(); got != 1 {
			t.Errorf("fetches for 100 unknown kids: got %d, want 1", got)
		}
		time.Sleep(defaultPause)
		_, _ = remote.Key(t.Context(), "invented")
		if got := server.count(); got != 2 {
			t.Errorf("fetches after the pause: got %d, want 2", got)
		}
	})
}

func TestFetchTimesOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &jwksServer{hang: true}
		remote := newRemoteKeys(t, server, nil)
		started := time.Now()
		_, err := remote.Key(t.Context(), "any")
		if !apperr.Is(err, apperr.Unavailable) || time.Since(started) != fetchTimeout {
			t.Errorf("hanging server: got %v after %v, want Unavailable after %v", err, time.Since(started), fetchTimeout)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- remote.Run(ctx) }()
		synctest.Wait()
		started = time.Now()
		cancel()
		if err := <-done; err != nil || time.Since(started) != 0 {
			t.Errorf("stop during a fetch: got %v after %v, want nil at once", err, time.Since(started))
		}
	})
}

func TestInvalidResponses(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]*jwksServer{
		"status 500": {status: 500, body: `{"keys":[]}`},
		"not JSON":   {status: 200, body: `<html>`},
		"no keys":    {status: 200, body: `{"keys":[]}`},
		"too large":  {status: 200, body: `{"keys":[],"x":"` + strings.Repeat("A", maxJWKS) + `"}`},
	} {
		remote := newRemoteKeys(t, server, nil)
		if _, err := remote.Key(t.Context(), "any"); !apperr.Is(err, apperr.Unavailable) {
			t.Errorf("%s: got %v, want Unavailable", name, err)
		}
	}
}

func TestRemoteKeysNeedAURL(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "keys.json", "ftp://host/x", "http://", "://"} {
		if _, err := NewRemoteKeys(RemoteKeysConfig{URL: url}); err == nil {
			t.Errorf("%q: got no error, want one", url)
		}
	}
}

// Changed triggers a fetch at once, without waiting for the next refresh.
func TestChangedTriggersAFetch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		old, fresh := newKey(t), newKey(t)
		server := &jwksServer{}
		server.serve(newKeySet(t, fresh, old))
		remote := newRemoteKeys(t, server, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- remote.Run(ctx) }()
		synctest.Wait()
		server.serve(newKeySet(t, fresh))
		for range 3 {
			remote.Changed()
		}
		synctest.Wait()
		if _, ok := remote.known(old.id); ok {
			t.Error("after Changed: got the old key, want it removed")
		}
		if _, ok := remote.known(fresh.id); !ok {
			t.Error("after Changed: the new key is missing")
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
