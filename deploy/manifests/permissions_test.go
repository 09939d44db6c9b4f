package manifests

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/proto-events/subject"
)

// patience bounds every wait for a server.
const patience = 15 * time.Second

// natsUsers returns the users of deploy/nats/accounts.conf.
func natsUsers() []string {
	return []string{"client-api", "widget-api", "socket-gateway", "processor", "panel", "operator", "watcher", "syncer"}
}

var natsPassword = regexp.MustCompile(`\$NATS_[A-Z_]+_PASSWORD`)

// accounts returns accounts.conf with each user's name as password.
func accounts(t testing.TB) string {
	t.Helper()
	return natsPassword.ReplaceAllStringFunc(string(read(t, "deploy/nats/accounts.conf")), func(variable string) string {
		user := strings.TrimSuffix(strings.TrimPrefix(variable, "$NATS_"), "_PASSWORD")
		return `"` + strings.ToLower(strings.ReplaceAll(user, "_", "-")) + `"`
	})
}

// startNATS starts nats-server with a configuration file.
func startNATS(t testing.TB, file string) *server.Server {
	t.Helper()
	options, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatalf("reading the configuration: %v", err)
	}
	options.Host, options.Port, options.StoreDir, options.NoLog, options.NoSigs = "127.0.0.1", server.RANDOM_PORT, t.TempDir(), true, true
	s, err := server.NewServer(options)
	if err != nil {
		t.Fatalf("configuring the server: %v", err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server did not start")
	}
	return s
}

// startParleyNATS starts nats-server with deploy/nats.
func startParleyNATS(t *testing.T) *server.Server {
	t.Helper()
	dir := t.TempDir()
	config := strings.ReplaceAll(string(read(t, "deploy/nats/nats-server.conf")), "$NATS_MAX_FILE_STORE", "10GB")
	for name, text := range map[string]string{"nats-server.conf": config, "accounts.conf": accounts(t)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return startNATS(t, filepath.Join(dir, "nats-server.conf"))
}

func natsConn(t *testing.T, s *server.Server, user string) *nats.Conn {
	t.Helper()
	prefix := user
	if user == "operator" {
		prefix = "parleyctl"
	}
	conn, err := nats.Connect(s.ClientURL(), nats.UserInfo(user, user), nats.CustomInboxPrefix("_INBOX."+prefix),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatalf("connecting as %s: %v", user, err)
	}
	t.Cleanup(conn.Close)
	return conn
}

func natsJetStream(t *testing.T, conn *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// applyStreams does the same as `parleyctl streams apply`, as the operator.
func applyStreams(t *testing.T, s *server.Server) jetstream.JetStream {
	t.Helper()
	operator := openBus(t, s, "operator", []string{}...)
	if _, err := operator.ApplyStreams(t.Context(), bus.StreamSettings{MaxBytes: 1 << 20, FilesMaxBytes: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	return natsJetStream(t, natsConn(t, s, "operator"))
}

// listener is a connection to an account with a subscription that records what arrives there.
type listener struct {
	conn *nats.Conn
	sub  *nats.Subscription
}

// listen subscribes to all subjects of a user's account except the server's internal ones.
func listen(t *testing.T, s *server.Server, user string) listener {
	t.Helper()
	conn := natsConn(t, s, user)
	sub, err := conn.SubscribeSync(">")
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.FlushTimeout(patience); err != nil {
		t.Fatal(err)
	}
	return listener{conn, sub}
}

// heard returns the subjects that have arrived. Each user has published before: the server keeps the order of one
// connection's messages, and the mark is the last one.
func (l listener) heard(t *testing.T, mark string) map[string]bool {
	t.Helper()
	heard := map[string]bool{}
	for {
		m, err := l.sub.NextMsg(patience)
		if err != nil {
			t.Fatalf("waiting for %s: %v", mark, err)
		}
		if m.Subject == mark {
			return heard
		}
		heard[m.Subject] = true
	}
}

func TestNATSPermissions(t *testing.T) {
	t.Parallel()
	s := startParleyNATS(t)
	const id = "11111111-1111-4111-8111-111111111111"
	writes := map[string][]string{ // the users whose messages arrive in the account of the streams
		"chat.in.message." + id + "." + id:                           {"client-api"},
		"chat.in.push." + id + "." + id:                              {"client-api"},
		"chat.in.visitor.registered." + id + "." + id:                {"widget-api"},
		"chat.in.visitor.message." + id + "." + id:                   {"widget-api"},
		"chat.reply." + id + "." + id:                                {"processor"},
		"chat.out.phone." + id:                                       {"processor"},
		"chat.part." + id + "." + id:                                 {"processor"},
		"chat.dead.PARTS.test":                                       {"socket-gateway", "processor"},
		"parley.stop." + id + "." + id + "." + id:                    {}, // goes from the Widget API to the processors
		"$JS.API.DIRECT.GET.PARTS":                                   {"socket-gateway", "watcher"},
		"$JS.API.CONSUMER.CREATE.PARTS.socket-gateway":               {"socket-gateway"},
		"$JS.ACK.PARTS.socket-gateway.1.1.1.1.0":                     {},
		"parley.position.PARTS.socket-gateway.7":                     {"socket-gateway"},
		"parley.position.REPLIES.recorder.7":                         {},
		"parley.position.REPLIES.lost":                               {"client-api", "widget-api", "socket-gateway", "processor", "panel"},
		"$JS.API.DIRECT.GET.POSITIONS.parley.position.REPLIES.lost":  {"client-api", "widget-api", "socket-gateway", "processor", "watcher"},
		"$JS.API.DIRECT.GET.POSITIONS.parley.position.REPLIES.x.7":   {"socket-gateway", "watcher"},
		"$JS.API.DIRECT.GET.POSITIONS":                               {"socket-gateway", "watcher"},
		"chat.status." + id + "." + id:                               {"widget-api", "socket-gateway", "processor"},
		"chat.dead.REPLIES.test":                                     {"socket-gateway", "processor"},
		"chat.dead.INBOUND.test":                                     {"processor"},
		"parley.revocation.x":                                        {},
		"parley.members.REPLIES.socket-gateway":                      {}, // stays with the replicas
		"parley.hello.socket-gateway":                                {},
		"parley.ready.processor":                                     {}, // parleyctl doctor asks
		"chat.anything":                                              {},
		"parley.invalidate.accessToken.x":                            {},
		"parley.invalidate.visitor.x":                                {}, // goes to the other services
		"parley.progress.INBOUND.recorder":                           {},
		"parley.skip.INBOUND.bot":                                    {},
		"$O.FILES.C.x":                                               {"widget-api"},
		"_INBOX.client-api.x":                                        {},
		"_INBOX.socket-gateway.x":                                    {},
		"_INBOX.parleyctl.x":                                         {"syncer"},
		"_INBOX.panel.x":                                             {"syncer"},
		"parley.sync.SENDS":                                          {"client-api"},
		"parley.sync.REVOCATIONS":                                    {},
		"$JS.API.DIRECT.GET.INBOUND":                                 {"processor", "watcher"},
		"$JS.API.DIRECT.GET.SENDS":                                   {"client-api", "processor", "watcher"},
		"$JS.API.DIRECT.GET.REPLIES":                                 {"widget-api", "socket-gateway", "processor", "watcher"},
		"$JS.API.DIRECT.GET.DEAD":                                    {"processor", "watcher"},
		"$JS.API.DIRECT.GET.OBJ_FILES":                               {"widget-api", "watcher"},
		"$JS.API.STREAM.MSG.GET.INBOUND":                             {"watcher"},
		"$JS.API.STREAM.MSG.DELETE.OBJ_FILES":                        {},
		"$JS.API.STREAM.RESTORE.INBOUND":                             {},
		"$JS.API.STREAM.SNAPSHOT.INBOUND":                            {},
		"$JS.API.CONSUMER.CREATE.REPLIES.socket-gateway":             {"socket-gateway", "processor"},
		"$JS.API.CONSUMER.CREATE.REVOCATIONS.any":                    {"socket-gateway"},
		"$JS.API.CONSUMER.CREATE.STATUS.socket-gateway":              {"processor"},
		"$JS.API.CONSUMER.CREATE.INBOUND.recorder.chat.in.visitor.x": {"processor"},
		"$JS.API.CONSUMER.CREATE.INBOUND.socket-gateway":             {"processor"},
		"$JS.API.CONSUMER.CREATE.OBJ_FILES.recorder":                 {},
		"$JS.API.CONSUMER.CREATE.OBJ_FILES.recorder.$O.FILES.x":      {},
		"$JS.API.CONSUMER.MSG.NEXT.OBJ_FILES.recorder":               {},
		"$JS.API.CONSUMER.DURABLE.CREATE.INBOUND.bot":                {},
		"$JS.API.CONSUMER.DELETE.REPLIES.recorder":                   {},
		"$JS.API.CONSUMER.DELETE.REPLIES.socket-gateway":             {},
		"$JS.API.CONSUMER.DELETE.REVOCATIONS.x":                      {"socket-gateway"},
		"$JS.API.CONSUMER.MSG.NEXT.INBOUND.bot":                      {"processor"},
		"$JS.API.CONSUMER.MSG.NEXT.SENDS.dispatcher-7":               {"processor"},
		"$JS.API.CONSUMER.MSG.NEXT.OUTBOUND.x":                       {"processor"},
		"$JS.ACK.INBOUND.bot.1.1.1.1.0":                              {"processor"},
		"$JS.ACK.REPLIES.recorder.1.1.1.1.0":                         {"processor"},
		"$JS.ACK.REPLIES.socket-gateway.1.1.1.1.0":                   {"processor"},
		"$JS.API.STREAM.PURGE.OBJ_FILES":                             {"widget-api"},
	}
	for _, stream := range (bus.StreamSettings{FilesMaxBytes: 1}).Streams() {
		for _, act := range []string{"CREATE", "UPDATE", "DELETE"} {
			writes["$JS.API.STREAM."+act+"."+stream.Name] = nil
		}
		if stream.Name != bus.FilesStream {
			writes["$JS.API.STREAM.PURGE."+stream.Name] = nil
			writes["$JS.API.STREAM.MSG.DELETE."+stream.Name] = nil
		}
	}
	for subject := range writes {
		if panelMayPublish(subject) {
			writes[subject] = append(writes[subject], "panel")
		}
	}
	for _, user := range natsUsers() {
		streams, conn := listen(t, s, "operator"), natsConn(t, s, user)
		mark := "chat.status.a.b" // of those that may publish it
		publish := func(subject string) {
			if err := conn.Publish(subject, []byte("{}")); err != nil {
				t.Fatal(err)
			}
		}
		for subject := range writes {
			publish(subject)
		}
		if err := conn.FlushTimeout(patience); err != nil {
			t.Fatal(err)
		}
		if err := streams.conn.Publish(mark, nil); err != nil {
			t.Fatal(err)
		}
		heard := streams.heard(t, mark)
		for subject, may := range writes {
			if got, want := heard[subject], user == "operator" || slices.Contains(may, user); got != want {
				t.Errorf("%s publishing %s: got %v in the account of the streams, want %v", user, subject, got, want)
			}
		}
	}
	if _, err := nats.Connect(s.ClientURL()); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("got %v without a user, want a refusal", err)
	}
	if _, err := nats.Connect(s.ClientURL(), nats.UserInfo("processor", "wrong")); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("got %v with a wrong password, want a refusal", err)
	}
}

// Each message is received by the right accounts, once: a service receives its own account's messages, invalidations,
// and the requests it answers.
func TestNATSSubscriptions(t *testing.T) {
	t.Parallel()
	s := startParleyNATS(t)
	everyone := []string{"client-api", "widget-api", "socket-gateway", "processor"}
	for _, c := range []struct {
		from, subject string
		heardBy       []string
	}{
		{"operator", "parley.invalidate.accessToken.x", append([]string{"operator", "panel"}, everyone...)},
		{"operator", "parley.progress.INBOUND.bot", []string{"operator", "processor"}},
		{"operator", "parley.progress.REPLIES.recorder", []string{"operator", "processor"}},
		{"operator", "parley.progress.REPLIES.socket-gateway", []string{"operator", "processor", "socket-gateway"}},
		{"operator", "parley.progress.PARTS.socket-gateway", []string{"operator", "processor", "socket-gateway"}},
		{"operator", "parley.skip.INBOUND.bot", []string{"operator", "processor"}},
		{"operator", "parley.ask.bot", []string{"operator", "processor"}},
		{"panel", "parley.ask.bot", []string{"operator", "processor"}},
		{"widget-api", "parley.ask.bot", []string{"widget-api"}},
		{"panel", "parley.ask.tools", []string{"operator", "processor"}},
		{"operator", "parley.ready.client-api", []string{"operator", "client-api"}},
		{"operator", "parley.ready.widget-api", []string{"operator", "widget-api"}},
		{"operator", "parley.ready.socket-gateway", []string{"operator", "socket-gateway"}},
		{"operator", "parley.ready.processor", []string{"operator", "processor"}},
		{"operator", "parley.ready.panel", []string{"operator", "panel"}},
		{"operator", "parley.stop.a.v.m", []string{"operator"}},
		{"widget-api", "parley.stop.a.v.m", []string{"widget-api", "processor"}},
		{"socket-gateway", "parley.stop.a.v.m", []string{"socket-gateway"}},
		{"operator", "parley.skip.REPLIES.socket-gateway", []string{"operator", "processor", "socket-gateway"}},
		{"operator", "chat.reply.a.v", []string{"operator", "watcher"}},
		{"widget-api", "parley.invalidate.visitor.x", everyone},
		{"widget-api", "parley.invalidate.visitor_keys.x", everyone},
		{"widget-api", "parley.invalidate.accessToken.x", []string{"widget-api"}},
		{"socket-gateway", "parley.ask.origins.x", []string{"socket-gateway", "widget-api"}},
		{"socket-gateway", "parley.invalidate.visitor.x", []string{"socket-gateway"}},
		{"socket-gateway", "parley.members.REPLIES.socket-gateway", []string{"socket-gateway"}},
		{"socket-gateway", "parley.hello.socket-gateway", []string{"socket-gateway"}},
		{"processor", "parley.members.INBOUND.bot", []string{"processor"}},
		{"processor", "chat.reply.a.v", []string{"processor", "operator", "watcher"}},
		{"client-api", "chat.in.push.a.b", []string{"client-api", "operator", "watcher"}},
		{"client-api", "_INBOX.socket-gateway.x", []string{"client-api"}},
		{"client-api", "parley.ask.origins.x", []string{"client-api"}},
		{"socket-gateway", "parley.ask.reading.a.v", []string{"socket-gateway", "widget-api"}},
		{"socket-gateway", "chat.typing.visitor.a.v", []string{"socket-gateway", "operator", "watcher", "panel"}},
		{"socket-gateway", "chat.typing.support.a.v", []string{"socket-gateway"}},
		{"processor", "chat.typing.support.a.v", []string{"processor", "operator", "watcher", "panel", "socket-gateway"}},
		{"processor", "chat.typing.visitor.a.v", []string{"processor"}},
		{"panel", "chat.typing.support.a.v", []string{"operator", "watcher", "panel", "socket-gateway"}},
		{"panel", "chat.read.support.a.v", []string{"operator", "watcher", "panel", "socket-gateway"}},
		{"widget-api", "chat.read.visitor.a.v", []string{"widget-api", "operator", "watcher", "panel", "socket-gateway"}},
		{"widget-api", "chat.typing.visitor.a.v", []string{"widget-api"}},
		{"client-api", "parley.sync.SENDS", []string{"client-api", "operator", "syncer"}},
		{"client-api", "parley.sync.REPLIES", []string{"client-api"}},
		{"panel", "parley.sync.REVOCATIONS", []string{"operator", "syncer"}},
	} {
		var from *nats.Conn
		heard := map[string]listener{}
		for _, user := range natsUsers() {
			conn := natsConn(t, s, user)
			if user == c.from {
				from = natsConn(t, s, user)
			}
			pattern := ">"
			switch user {
			case "watcher":
				pattern = "chat.>"
			case "syncer":
				pattern = "parley.sync.*"
			case "panel":
				pattern = "parley.invalidate.>"
				if strings.HasPrefix(c.subject, "parley.ready.") {
					pattern = "parley.ready.panel"
				}
				for _, signals := range []string{"chat.typing.", "chat.read."} {
					if strings.HasPrefix(c.subject, signals) {
						pattern = signals + ">"
					}
				}
			}
			sub, err := conn.SubscribeSync(pattern)
			if err != nil {
				t.Fatal(err)
			}
			if err := conn.FlushTimeout(patience); err != nil {
				t.Fatal(err)
			}
			heard[user] = listener{conn, sub}
		}
		if err := from.Publish(c.subject, nil); err != nil {
			t.Fatal(err)
		}
		if err := from.FlushTimeout(patience); err != nil { // the server has passed it on
			t.Fatal(err)
		}
		for user, l := range heard {
			if err := l.conn.FlushTimeout(patience); err != nil {
				t.Fatal(err)
			}
			got := 0
			for n, _, _ := l.sub.Pending(); n > 0; n-- {
				if m, err := l.sub.NextMsg(patience); err == nil && m.Subject == c.subject {
					got++
				}
			}
			if want := slices.Contains(c.heardBy, user); (got == 1) != want || got > 1 {
				t.Errorf("%s publishes %s: received %d times by %s, want it received: %v", c.from, c.subject, got, user, want)
			}
			l.conn.Close()
		}
	}
}

// One of the gateways receives each signal, whichever account publishes it.
func TestSignalsReachOneGateway(t *testing.T) {
	t.Parallel()
	s := startParleyNATS(t)
	const each = 20
	var taken atomic.Int64
	for range 2 {
		conn := natsConn(t, s, "socket-gateway")
		for _, filter := range []string{subject.AllSupportTyping, subject.AllReadCursors} {
			if _, err := conn.QueueSubscribe(filter, "socket-gateway", func(*nats.Msg) { taken.Add(1) }); err != nil {
				t.Fatal(err)
			}
		}
		if err := conn.FlushTimeout(patience); err != nil {
			t.Fatal(err)
		}
	}
	want := int64(0)
	for user, subj := range map[string]string{"panel": subject.Typing(subject.SideSupport, "a", "v"), "processor": subject.Typing(subject.SideSupport, "a", "v"), "widget-api": subject.ReadCursor(subject.SideVisitor, "a", "v")} {
		conn := natsConn(t, s, user)
		for range each {
			if err := conn.Publish(subj, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := conn.FlushTimeout(patience); err != nil {
			t.Fatal(err)
		}
		want += each
	}
	for deadline := time.Now().Add(patience); taken.Load() < want && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
	}
	if got := taken.Load(); got != want {
		t.Errorf("got %d signals at the gateways, want %d", got, want)
	}
}

// panelMayPublish lists what the panel does for operators and agents: it writes events, deletes messages of an erasure,
// and reads everything, but cannot change a stream's configuration.
func panelMayPublish(subject string) bool {
	for _, prefix := range []string{
		"chat.", "parley.invalidate.", "parley.revocation.", "parley.progress.", "parley.sync.", "_INBOX.parleyctl.", "$O.FILES.", "$JS.API.DIRECT.GET.", "$JS.API.STREAM.MSG.GET.",
		"$JS.API.STREAM.MSG.DELETE.", "$JS.API.STREAM.PURGE.", "$JS.API.CONSUMER.CREATE.", "$JS.API.CONSUMER.DELETE.", "$JS.API.CONSUMER.MSG.NEXT.",
	} {
		if strings.HasPrefix(subject, prefix) {
			return true
		}
	}
	return false
}

// A compromised service cannot change the streams.
func TestServicesCannotTouchStreams(t *testing.T) {
	t.Parallel()
	s := startParleyNATS(t)
	operator := applyStreams(t, s)
	settings := bus.StreamSettings{MaxBytes: 1 << 20, FilesMaxBytes: 1 << 20}
	for _, user := range []string{"client-api", "widget-api", "socket-gateway", "processor", "panel"} {
		js, service := natsJetStream(t, natsConn(t, s, user)), openBus(t, s, user, []string{}...)
		bent := settings.Streams()[1]
		bent.RePublish = &jetstream.RePublish{Source: ">", Destination: "spy.>"}
		for act, try := range map[string]func(ctx context.Context) error{
			"create": func(ctx context.Context) error {
				_, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "SPY", Sources: []*jetstream.StreamSource{{Name: subject.Inbound}}})
				return err
			},
			"update": func(ctx context.Context) error { _, err := js.UpdateStream(ctx, bent); return err },
			"delete": func(ctx context.Context) error { return js.DeleteStream(ctx, subject.Inbound) },
			"apply": func(ctx context.Context) error {
				_, err := service.ApplyStreams(ctx, bus.StreamSettings{MaxBytes: 2 << 20})
				return err
			},
		} {
			// the server does not reply to rejected requests
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			if err := try(ctx); err == nil {
				t.Errorf("%s may %s streams", user, act)
			}
			cancel()
		}
	}
	changes, err := openBus(t, s, "operator", []string{}...).CompareStreams(t.Context(), settings)
	if err != nil || slices.ContainsFunc(changes, func(c bus.StreamChange) bool { return !c.None() }) {
		t.Errorf("got %+v, %v, want the streams as they were", changes, err)
	}
	if _, err := operator.Stream(t.Context(), "SPY"); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("got %v, want no other stream", err)
	}
}

// A service that answers requests cannot be made to send its answer to a subject that the requester may not write to.
func TestAnswersGoToInboxesOnly(t *testing.T) {
	t.Parallel()
	s := startParleyNATS(t)
	operator := applyStreams(t, s)
	gateway, widget := natsConn(t, s, "socket-gateway"), natsConn(t, s, "widget-api")
	answered := make(chan error, 3)
	if _, err := widget.Subscribe("parley.ask.origins.*", func(m *nats.Msg) { answered <- m.Respond([]byte(`{"found":true}`)) }); err != nil {
		t.Fatal(err)
	}
	if err := widget.FlushTimeout(patience); err != nil {
		t.Fatal(err)
	}
	if _, err := operator.Publish(t.Context(), "chat.in.visitor.message.a.v", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if _, err := gateway.Request("parley.ask.origins.app", nil, patience); err != nil {
		t.Errorf("a regular request: got %v, want an answer", err)
	}
	for _, reply := range []string{purgeInbound, "$JS.API.STREAM.PURGE.OBJ_FILES"} {
		if err := gateway.PublishRequest("parley.ask.origins.app", reply, nil); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		<-answered
	}
	if err := widget.FlushTimeout(patience); err != nil {
		t.Fatal(err)
	}
	stream, err := operator.Stream(t.Context(), subject.Inbound)
	if err != nil || stream.CachedInfo().State.Msgs != 1 {
		t.Errorf("got %+v, %v, want the event to exist", stream, err)
	}
}
