package redistest_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/parley-chat/parley/testkit/redistest"
	"github.com/parley-chat/parley/testkit/timetest"
)

func TestRedisServesAndComesBackOnItsAddress(t *testing.T) {
	t.Parallel()
	r := startRedis(t, "127.0.0.1:0")
	client := redisClient(t, r)
	if got, err := client.Set(t.Context(), "k", "v", 0).Result(); err != nil || got != "OK" {
		t.Fatalf("got %q, %v, want OK", got, err)
	}
	addr := client.Options().Addr
	r.Stop()
	r.Stop()
	if err := client.Ping(t.Context()).Err(); err == nil {
		t.Error("stopped: got an answer, want none")
	}
	startRedis(t, addr)
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Errorf("started again: got %v, want no error", err)
	}
}

// The engine has no clock of its own: without passTime keys would never expire.
func TestRedisLetsKeysExpire(t *testing.T) {
	t.Parallel()
	client := redisClient(t, startRedis(t, "127.0.0.1:0"))
	if err := client.Set(t.Context(), "k", "v", 300*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	if n := client.Exists(t.Context(), "k").Val(); n != 1 {
		t.Fatalf("at first: got %d keys, want 1", n)
	}
	timetest.Until(t, "the key expires", func() bool { return client.Exists(t.Context(), "k").Val() == 0 })
}

func TestRedisSaysThatItsAddressIsTaken(t *testing.T) {
	t.Parallel()
	client := redisClient(t, startRedis(t, "127.0.0.1:0"))
	if r, err := redistest.Start(client.Options().Addr); err == nil {
		r.Stop()
		t.Error("got a server, want an error")
	}
}

func startRedis(t *testing.T, addr string) *redistest.Redis {
	t.Helper()
	r, err := redistest.Start(addr)
	if err != nil {
		t.Fatalf("starting Redis: %v", err)
	}
	t.Cleanup(r.Stop)
	return r
}

func redisClient(t *testing.T, r *redistest.Redis) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(r.URL())
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}
