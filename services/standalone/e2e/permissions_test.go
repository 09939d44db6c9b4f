package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// natsUsers are the users of deploy/nats/accounts.conf.
func natsUsers() []string {
	return []string{"client-api", "widget-api", "socket-gateway", "processor", "panel", "operator", "watcher", "syncer"}
}

func passwordOf(user string) string { return "of" + strings.ReplaceAll(user, "-", "") }

// natsPasswords are the settings with the passwords of the NATS configuration, and the streams' storage limits.
func natsPasswords() []string {
	settings := []string{"NATS_MAX_FILE_STORE=" + natsMaxFileStore}
	for _, user := range natsUsers() {
		settings = append(settings, "NATS_"+strings.ToUpper(strings.ReplaceAll(user, "-", "_"))+"_PASSWORD="+passwordOf(user))
	}
	return settings
}

// redisPasswords are the settings with the passwords for deploy/redis/start.sh, and the path of its users file.
func redisPasswords(dir string) []string {
	settings := []string{"TMPDIR=" + dir}
	for _, user := range []string{"client-api", "widget-api", "socket-gateway", "panel", "processor", "operator"} {
		settings = append(settings, "REDIS_"+strings.ToUpper(strings.ReplaceAll(user, "-", "_"))+"_PASSWORD="+passwordOf(user))
	}
	return settings
}

// permissions checks that no service was refused a permission: all have worked with their own users in the
// sessions before. The tests of deploy/manifests check what each user is refused.
func (f *deployment) permissions(t *testing.T) {
	for _, name := range f.services {
		// The first two are NATS's errors if a service's account does not import a subject, the last is Redis's.
		log := strings.ToLower(f.run[name].stderr.String())
		refused := func(words string) bool { return strings.Contains(log, words) }
		if slices.ContainsFunc([]string{"no responders", "no stream for the subject", "permission", "noperm"}, refused) {
			t.Errorf("%s was refused something:\n%s", name, log)
		}
	}
}

// operator returns parleyctl with the operator's user.
func (f *deployment) operator(t *testing.T) *operator {
	env := []string{"NATS_URL=" + f.natsURL("operator"), "SECRETS_KEY_FILE=" + f.Secrets}
	return &operator{t: t, path: program(t, "parleyctl"), env: append(env, f.storeSettings()...)}
}

// operatorTraces asks the processes of each consumer about a message: requests that cross from the streams'
// account into the services'.
func (f *deployment) operatorTraces(t *testing.T) {
	o, v := f.operator(t), register(t, f.place, f.widgetAPI(t))
	chats := ask[[]struct{ ID string }](o, "chats", "list", "--app", f.AppID, "--email", v.email)
	if len(chats) != 1 {
		t.Fatalf("got %+v, want the visitor's chat", chats)
	}
	accepted := want[sent](t, http.StatusOK, f.clientAPI(t).call(t, http.MethodPost, "/message/send",
		map[string]any{"chatId": chats[0].ID, "type": "TEXT", "data": map[string]string{"text": "traced"}}, accessToken(f.AccessToken)))
	eventually(t, "the trace is complete", func() error { return traceComplete(o, accepted.MessageID) })
}

// revocation revokes a visitor's tokens, and logs how long it takes until every replica has ended the sockets
// and refuses the tokens.
func (f *deployment) revocation(t *testing.T) {
	o, v := f.operator(t), register(t, f.place, f.widgetAPI(t))
	var sockets []*socket
	for _, name := range f.services {
		if strings.HasPrefix(name, "gateway") {
			sockets = append(sockets, connected(t, "http://"+f.addr[name], v.token, "websocket"))
		}
	}
	chats := ask[[]struct{ ChatUserID string }](o, "chats", "list", "--app", f.AppID, "--email", v.email)
	if len(chats) != 1 {
		t.Fatalf("got %+v, want the visitor's chat", chats)
	}
	began := time.Now()
	o.run("visitors", "revoke", chats[0].ChatUserID, "--yes")
	t.Logf("parleyctl took %v", time.Since(began).Round(time.Millisecond))
	for n, s := range sockets {
		s.await(t, "disconnect")
		t.Logf("the socket on gateway %d had ended %v after parleyctl was started", n+1, time.Since(began).Round(time.Millisecond))
	}
	eventually(t, "the token is refused", func() error {
		if got := v.api.call(t, http.MethodGet, "/message", nil, bearer(v.token)); got.Status != http.StatusUnauthorized {
			return fmt.Errorf("got %d, want 401", got.Status)
		}
		return nil
	})
	t.Logf("the Widget API refused the token %v after parleyctl was started", time.Since(began).Round(time.Millisecond))
}
