package store

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/parley-chat/parley/pkg/chat"
)

// counted is the source of a cache under test.
type counted struct {
	reads  atomic.Int64
	answer func(read int64) (string, error)
}

func (c *counted) read(context.Context, string) (string, error) { return c.answer(c.reads.Add(1)) }

// nth returns the number of the read.
func nth(read int64) (string, error) { return strconv.FormatInt(read, 10), nil }

func newTestLookups(c CacheConfig, from *counted) *lookups[string] {
	c = c.withDefaults()
	return newLookups(c, CachedChat, c.TTL, requestCounter(nil), from.read, sizeOfText)
}

func sizeOfText(text string) int { return len(text) }

func wantValue(t *testing.T, s *lookups[string], key, want string) {
	t.Helper()
	if got, err := s.get(t.Context(), key); err != nil || got != want {
		t.Fatalf("%s: got %q, %v, want %q", key, got, err, want)
	}
}

func TestCacheExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from := &counted{answer: nth}
		s := newTestLookups(CacheConfig{TTL: 4 * time.Second}, from)
		wantValue(t, s, "k", "1")
		time.Sleep(3*time.Second - 1)
		wantValue(t, s, "k", "1")
		synctest.Wait()
		if got := from.reads.Load(); got != 1 {
			t.Errorf("got %d reads, want 1", got)
		}
		time.Sleep(4 * time.Second)
		wantValue(t, s, "k", "2")
	})
}

// TestCacheRenewsBeforeItForgets checks that a key in constant use never makes a caller wait.
func TestCacheRenewsBeforeItForgets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from := &counted{answer: func(read int64) (string, error) {
			time.Sleep(time.Second / 2)
			if read == 3 {
				return "", errors.New("unavailable")
			}
			return nth(read)
		}}
		s := newTestLookups(CacheConfig{TTL: 8 * time.Second}, from)
		wantValue(t, s, "k", "1") // half a second old
		time.Sleep(13 * time.Second / 2)
		for range 3 { // one of them triggers a refresh, and none waits
			wantValue(t, s, "k", "1")
		}
		time.Sleep(time.Second/2 + 1)
		wantValue(t, s, "k", "2")
		time.Sleep(13 * time.Second / 2)
		wantValue(t, s, "k", "2") // triggers the read that fails
		time.Sleep(time.Second - 2)
		wantValue(t, s, "k", "2") // until it is too old
		time.Sleep(time.Nanosecond)
		wantValue(t, s, "k", "4")
		if got := from.reads.Load(); got != 4 {
			t.Errorf("got %d reads, want 4", got)
		}
	})
}

// TestCacheCountsFromTheReadsStart checks that a value's age starts with its read.
func TestCacheCountsFromTheReadsStart(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	slow := &counted{answer: func(read int64) (string, error) { now = now.Add(1500 * time.Millisecond); return nth(read) }}
	s := newTestLookups(CacheConfig{TTL: 2 * time.Second, Now: func() time.Time { return now }}, slow)
	wantValue(t, s, "k", "1")
	now = now.Add(500 * time.Millisecond)
	wantValue(t, s, "k", "2")
}

func TestCacheDefaults(t *testing.T) {
	t.Parallel()
	got := CacheConfig{}.withDefaults()
	if got.TokenTTL != time.Second || got.TTL != 2*time.Second || got.Size != 10_000 || got.Bytes != 8<<20 || got.Now == nil {
		t.Fatalf("got %+v, want 1 s for tokens, 2 s for the rest, 10,000 entries of 8 MiB and a clock", got)
	}
}

func TestCacheSharesOneRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		from := &counted{answer: func(read int64) (string, error) { <-release; return nth(read) }}
		s := newTestLookups(CacheConfig{}, from)
		got := make(chan string, 20)
		first, giveUp := context.WithCancel(t.Context())
		gaveUp := make(chan error, 1)
		go func() { _, err := s.get(first, "k"); gaveUp <- err }()
		synctest.Wait()
		for range cap(got) {
			go func() { v, _ := s.get(t.Context(), "k"); got <- v }()
		}
		synctest.Wait()
		giveUp() // the first caller gives up; the others still get its result
		if err := <-gaveUp; !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that gave up: got %v, want its context's error", err)
		}
		close(release)
		for range cap(got) {
			if v := <-got; v != "1" {
				t.Errorf("got %q, want the one read's answer", v)
			}
		}
		if reads := from.reads.Load(); reads != 1 {
			t.Errorf("got %d reads, want 1", reads)
		}
	})
}

func TestCacheForgetsOne(t *testing.T) {
	t.Parallel()
	s := newTestLookups(CacheConfig{TTL: time.Hour}, &counted{answer: nth})
	wantValue(t, s, "a", "1")
	wantValue(t, s, "b", "2")
	s.forget("a")
	wantValue(t, s, "b", "2")
	wantValue(t, s, "a", "3")
}

// TestCacheForgetsWhatIsBeingRead invalidates during a read: the result may be stale, so it is neither cached nor
// shared.
func TestCacheForgetsWhatIsBeingRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		from := &counted{answer: func(read int64) (string, error) {
			if read == 1 {
				<-release
			}
			return nth(read)
		}}
		s := newTestLookups(CacheConfig{TTL: time.Hour}, from)
		early := make(chan string, 1)
		go func() { v, _ := s.get(t.Context(), "k"); early <- v }()
		synctest.Wait()
		s.forget("k")
		wantValue(t, s, "k", "2")
		close(release)
		if v := <-early; v != "1" {
			t.Errorf("the early caller: got %q, want %q", v, "1")
		}
		wantValue(t, s, "k", "2")
	})
}

func TestCacheForgetsFailures(t *testing.T) {
	t.Parallel()
	for why, failure := range map[string]error{"not there": apperr.ChatNotFound.New(), "failed": errors.New("broken")} {
		s := newTestLookups(CacheConfig{TTL: time.Hour}, &counted{answer: func(read int64) (string, error) {
			if read == 1 {
				return "", failure
			}
			return nth(read)
		}})
		if _, err := s.get(t.Context(), "k"); !errors.Is(err, failure) {
			t.Errorf("%s: got %v, want %v", why, err, failure)
		}
		wantValue(t, s, "k", "2")
		wantValue(t, s, "k", "2")
	}
}

func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	from := &counted{answer: nth}
	s := newTestLookups(CacheConfig{TTL: time.Hour, Size: 10}, from)
	for n := range 100 {
		wantValue(t, s, strconv.Itoa(n), strconv.Itoa(n+1))
	}
	if got := s.entries.Len(); got != 10 {
		t.Errorf("got %d entries, want 10", got)
	}
	wantValue(t, s, "99", "100")
	wantValue(t, s, "0", "101")
}

// A cache is bounded by bytes too: a large value displaces those that were used the longest ago, and one that has
// expired goes before any other.
func TestCacheIsBoundedByBytes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const kib = 1 << 10
		large := &counted{answer: func(int64) (string, error) { return strings.Repeat("x", kib), nil }}
		s := newTestLookups(CacheConfig{TTL: time.Minute, Bytes: 10 * kib}, large)
		for n := range 100 {
			wantValue(t, s, strconv.Itoa(n), strings.Repeat("x", kib))
		}
		if got := s.entries.Len(); got != 10 || s.bytes != 10*kib {
			t.Errorf("got %d entries of %d bytes, want 10 of %d", got, s.bytes, 10*kib)
		}
		s.forget("99")
		time.Sleep(time.Minute)
		wantValue(t, s, "100", strings.Repeat("x", kib))
		if got := s.entries.Len(); got != 1 || s.bytes != kib {
			t.Errorf("after the others have expired: got %d entries of %d bytes, want the new one", got, s.bytes)
		}
	})
}

// Only some reads of large values run at once: they are in memory before they are cached.
func TestCacheReadsAFewAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		from := &counted{answer: func(read int64) (string, error) { <-release; return nth(read) }}
		c := CacheConfig{}.withDefaults()
		s := newLookups(c, CachedApplication, c.TTL, requestCounter(nil), from.read, sizeOfText)
		for n := range 10 * readsAtOnce {
			go func() { _, _ = s.get(t.Context(), strconv.Itoa(n)) }()
		}
		synctest.Wait()
		if got := from.reads.Load(); got != readsAtOnce {
			t.Errorf("got %d reads at once, want %d", got, readsAtOnce)
		}
		close(release)
		synctest.Wait()
		if got := from.reads.Load(); got != 10*readsAtOnce {
			t.Errorf("got %d reads, want all", got)
		}
	})
}

// TestTwoCachesShareOneCounter covers several services in one process.
func TestTwoCachesShareOneCounter(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	for range 2 {
		c := CacheConfig{}.withDefaults()
		s := newLookups(c, CachedChat, c.TTL, requestCounter(registry), (&counted{answer: nth}).read, sizeOfText)
		wantValue(t, s, "k", "1")
		wantValue(t, s, "k", "1")
	}
	requests := requestCounter(registry)
	for _, result := range []string{"hit", "miss"} {
		if got := testutil.ToFloat64(requests.WithLabelValues(CachedChat, result)); got != 2 {
			t.Errorf("got %v of %s, want 2", got, result)
		}
	}
}

func BenchmarkCacheHit(b *testing.B) {
	s := newLookups(CacheConfig{}.withDefaults(), CachedChat, time.Hour, requestCounter(nil), func(context.Context, string) (chat.Chat, error) {
		return chat.Chat{ID: "k"}, nil
	}, sizeOfChat)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := s.get(b.Context(), "k"); err != nil {
				b.Fatal(err)
			}
		}
	})
}
