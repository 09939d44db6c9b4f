package e2e

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// natsUsers are the users of deploy/nats/nats-server.conf.
func natsUsers() []string {
	return []string{"client-api", "widget-api", "socket-gateway", "processor", "operator", "watcher"}
}

func passwordOf(user string) string { return "of-the-" + user }

// natsPasswords are the settings from which the server's configuration takes the passwords.
func natsPasswords() []string {
	var settings []string
	for _, user := range natsUsers() {
		settings = append(settings, "NATS_"+strings.ToUpper(strings.ReplaceAll(user, "-", "_"))+"_PASSWORD="+passwordOf(user))
	}
	return settings
}

// natsUser connects as one of the users.
func (f *fleet) natsUser(t *testing.T, user string) *nats.Conn {
	t.Helper()
	conn, err := nats.Connect(f.natsURL(user), nats.CustomInboxPrefix("_INBOX."+user), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	check(t, err)
	t.Cleanup(conn.Close)
	return conn
}

// allowed tells whether the server lets something be done on a subject: its refusal comes before its answer to the ping of a flush.
func allowed(t *testing.T, conn *nats.Conn, subject string, act func() error) bool {
	t.Helper()
	check(t, act())
	check(t, conn.FlushTimeout(limit))
	err := conn.LastError()
	return !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(strings.ToLower(err.Error()), `"`+strings.ToLower(subject)+`"`)
}

// permissions: every service did its work with its own user (the sessions before), none was refused anything, and none may do what
// is another one's.
func (f *fleet) permissions(t *testing.T) {
	for _, name := range f.services {
		if log := strings.ToLower(f.run[name].stderr.String()); strings.Contains(log, "permission") {
			t.Errorf("%s was refused something:\n%s", name, log)
		}
	}
	const id = "11111111-1111-4111-8111-111111111111"
	writes := map[string][]string{ // who may publish what
		"chat.in.message." + id + "." + id:            {"client-api"},
		"chat.in.push." + id + "." + id:               {"client-api"},
		"chat.in.visitor.registered." + id + "." + id: {"widget-api"},
		"chat.in.visitor.message." + id + "." + id:    {"widget-api"},
		"chat.reply." + id + "." + id:                 {"processor"},
		"chat.out.phone." + id:                        {"processor"},
		"chat.status." + id + "." + id:                {"widget-api", "socket-gateway", "processor"},
		"chat.dead.REPLIES.test":                      {"socket-gateway", "processor"},
		"chat.dead.INBOUND.test":                      {"processor"},
		"chat.anything":                               {},
		"$O.FILES.C.x":                                {"widget-api"},
		"$JS.API.STREAM.DELETE.INBOUND":               {},
		"$JS.API.STREAM.PURGE.INBOUND":                {},
		"$JS.API.STREAM.MSG.DELETE.REPLIES":           {},
		"$JS.API.CONSUMER.DELETE.INBOUND.nobody":      {"client-api", "processor"},
		"$JS.API.CONSUMER.MSG.NEXT.INBOUND.nobody":    {"client-api", "processor"},
		"$JS.API.CONSUMER.MSG.NEXT.REPLIES.nobody":    {"socket-gateway", "processor"},
		"$JS.ACK.INBOUND.nobody.1.1.1.1.0":            {"processor"},
	}
	reads := map[string][]string{ // who may subscribe to what
		"chat.>":                       {"watcher"},
		"chat.reply.>":                 {"watcher"},
		">":                            {},
		"_INBOX.client-api.>":          {"client-api", "watcher"},
		"_INBOX.>":                     {"watcher"},
		"parley.ask.origins.*":         {"widget-api"},
		"parley.invalidate.>":          {"client-api", "widget-api", "socket-gateway", "processor"},
		"parley.progress.INBOUND.*":    {"processor"},
		"$JS.API.>":                    {},
		"$JS.ACK.>":                    {},
		"$JS.EVENT.ADVISORY.API":       {},
		"parley.progress.REPLIES.name": {"socket-gateway", "processor"},
	}
	for _, name := range natsUsers() {
		conn := f.natsUser(t, name)
		for subject, may := range writes {
			got := allowed(t, conn, subject, func() error { return conn.Publish(subject, []byte("{}")) })
			if want := name == "operator" || slices.Contains(may, name); got != want {
				t.Errorf("%s publishing %s: got allowed %v, want %v", name, subject, got, want)
			}
		}
		for subject, may := range reads {
			var sub *nats.Subscription
			got := allowed(t, conn, subject, func() (err error) { sub, err = conn.SubscribeSync(subject); return err })
			_ = sub.Unsubscribe() // a refused one is gone
			if want := name == "operator" || slices.Contains(may, name); got != want {
				t.Errorf("%s subscribing to %s: got allowed %v, want %v", name, subject, got, want)
			}
		}
	}
	if _, err := nats.Connect("nats://" + f.addr["nats"]); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("got %v without a user, want a refusal", err)
	}
	if _, err := nats.Connect("nats://processor:wrong@" + f.addr["nats"]); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("got %v with a wrong password, want a refusal", err)
	}
}
