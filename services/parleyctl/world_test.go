package parleyctl_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/services/parleyctl"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait of these tests, far above the time that any of them takes.
const patience = 30 * time.Second

const (
	companyID  = "c0000000-0000-4000-8000-000000000001"
	appID      = "a0000000-0000-4000-8000-000000000001"
	templateID = "e0000000-0000-4000-8000-000000000001"
)

// noon is the operator's clock.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// world is a NATS server and a store, and a service's cache with invalidation.
type world struct {
	t       *testing.T
	bus     *bus.Bus
	store   store.Store
	cache   *store.Cache
	natsURL string
	env     map[string]string
	now     func() time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	path := storetest.Path(t)
	w := &world{t: t, natsURL: bustest.Start(t).URL(), now: func() time.Time { return noon }}
	w.env = map[string]string{"NATS_URL": w.natsURL, "SQLITE_PATH": path, "SECRETS_KEY_FILE": storetest.KeyFile(t)}
	w.bus = bustest.Open(t, w.natsURL)
	w.store = storetest.OpenAt(t, path)
	// expires only by invalidation
	w.cache = store.NewCache(w.store, store.CacheConfig{TokenTTL: time.Hour, TTL: time.Hour})
	stop, err := w.bus.RPC().OnInvalidate(w.cache.Forget)
	w.must(err)
	t.Cleanup(stop)
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// result is the result of a command line.
type result struct {
	t           *testing.T
	args        string
	code        int
	out, errors string
}

func (w *world) ctl(args ...string) result { w.t.Helper(); return w.ctlIn("", false, args...) }

func (w *world) ctlIn(in string, interactive bool, args ...string) result {
	w.t.Helper()
	var out, errors strings.Builder
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	code := parleyctl.Run(ctx, args, parleyctl.Terminal{
		In: strings.NewReader(in), Out: &out, Err: &errors, Interactive: interactive,
		Getenv: func(name string) string { return w.env[name] }, Now: w.now,
	})
	return result{w.t, strings.Join(args, " "), code, out.String(), errors.String()}
}

// done expects success and returns the output.
func (r result) done() string {
	r.t.Helper()
	if r.code != parleyctl.ExitOK {
		r.t.Fatalf("%s: got code %d, %s", r.args, r.code, r.errors)
	}
	return r.out
}

// prints expects this output, without trailing blanks.
func (r result) prints(want string) {
	r.t.Helper()
	got := r.done()
	if trimmed(got) != trimmed(want) {
		r.t.Errorf("%s: got\n%s\nwant\n%s", r.args, got, want)
	}
}

func trimmed(s string) string {
	lines := strings.Split(strings.Trim(s, "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// fails expects this exit code and one line with this text.
func (r result) fails(code int, text string) {
	r.t.Helper()
	line := strings.TrimSuffix(r.errors, "\n")
	if r.code != code || !strings.Contains(line, text) || strings.Contains(line, "\n") || !strings.HasPrefix(line, "parleyctl: ") || r.out != "" {
		r.t.Errorf("%s: got code %d, output %q and %q, want code %d and one line with %q", r.args, r.code, r.out, r.errors, code, text)
	}
}

// decoded decodes the JSON output of a command.
func decoded[T any](r result) (v T) {
	r.t.Helper()
	if err := json.Unmarshal([]byte(r.done()), &v); err != nil {
		r.t.Fatalf("%s: %v in %s", r.args, err, r.out)
	}
	return v
}

// object is any JSON object.
type object = map[string]any

func (w *world) file(content string) string {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "file")
	w.must(os.WriteFile(path, []byte(content), 0o600))
	return path
}

// seed creates a company with an application and a template.
func (w *world) seed() {
	w.t.Helper()
	w.must(w.store.PutCompany(w.t.Context(), chat.Company{ID: companyID, Name: "Acme"}))
	w.must(w.store.PutApplication(w.t.Context(), chat.Application{
		ID: appID, CompanyID: companyID, Provider: chat.ProviderWidget, BotName: "Polly", Name: "Shop", WidgetConfigs: []byte(`{}`),
	}))
	w.must(w.store.PutTemplate(w.t.Context(), chat.MessageTemplate{
		ID: templateID, CompanyID: companyID, Name: "hello", Status: chat.TemplatePending, Text: "Hello",
	}))
}

// open opens a chat of a new visitor.
func (w *world) open(v chat.Visitor, channel chat.Channel, at time.Time) chat.Chat {
	w.t.Helper()
	v.CompanyID = companyID
	if v.ID == "" {
		v.ID = uuid.NewString()
	}
	registered, err := w.store.Register(w.t.Context(), store.Registration{Visitor: v})
	v = registered.Visitor
	w.must(err)
	c, _, err := w.store.OpenChat(w.t.Context(), v, store.NewChat{Channel: channel, Now: at})
	w.must(err)
	return c
}

// message returns a text message with an id of its time.
func message(at time.Time, text string, fromSupport bool) chat.Message {
	sender := "Ada"
	if fromSupport {
		sender = "Polly"
	}
	return chat.Message{
		ID: uuid.Must(uuid.NewV7()).String(), CreatedAt: at.UTC().Truncate(time.Millisecond), Type: chat.Text,
		Data: []byte(`{"text":` + string(chat.AppendString(nil, text)) + `}`), NameOfSender: sender, IsFromSupport: fromSupport,
	}
}
