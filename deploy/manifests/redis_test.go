package manifests

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/parley-chat/parley/testkit/needs"
	"github.com/parley-chat/parley/testkit/nettest"
)

// startRedis starts redis-server with deploy/redis; each user's password is its name with the prefix p.
func startRedis(t *testing.T) (addr string) {
	t.Helper()
	needs.Program(t, "redis-server")
	addr = nettest.Addr(t)
	host, port, _ := strings.Cut(addr, ":")
	dir := t.TempDir()
	c := exec.CommandContext(t.Context(), filepath.Join(root, "deploy/redis/start.sh"), "--bind", host, "--port", port, "--dir", dir)
	c.Env = append(os.Environ(), "TMPDIR="+dir, "REDIS_CLIENT_API_PASSWORD=pclientapi", "REDIS_WIDGET_API_PASSWORD=pwidgetapi",
		"REDIS_SOCKET_GATEWAY_PASSWORD=psocketgateway", "REDIS_PANEL_PASSWORD=ppanel", "REDIS_PROCESSOR_PASSWORD=pprocessor", "REDIS_OPERATOR_PASSWORD=poperator")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	anybody := redis.NewClient(&redis.Options{Addr: addr})
	defer anybody.Close()
	for deadline := time.Now().Add(patience); anybody.Ping(t.Context()).Err() != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("Redis did not start, or rejects health checks")
		}
	}
	return addr
}

// Each Redis user has access only to the keys, channels and commands of its service.
func TestRedisPermissions(t *testing.T) {
	t.Parallel()
	addr := startRedis(t)
	commands := map[string][]any{
		"count":             {"eval", "redis.call('TIME') redis.call('GET', KEYS[1]) return redis.call('SET', KEYS[1], '1', 'PX', 1000)", 1, "parley:rate:token:x"},
		"count reports":     {"eval", "redis.call('TIME') redis.call('GET', KEYS[1]) return redis.call('SET', KEYS[1], '1', 'PX', 1000)", 1, "parley:rate:recovery-reports:x"},
		"register":          {"set", "parley:gateway:x", "addr", "EX", 15},
		"look up":           {"get", "parley:gateway:x"},
		"leave":             {"del", "parley:gateway:x"},
		"show a visitor":    {"set", "parley:presence:visitor:x", "on gateway", "EX", 60},
		"see a visitor":     {"get", "parley:presence:visitor:x"},
		"show agents":       {"set", "parley:presence:agents:x", "on panel", "EX", 60},
		"see agents":        {"get", "parley:presence:agents:x"},
		"emit":              {"publish", "socket.io#/message#room#", "x"},
		"emit sharded":      {"spublish", "socket.io#/message#room#", "x"},
		"ask the others":    {"publish", "socket.io-request#/message#", "x"},
		"another's channel": {"publish", "other", "x"},
		"another's key":     {"get", "other"},
		"touch a counter":   {"get", "parley:rate:token:x"},
		"wipe in a script":  {"eval", "return redis.call('FLUSHALL')", 0},
		"wipe":              {"flushall"},
		"list keys":         {"keys", "*"},
		"configure":         {"config", "get", "*"},
		"users":             {"acl", "list"},
		"listen to all":     {"monitor"},
		"end others":        {"client", "list"},
	}
	may := map[string][]string{
		"client-api":     {"count", "count reports", "touch a counter"},
		"widget-api":     {"count", "count reports", "touch a counter", "see agents"},
		"panel":          {"count", "count reports", "touch a counter", "see a visitor", "show agents", "see agents"},
		"processor":      {"count", "count reports", "touch a counter"},
		"socket-gateway": {"count reports", "show a visitor", "see a visitor", "register", "look up", "leave", "emit", "emit sharded", "ask the others"},
		"default":        nil,
	}
	for user, allowed := range may {
		options := &redis.Options{Addr: addr, Username: user, Password: "p" + strings.ReplaceAll(user, "-", "")}
		if user == "default" {
			options = &redis.Options{Addr: addr}
		}
		client := redis.NewClient(options)
		for act, command := range commands {
			err := client.Do(t.Context(), command...).Err()
			refused := err != nil && !errors.Is(err, redis.Nil) && strings.Contains(err.Error(), "NOPERM") ||
				err != nil && strings.Contains(err.Error(), "can't run this command")
			want := true
			for _, a := range allowed {
				want = want && a != act
			}
			if refused != want {
				t.Errorf("%s, to %s: got %v, want rejected %v", user, act, err, want)
			}
		}
		for channel, want := range map[string]bool{"socket.io#/message#room#": user == "socket-gateway", "other": false} {
			sub := client.Subscribe(t.Context(), channel)
			if _, err := sub.Receive(t.Context()); (err == nil) != want {
				t.Errorf("%s, subscribing to %s: got %v, want allowed %v", user, channel, err, want)
			}
			_ = sub.Close()
		}
		_ = client.Close()
	}
	wrong := redis.NewClient(&redis.Options{Addr: addr, Username: "client-api", Password: "wrong"})
	defer wrong.Close()
	if err := wrong.Ping(t.Context()).Err(); err == nil {
		t.Error("authenticated with a wrong password")
	}
}
