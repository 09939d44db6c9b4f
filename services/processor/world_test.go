package processor_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/service"
	"github.com/parley-chat/parley/pkg/service/storage"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/services/processor"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/servicetest"
	"github.com/parley-chat/parley/testkit/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, bustest.LeftByNATS()...) }

// world is a NATS server and a store with a company, an application, a template and a visitor with an open chat.
type world struct {
	t         testing.TB
	natsURL   string
	storePath string
	bus       *bus.Bus
	store     store.Store

	company     chat.Company
	application chat.Application
	template    chat.MessageTemplate
	visitor     chat.Visitor
	chat        chat.Chat
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, natsURL: bustest.Start(t).URL(), storePath: storetest.Path(t)}
	w.bus = bustest.Open(t, w.natsURL)
	w.store = storetest.OpenAt(t, w.storePath)
	w.seed()
	return w
}

func (w *world) seed() {
	w.t.Helper()
	w.company = chat.Company{ID: uuid.NewString(), Name: "Acme"}
	w.application = chat.Application{
		ID: uuid.NewString(), CompanyID: w.company.ID, Provider: chat.ProviderWidget, BotName: "Nora", Name: "Acme help",
		WidgetConfigs: json.RawMessage(`{}`),
	}
	w.template = chat.MessageTemplate{
		ID: uuid.NewString(), CompanyID: w.company.ID, Name: "order_ready", Status: chat.TemplateApproved,
		Text:       "Hello {{username}}, your {{item}} is ready.",
		Parameters: []chat.TemplateParameter{{Name: "username", Default: "there"}, {Name: "item", Default: "order"}},
	}
	ctx := w.t.Context()
	w.must(w.store.PutCompany(ctx, w.company))
	w.must(w.store.PutApplication(ctx, w.application))
	w.must(w.store.PutTemplate(ctx, w.template))
	w.visitor, w.chat = w.open(chat.Visitor{FirstName: "Sara", AppID: w.application.ID}, chat.ChannelWidget)
}

// open creates a visitor and their chat.
func (w *world) open(v chat.Visitor, channel chat.Channel) (chat.Visitor, chat.Chat) {
	w.t.Helper()
	v.ID, v.CompanyID = uuid.NewString(), w.company.ID
	registered, err := w.store.Register(w.t.Context(), store.Registration{Visitor: v})
	visitor := registered.Visitor
	w.must(err)
	c, _, err := w.store.OpenChat(w.t.Context(), visitor, store.NewChat{Channel: channel, Now: now()})
	w.must(err)
	return visitor, c
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// config is that of a processor in this world: a recorder, a dispatcher and the demo bot.
func (w *world) config() processor.Config {
	return processor.Config{
		Base:     service.Base{NATS: config.NATS{NATSURL: w.natsURL}, Logger: slog.New(slog.DiscardHandler)},
		Storage:  storage.Config{Store: config.Store{SQLitePath: w.storePath}},
		Secrets:  config.Secrets{SecretsKeyFile: storetest.KeyFile(w.t)},
		Recorder: true, Dispatcher: true, BotConfig: processor.BotConfig{Bot: processor.BotDemo},
		AssetsURL: "https://chat.example.com",
	}
}

// run runs a processor until stop is called or the test ends.
func (w *world) run(cfg processor.Config) (stop func()) {
	w.t.Helper()
	s, err := processor.New(cfg)
	w.must(err)
	return servicetest.Run(w.t, s.Run)
}

// collect subscribes to a filter.
func (w *world) collect(filter string) *bustest.Collector {
	return bustest.Collect(w.t, w.natsURL, filter)
}

// acked subscribes to a consumer's acknowledgements: an event that follows the handler.
func (w *world) acked(stream, durable string) *bustest.Collector {
	return bustest.CollectEnds(w.t, w.natsURL, stream, durable)
}

func (w *world) publish(e event.Event) {
	w.t.Helper()
	w.must(w.bus.Publish(w.t.Context(), event.Derived(), e))
}

// publishRaw publishes without a Nats-Msg-Id, so that the stream stores every repeat.
func (w *world) publishRaw(subject string, data []byte) {
	w.t.Helper()
	_, err := bustest.JetStream(w.t, w.natsURL).PublishMsg(w.t.Context(), &nats.Msg{Subject: subject, Data: data})
	w.must(err)
}

// wrote returns the event of a visitor's message.
func (w *world) wrote(t chat.MessageType, data string) event.VisitorMessageAccepted {
	m := message(t, data, w.visitor.Name())
	return event.VisitorMessageAccepted{
		CompanyID: w.company.ID, AppID: w.application.ID, ChatUserID: w.visitor.ID, ChatID: w.chat.ID, Message: m,
	}
}

// count returns how many messages a stream holds.
func (w *world) count(stream string) int {
	w.t.Helper()
	s, err := w.bus.Stream(w.t.Context(), stream)
	w.must(err)
	info, err := s.Info(w.t.Context())
	w.must(err)
	return int(info.State.Msgs)
}

func (w *world) history(chatID string) []chat.Message {
	w.t.Helper()
	messages, _, err := w.store.History(w.t.Context(), chatID, store.HistoryQuery{})
	w.must(err)
	return messages
}

func message(t chat.MessageType, data, sender string) chat.Message {
	return chat.Message{ID: uuid.Must(uuid.NewV7()).String(), CreatedAt: now(), Type: t, Data: json.RawMessage(data), NameOfSender: sender}
}

func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// decode decodes a published event. It is not a consumer: the message of a reply has the time at which it was written.
func decode[E event.Event, P event.Checked[E]](t testing.TB, m *nats.Msg) E {
	t.Helper()
	e, err := event.Decode[E, P](m.Subject, m.Data)
	if err != nil {
		t.Fatalf("decoding %s: %v", m.Data, err)
	}
	return e
}

// sameMessages compares histories by the fields that readers see, but the times of support's messages, which the stream
// gives.
func sameMessages(t *testing.T, got []chat.Message, want ...chat.Message) {
	t.Helper()
	render := func(messages []chat.Message) string {
		lines := make([]string, 0, len(messages))
		for _, m := range messages {
			if m.IsFromSupport {
				m.CreatedAt = time.Time{}
			}
			lines = append(lines, string(m.AppendJSON(nil)))
		}
		return strings.Join(lines, "\n")
	}
	if g, w := render(got), render(want); g != w {
		t.Errorf("got messages\n%s\nwant\n%s", g, w)
	}
}
