package ratelimit

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/testkit/redistest"
	"github.com/parley-chat/parley/testkit/timetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newClock() *timetest.Clock {
	return timetest.NewClock(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
}

func startRedis(t *testing.T, addr string) *redistest.Redis {
	t.Helper()
	server, err := redistest.Start(addr)
	if err != nil {
		t.Fatalf("starting Redis: %v", err)
	}
	t.Cleanup(server.Stop)
	return server
}

func openRedis(t *testing.T, url string) *Redis {
	t.Helper()
	r, err := OpenRedis(url, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("opening Redis: %v", err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// allowed returns the number of successes of n calls of Take.
func allowed(t *testing.T, l *Limiter, caller string, n int) (count int) {
	t.Helper()
	for range n {
		if l.Take(t.Context(), caller).Allowed {
			count++
		}
	}
	return count
}

// hourly is slow enough that no permit becomes available during a test.
var hourly = config.Rate{Count: 60, Per: time.Hour}

func TestRateWithoutRedis(t *testing.T) {
	t.Parallel()
	c := newClock()
	l := New(Config{Name: "test", Rate: hourly, Now: c.Now})
	if got := allowed(t, l, "a", 100); got != 60 {
		t.Errorf("got %d of 100 at once, want 60", got)
	}
	if got := allowed(t, l, "b", 100); got != 60 {
		t.Errorf("another caller: got %d of 100, want 60", got)
	}
	if d := l.Take(t.Context(), "a"); d.Allowed || d.Left != 0 || d.Wait != time.Minute || d.Full != time.Hour {
		t.Errorf("got %+v, want a wait of a minute for the next permit and an hour for all", d)
	}
	c.Advance(time.Minute - time.Nanosecond)
	if got := allowed(t, l, "a", 1); got != 0 {
		t.Error("got a permit too early")
	}
	c.Advance(time.Nanosecond)
	if got := allowed(t, l, "a", 10); got != 1 {
		t.Errorf("got %d after a minute, want 1", got)
	}
	c.Advance(10 * time.Hour)
	if got := allowed(t, l, "a", 100); got != 60 {
		t.Errorf("got %d after a long time, want 60", got)
	}
}

// A returned permit is granted again, with Redis and without.
func TestReturnedPermits(t *testing.T) {
	t.Parallel()
	for name, redis := range map[string]*Redis{"alone": nil, "shared": openRedis(t, startRedis(t, "127.0.0.1:0").URL())} {
		l := New(Config{Name: "returned", Rate: config.Rate{Count: 3, Per: time.Hour}, Redis: redis})
		for n := range 10 {
			if !l.Take(t.Context(), "a").Allowed {
				t.Fatalf("%s: request %d: got refused, want every permit back", name, n)
			}
			l.Return("a")
		}
		if got := allowed(t, l, "a", 10); got != 3 {
			t.Errorf("%s: got %d of 10, want the 3 permits", name, got)
		}
	}
}

func TestZeroRateIsUnlimited(t *testing.T) {
	t.Parallel()
	l := New(Config{Name: "test"})
	if got := allowed(t, l, "a", 1000); l != nil || got != 1000 {
		t.Errorf("got %d of 1000, want all", got)
	}
}

func TestReplicasShareTheRate(t *testing.T) {
	t.Parallel()
	url := startRedis(t, "127.0.0.1:0").URL()
	var replicas []*Limiter
	for range 3 {
		replicas = append(replicas, New(Config{Name: "test", Rate: config.Rate{Count: 600, Per: time.Hour}, Redis: openRedis(t, url)}))
	}
	var passed atomic.Int64
	var group sync.WaitGroup
	for i := range 12 {
		group.Go(func() {
			for range 100 {
				if replicas[i%3].Take(t.Context(), "a").Allowed {
					passed.Add(1)
				}
			}
		})
	}
	group.Wait()
	// Up to three permits may have become available during the test; replicas hold unspent permits.
	if got := passed.Load(); got > 603 || got < 600-3*600/leaseShare {
		t.Errorf("got %d of 1200, want 600 less the unspent permits of the replicas", got)
	}
	fresh := New(Config{Name: "test", Rate: config.Rate{Count: 600, Per: time.Hour}, Redis: openRedis(t, url)})
	if got := allowed(t, fresh, "a", 100); got > 3 {
		t.Errorf("new replica: got %d of 100, want none", got)
	}
	if got := allowed(t, fresh, "b", 100); got != 100 {
		t.Errorf("another caller: got %d of 100, want all", got)
	}
}

// counting counts requests to Redis.
type counting struct{ requests atomic.Int64 }

func (c *counting) DialHook(next redis.DialHook) redis.DialHook { return next }
func (c *counting) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (c *counting) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.HasPrefix(cmd.Name(), "eval") {
			c.requests.Add(1)
		}
		return next(ctx, cmd)
	}
}

func TestBusyCallerRarelyContactsRedis(t *testing.T) {
	t.Parallel()
	r := openRedis(t, startRedis(t, "127.0.0.1:0").URL())
	c, count := newClock(), new(counting)
	r.client.AddHook(count)
	l := New(Config{Name: "test", Rate: config.Rate{Count: 20_000, Per: time.Hour}, Redis: r, Now: c.Now})
	if got := allowed(t, l, "a", 20_000); got != 20_000 {
		t.Errorf("got %d of 20000, want all", got)
	}
	if n := count.requests.Load(); n > 40 { // ten to grow to a thousand, then one per thousand
		t.Errorf("got %d requests to Redis for 20000 permits, want about one per thousand", n)
	}
	before := count.requests.Load()
	if got := allowed(t, l, "a", 20_000); got > 10 {
		t.Errorf("got %d more, want none", got)
	}
	if n := count.requests.Load() - before; n > 10 {
		t.Errorf("got %d requests to Redis for a refused caller, want one", n)
	}
	c.Advance(2 * slow) // the pace is reset; an infrequent caller holds no lease
	l.Take(t.Context(), "b")
	if a, _ := l.accounts.Get("b"); a.permits != 0 {
		t.Errorf("got %d permits held, want none", a.permits)
	}
}

// While Redis is unavailable, each replica counts by itself; afterwards the replicas share the count again.
func TestRedisOutageAndRecovery(t *testing.T) {
	t.Parallel()
	server := startRedis(t, "127.0.0.1:0")
	url := server.URL()
	r := openRedis(t, url)
	l := New(Config{Name: "test", Rate: hourly, Redis: r})
	if got := allowed(t, l, "a", 100); got < 60 || got > 61 {
		t.Errorf("got %d of 100, want 60", got)
	}
	server.Stop()
	other := New(Config{Name: "test", Rate: hourly, Redis: openRedis(t, url)})
	for i, replica := range []*Limiter{l, other} {
		if got := allowed(t, replica, "b", 100); got != 60 {
			t.Errorf("replica %d without Redis: got %d of 100, want 60", i, got)
		}
	}
	startRedis(t, strings.TrimPrefix(url, "redis://"))
	timetest.Until(t, "the limiter reconnects to Redis", func() bool {
		l.Take(t.Context(), "c") // the limiter retries once per second, without a notification
		return !r.failing.Load()
	})
	if got := allowed(t, l, "d", 100); got < 60 || got > 61 {
		t.Errorf("got %d of 100, want 60 again", got)
	}
}

// A Redis that accepts connections but never replies delays one request briefly, and no others.
func TestHangingRedisDoesNotBlockCallers(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	l := New(Config{Name: "test", Rate: hourly, Redis: openRedis(t, "redis://"+silent.Addr().String())})
	if got := allowed(t, l, "a", 100); got != 60 {
		t.Errorf("got %d of 100, want 60", got)
	}
}

// A caller that hangs up while permits are leased is not let pass: what it began may go on.
func TestADisconnectedCallerWaitsForTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Name: "test", Rate: hourly, Redis: &Redis{}})
		a := l.account("a")
		a.leasing = make(chan struct{}) // another request asks Redis
		gone, hangUp := context.WithCancel(t.Context())
		hangUp()
		decided := make(chan Decision, 1)
		go func() { decided <- l.Take(gone, "a") }()
		synctest.Wait()
		if len(decided) != 0 {
			t.Fatalf("got %+v during the lease, want the caller to wait", <-decided)
		}
		a.mu.Lock()
		a.refusedFor, a.refusedUntil = 1, time.Now().Add(time.Minute)
		close(a.leasing)
		a.leasing = nil
		a.mu.Unlock()
		synctest.Wait()
		if d := <-decided; d.Allowed {
			t.Errorf("got %+v after the lease without permits, want a refusal", d)
		}
	})
}

func TestOpenRedisErrorOmitsTheURL(t *testing.T) {
	t.Parallel()
	if _, err := OpenRedis("redis://user:pass word@host:6379/x", slog.New(slog.DiscardHandler)); err == nil || strings.Contains(err.Error(), "pass") {
		t.Errorf("got %v, want an error without the password", err)
	}
}

// call sends a request from an address.
func call(e *echo.Echo, from, path string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodGet, path, nil)
	req.RemoteAddr = from + ":1"
	w := httptest.NewRecorder()
	e.ServeHTTP(w, req)
	return w
}

func TestRateLimitFields(t *testing.T) {
	t.Parallel()
	c, registry := newClock(), prometheus.NewRegistry()
	l := New(Config{Name: "address", Rate: config.Rate{Count: 2, Per: time.Minute}, Now: c.Now, Registerer: registry})
	e := httpapi.New(httpapi.Config{})
	e.Use(l.ByAddress)
	e.GET("/", func(c echo.Context) error { return c.NoContent(http.StatusNoContent) })
	for i, want := range []struct {
		status            int
		limit, retryAfter string
	}{{204, `"address";r=1;t=30`, ""}, {204, `"address";r=0;t=60`, ""}, {429, `"address";r=0;t=60`, "30"}} {
		got := call(e, "192.0.2.1", "/")
		if got.Code != want.status || got.Header().Get("RateLimit") != want.limit || got.Header().Get("Retry-After") != want.retryAfter ||
			got.Header().Get("RateLimit-Policy") != `"address";q=2;w=60` {
			t.Errorf("request %d: got %d %v, want %+v", i, got.Code, got.Header(), want)
		}
		if want.status == 429 && !strings.Contains(got.Body.String(), `"code":"TOO_MANY_REQUESTS"`) {
			t.Errorf("got %s, want TOO_MANY_REQUESTS", got.Body)
		}
	}
	if got := call(e, "192.0.2.2", "/nowhere"); got.Code != http.StatusNotFound {
		t.Errorf("another address: got %d, want 404", got.Code)
	}
	if n, err := testutil.GatherAndCount(registry, "parley_rate_limited_total"); err != nil || n != 1 || testutil.ToFloat64(l.refused) != 1 {
		t.Errorf("got %v refusals counted (%v), want 1", testutil.ToFloat64(l.refused), err)
	}
}

// Failures are limited; a valid credential is accepted however often its address has failed.
func TestOnlyFailuresAreRefused(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*Redis{"alone": nil, "with Redis": openRedis(t, startRedis(t, "127.0.0.1:0").URL())} {
		l := New(Config{Name: "auth-failures", Rate: config.Rate{Count: 3, Per: time.Hour}, Redis: r})
		e := httpapi.New(httpapi.Config{})
		e.GET("/:token", func(c echo.Context) error {
			if c.Param("token") != "right" {
				return l.CountFailure(c, &apperr.Error{Code: apperr.Unauthenticated})
			}
			return l.CountFailure(c, nil)
		})
		status := map[int]int{}
		for range 10 {
			got := call(e, "192.0.2.1", "/wrong")
			status[got.Code]++
			if got.Code == http.StatusTooManyRequests && got.Header().Get("Retry-After") == "" {
				t.Errorf("%s: got %v, want Retry-After", name, got.Header())
			}
			if right := call(e, "192.0.2.1", "/right"); right.Code != http.StatusOK {
				t.Errorf("%s: got %d for a valid credential, want 200", name, right.Code)
			}
		}
		if status[http.StatusUnauthorized] != 3 || status[http.StatusTooManyRequests] != 7 {
			t.Errorf("%s: failures got %v, want three 401 and then 429", name, status)
		}
		if got := call(e, "192.0.2.2", "/wrong"); got.Code != http.StatusUnauthorized {
			t.Errorf("%s: got %d from another address, want 401", name, got.Code)
		}
	}
}

// A byte budget grants a request entirely or not at all. A refusal spends nothing, and a smaller request may
// still succeed.
func TestPermitsBySize(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*Redis{"alone": nil, "with Redis": openRedis(t, startRedis(t, "127.0.0.1:0").URL())} {
		l := New(Bytes("bytes", config.Rate{Count: 1000, Per: 1000 * time.Hour}, r, nil, nil))
		for i, step := range []struct {
			n       int
			allowed bool
		}{{400, true}, {500, true}, {200, false}, {60, true}, {50, false}, {40, true}, {1, false}} {
			d := l.TakeN(t.Context(), "a", step.n)
			if d.Allowed != step.allowed {
				t.Errorf("%s, step %d: got %+v for %d, want %v", name, i, d, step.n, step.allowed)
			}
			if !d.Allowed && (d.Wait < 30*time.Minute || d.Wait > time.Duration(step.n)*time.Hour) {
				t.Errorf("%s, step %d: got a wait of %s for %d, want the time until they are available", name, i, d.Wait, step.n)
			}
		}
		if d := l.TakeN(t.Context(), "b", 5000); !d.Allowed {
			t.Errorf("%s: got %+v for more than the budget, want it allowed once", name, d)
		}
		if d := l.TakeN(t.Context(), "b", 1); d.Allowed {
			t.Errorf("%s: got %+v after that, want no permits left", name, d)
		}
	}
}

func TestBudgetRefusal(t *testing.T) {
	t.Parallel()
	l := New(Bytes("bytes-company", config.Rate{Count: 100, Per: time.Hour}, nil, nil, nil))
	e := httpapi.New(httpapi.Config{})
	e.GET("/", func(c echo.Context) error {
		if err := l.Spend(c, "a", 60); err != nil {
			return err
		}
		return c.NoContent(http.StatusNoContent)
	})
	if got := call(e, "192.0.2.1", "/"); got.Code != http.StatusNoContent || got.Header().Get("RateLimit") != "" {
		t.Errorf("got %d %v, want 204 and no fields", got.Code, got.Header())
	}
	got := call(e, "192.0.2.1", "/")
	if got.Code != http.StatusTooManyRequests || !strings.Contains(got.Body.String(), `"code":"BYTE_BUDGET_EXCEEDED"`) ||
		!strings.Contains(got.Header().Get("RateLimit"), "bytes-company") || got.Header().Get("Retry-After") == "" {
		t.Errorf("got %d %v %s, want 429 BYTE_BUDGET_EXCEEDED", got.Code, got.Header(), got.Body)
	}
}

func BenchmarkTake(b *testing.B) {
	l := New(Config{Name: "token", Rate: config.Rate{Count: 1_000_000_000, Per: time.Hour}})
	for b.Loop() {
		l.Take(b.Context(), "a")
	}
}
