package processor_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/embedded"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/services/processor"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/nettest"
	"github.com/parley-chat/parley/testkit/opstest"
	"github.com/parley-chat/parley/testkit/servicetest"
	"github.com/parley-chat/parley/testkit/storetest"
	"github.com/parley-chat/parley/testkit/timetest"
)

func TestVisitorMessageIsKeptAndAnswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(w.config())
	replies, kept := w.collect(subject.AllReplies), w.acked(subject.Replies, "recorder")
	asked := w.acked(subject.Inbound, "recorder")

	question := w.wrote(chat.Text, `{"text":"Is my  order ready","n":1.50}`)
	w.publish(question)
	reply := decode[event.Reply](t, replies.Next())
	if want := `You wrote “Is my  order ready” (4 words).`; !strings.Contains(string(reply.Message.Data), want) {
		t.Errorf("got %s, want it to hold %q", reply.Message.Data, want)
	}
	if reply.Message.NameOfSender != "Nora" || !reply.Message.IsFromSupport || reply.ChatID != w.chat.ID {
		t.Errorf("got %+v, want it from Nora and support, in the visitor's chat", reply)
	}
	asked.Next()
	kept.Next()
	sameMessages(t, w.history(w.chat.ID), question.Message, reply.Message)
	c, err := w.store.Chat(t.Context(), w.chat.ID)
	if err != nil || c.Status(now()) != chat.Active || !c.WindowStartedAt.Equal(question.Message.CreatedAt) {
		t.Errorf("got %+v and %v, want an active chat whose window starts at the message", c, err)
	}
}

// Every message type of the demo bot is published, and in the history in the order in which it was sent.
func TestDemoBotShowsEveryShape(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(w.config())
	replies, kept := w.collect(subject.AllReplies), w.acked(subject.Replies, "recorder")
	asked := w.acked(subject.Inbound, "recorder")

	var want []chat.Message
	for _, step := range []struct {
		typ   chat.MessageType
		data  string
		shape chat.MessageType
	}{
		{chat.Text, `{"text":"menu"}`, chat.MultipleChoice},
		{chat.MultipleChoiceReply, `{"text":"Show me a picture","payload":"show-picture"}`, chat.Image},
		{chat.MultipleChoiceReply, `{"text":"Show me cards","payload":"show-cards"}`, chat.Carousel},
		{chat.Text, `{"text":"Tell me more","payload":"card-bot"}`, chat.Text},
	} {
		question := w.wrote(step.typ, step.data)
		w.publish(question)
		reply := decode[event.Reply](t, replies.Next())
		if reply.Message.Type != step.shape {
			t.Errorf("for %s got %s, want %s", step.data, reply.Message.Type, step.shape)
		}
		if faults := chat.ValidateData(reply.Message.Type, reply.Message.Data); len(faults) > 0 {
			t.Errorf("got %s with faults %v, want none", reply.Message.Data, faults)
		}
		want = append(want, question.Message, reply.Message)
		asked.Next()
		kept.Next()
		time.Sleep(time.Millisecond) // no visitor writes in the millisecond of the reply, which would come first
	}
	sameMessages(t, w.history(w.chat.ID), want...)
}

func TestCompanyMessageReachesTheWidget(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(w.config())
	replies, kept := w.collect(subject.AllReplies), w.acked(subject.Replies, "recorder")

	sent := event.CompanyMessageAccepted{CompanyID: w.company.ID, ChatID: w.chat.ID, Message: message(chat.Text, `{"text":"å <b>", "big":12345678901234567890}`, "Acme")}
	w.publish(sent)
	m := replies.Next()
	reply := decode[event.Reply](t, m)
	want := sent.Message
	want.IsFromSupport = true
	sameMessages(t, []chat.Message{reply.Message}, want)
	if reply.AppID != w.application.ID || reply.ChatUserID != w.visitor.ID || reply.ChatID != w.chat.ID || m.Header.Get("Nats-Msg-Id") != want.ID {
		t.Errorf("got %s with id %s, want it for the visitor with the message's id", m.Data, m.Header.Get("Nats-Msg-Id"))
	}
	kept.Next()
	sameMessages(t, w.history(w.chat.ID), want)
}

func TestCompanyMessageReachesThePhone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(w.config())
	out, kept := w.collect(subject.AllOutbound), w.acked(subject.Outbound, "recorder")

	visitor, c := w.open(chat.Visitor{FirstName: "Jo", Phone: "+4915112345678"}, chat.ChannelPhone)
	sent := event.CompanyMessageAccepted{CompanyID: w.company.ID, ChatID: c.ID, Message: message(chat.Text, `{"text":"hi"}`, "Acme")}
	w.publish(sent)
	m := out.Next()
	got := decode[event.OutboundMessage](t, m)
	if want := "chat.out.phone." + w.company.ID; m.Subject != want {
		t.Errorf("got subject %s, want %s", m.Subject, want)
	}
	if got.Recipient != (event.Recipient{Phone: "+4915112345678", Name: "Jo"}) || got.ChatID != c.ID || got.ChatUserID != visitor.ID {
		t.Errorf("got %+v, want it for Jo", got)
	}
	kept.Next()
	want := sent.Message
	want.IsFromSupport = true
	sameMessages(t, w.history(c.ID), want)
}

func (w *world) push(source, username string) event.PushAccepted {
	return event.PushAccepted{
		CompanyID: w.company.ID, TemplateID: w.template.ID, MessageID: message(chat.Text, "{}", "").ID, CreatedAt: now(),
		Source: source, Username: username,
	}
}

func TestPushIsRenderedSentAndKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(w.config())
	out, kept := w.collect(subject.AllOutbound), w.acked(subject.Outbound, "recorder")

	first := w.push("+49 151 1234-5678", "Sara")
	w.publish(first)
	got := decode[event.OutboundMessage](t, out.Next())
	data := fmt.Sprintf(`{"templateId":%q,"name":"order_ready","text":"Hello Sara, your order is ready.","parameters":{"item":"order","username":"Sara"}}`, w.template.ID)
	want := chat.Message{ID: first.MessageID, CreatedAt: first.CreatedAt, Type: chat.Template, Data: json.RawMessage(data), NameOfSender: "Acme", IsFromSupport: true}
	sameMessages(t, []chat.Message{got.Message}, want)
	if got.Recipient != (event.Recipient{Phone: "+4915112345678", Name: "Sara"}) || got.Channel != chat.ChannelPhone {
		t.Errorf("got %+v, want it for Sara's phone", got)
	}
	kept.Next()
	sameMessages(t, w.history(got.ChatID), want)

	// The same number, in another notation and without a name, is the same visitor, whose name stays.
	second := w.push("4915112345678", "")
	w.publish(second)
	again := decode[event.OutboundMessage](t, out.Next())
	if again.ChatID != got.ChatID || again.ChatUserID != got.ChatUserID || again.Recipient.Name != "Sara" {
		t.Errorf("got chat %s of %s (%q), want %s of %s (Sara)", again.ChatID, again.ChatUserID, again.Recipient.Name, got.ChatID, got.ChatUserID)
	}
	if !strings.Contains(string(again.Message.Data), "Hello there, your order") {
		t.Errorf("got %s, want the default in the place of the name", again.Message.Data)
	}
	kept.Next()
	if n := len(w.history(got.ChatID)); n != 2 {
		t.Errorf("got %d messages in the recipient's chat, want 2", n)
	}
}

// A redelivery has the effect of one delivery: in the stream (the ids are derived) and in the history.
func TestRedeliveryChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := w.run(w.config())
	inbound, sends := w.acked(subject.Inbound, "*"), w.acked(subject.Sends, "*")
	outbound, replies := w.acked(subject.Outbound, "recorder"), w.acked(subject.Replies, "recorder")

	events := []event.Event{
		w.wrote(chat.Text, `{"text":"hello"}`), // two answers
		event.CompanyMessageAccepted{CompanyID: w.company.ID, ChatID: w.chat.ID, Message: message(chat.Text, `{"text":"hi"}`, "Acme")},
		w.push("+4915112345678", "Sara"),
	}
	publishAll := func() {
		for _, e := range events {
			w.publishRaw(e.Subject(), e.AppendJSON(nil))
		}
	}
	publishAll()
	publishAll()
	inbound.Await(2 * 2) // the visitor's message goes to the recorder and to the bot
	sends.Await(2 * 2)
	replies.Await(3)
	outbound.Await(1)
	check := func() {
		t.Helper()
		if got := w.count(subject.Replies); got != 3 {
			t.Errorf("got %d replies, want 3: two of the bot, one of the company", got)
		}
		if got := w.count(subject.Outbound); got != 1 {
			t.Errorf("got %d outbound messages, want 1", got)
		}
		if got := len(w.history(w.chat.ID)); got != 4 {
			t.Errorf("got %d messages in the chat, want 4", got)
		}
	}
	check()

	// A lost consumer starts again at the stream's beginning, without any acknowledgement.
	stop()
	for stream, durables := range map[string][]string{
		subject.Inbound: {"recorder", "bot"}, subject.Sends: {"dispatcher", "dispatcher-pushes"}, subject.Replies: {"recorder"}, subject.Outbound: {"recorder"},
	} {
		for _, durable := range durables {
			bustest.DeleteGroup(t, w.bus, stream, durable)
		}
	}
	before := w.history(w.chat.ID)
	w.run(w.config())
	inbound.Await(2 * 2)
	sends.Await(2 * 2)
	replies.Await(3)
	outbound.Await(1)
	check()
	sameMessages(t, w.history(w.chat.ID), before...)
}

func TestUnprocessableEventsAreDeadLettered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(w.config())
	dead := w.collect(subject.AllDead)
	foreign := event.CompanyMessageAccepted{CompanyID: "another", ChatID: w.chat.ID, Message: message(chat.Text, `{"text":"x"}`, "")}
	reply := event.Reply{CompanyID: w.company.ID, AppID: w.application.ID, ChatUserID: "another", ChatID: w.chat.ID, Message: message(chat.Text, `{"text":"x"}`, "")}
	empty := reply
	empty.ChatUserID, empty.Message = w.visitor.ID, message(chat.Text, `{"text":null}`, "")
	draft := w.template
	draft.ID, draft.Status = "draft", "draft"
	w.must(w.store.PutTemplate(t.Context(), draft))
	unapproved := w.push("+4915112345678", "")
	unapproved.TemplateID = draft.ID

	tests := []struct {
		name, subject string
		data          []byte
		dead          []string // where it ends
		reason        string
	}{
		{"garbage", "chat.in.visitor.message.a.u", []byte("\xff{"), []string{"chat.dead.INBOUND.bot", "chat.dead.INBOUND.recorder"}, "malformed"},
		{"a message into another company's chat", foreign.Subject(), foreign.AppendJSON(nil), []string{"chat.dead.SENDS.dispatcher"}, "another company"},
		{"a subject that does not match", "chat.in.message.x.y", foreign.AppendJSON(nil), []string{"chat.dead.SENDS.dispatcher"}, "subject"},
		{"a reply into another visitor's chat", reply.Subject(), reply.AppendJSON(nil), []string{"chat.dead.REPLIES.recorder"}, "another visitor"},
		{"a reply with invalid data", empty.Subject(), empty.AppendJSON(nil), []string{"chat.dead.REPLIES.recorder"}, "message.data.text is required"},
		{"no phone number", w.push("call me maybe", "").Subject(), w.push("call me maybe", "").AppendJSON(nil), []string{"chat.dead.SENDS.dispatcher-pushes"}, "phone"},
		{"a template that is not approved", unapproved.Subject(), unapproved.AppendJSON(nil), []string{"chat.dead.SENDS.dispatcher-pushes"}, "not approved"},
	}
	for _, tt := range tests {
		w.publishRaw(tt.subject, tt.data)
		want := map[string]bool{}
		for _, d := range tt.dead {
			want[d] = true
		}
		for range tt.dead {
			m := dead.Next()
			if !want[m.Subject] || string(m.Data) != string(tt.data) || !strings.Contains(m.Header.Get("Parley-Dead-Reason"), tt.reason) {
				t.Errorf("%s: got %s %q because of %q, want it in %v because of %q", tt.name, m.Subject, m.Data, m.Header.Get("Parley-Dead-Reason"), tt.dead, tt.reason)
			}
			delete(want, m.Subject)
		}
	}
	sameMessages(t, w.history(w.chat.ID))
}

// A missing chat may be created a moment later; only after a while the message is given up.
func TestUnknownChatIsRetriedThenDeadLettered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(w.config())
	dead, replies := w.collect(subject.AllDead), w.collect(subject.AllReplies)
	lost := event.CompanyMessageAccepted{CompanyID: w.company.ID, ChatID: "nowhere", Message: message(chat.Text, `{"text":"x"}`, "")}
	started := time.Now()
	w.publish(lost)
	m := dead.Next()
	if m.Subject != "chat.dead.SENDS.dispatcher" || string(m.Data) != string(lost.AppendJSON(nil)) {
		t.Errorf("got %s %s, want the message in the dispatcher's dead letters", m.Subject, m.Data)
	}
	if took := time.Since(started); took < time.Second {
		t.Errorf("got it after %s, want attempts in between", took)
	}
	if n := replies.Pending(); n != 0 {
		t.Errorf("got %d replies, want none", n)
	}
}

func TestConsumersAreSwitchedOneByOne(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*processor.Config)
		want   []string
	}{
		{"only the recorder", func(c *processor.Config) { c.Dispatcher, c.Bot = false, processor.BotExternal }, []string{"recorder", "recorder-control", "recorder-ratings"}},
		{"only the dispatcher", func(c *processor.Config) { c.Recorder, c.Bot = false, processor.BotExternal }, []string{"dispatcher", "dispatcher-pushes"}},
		{"only the bot", func(c *processor.Config) { c.Recorder, c.Dispatcher = false, false }, []string{"bot"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			cfg := w.config()
			tt.change(&cfg)
			stop := w.run(cfg)
			consumers := func() (names []string, err error) {
				for _, stream := range []string{subject.Inbound, subject.Sends} {
					groups, err := w.bus.Groups(t.Context(), stream)
					w.must(err)
					for _, g := range groups {
						names = append(names, g.Name)
					}
				}
				return names, nil
			}
			timetest.Await(t, "the consumers are only those of "+tt.name, consumers, func(names []string) bool { return slices.Equal(names, tt.want) })
			stop()
		})
	}
}

func TestEverythingOffStillRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cfg := w.config()
	cfg.Recorder, cfg.Dispatcher, cfg.Bot = false, false, processor.BotExternal
	w.run(cfg)()
}

func TestNewNamesEveryProblem(t *testing.T) {
	t.Parallel()
	_, err := processor.New(processor.Config{BotConfig: processor.BotConfig{Bot: "webhook"}, AssetsURL: "nowhere"})
	if err == nil {
		t.Fatal("got no error, want one")
	}
	for _, name := range []string{"NATS_URL", "MONGODB_URI", "Logger", "ASSETS_URL", "BOT_WEBHOOK_URL", "BOT_WEBHOOK_SECRET"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("got %q, want it to name %s", err, name)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("got %q, want one line", err)
	}
	if _, err := processor.New(processor.Config{BotConfig: processor.BotConfig{Bot: "parrot"}}); err == nil || !strings.Contains(err.Error(), `"parrot"`) {
		t.Errorf("got %v, want it to name the bot that does not exist", err)
	}
}

// It starts without its servers, is not ready, and works by itself when they connect.
func TestStartsBeforeItsServers(t *testing.T) {
	t.Parallel()
	natsAddress := nettest.Addr(t)
	w := &world{t: t, natsURL: "nats://" + natsAddress, storePath: storetest.Path(t)}
	documents := storetest.NewOutage(storetest.OpenAt(t, w.storePath))
	documents.Begin()
	cfg := w.config()
	cfg.Storage.SharedStore = documents
	cfg.OpsListener = nettest.Listen(t)
	ops := "http://" + cfg.OpsListener.Addr().String()
	w.run(cfg)
	opstest.AwaitUnready(t, ops)

	server, err := embedded.StartNATS(embedded.NATSConfig{Addr: natsAddress, Dir: t.TempDir()})
	w.must(err)
	t.Cleanup(server.Stop)
	bustest.DeclareSmall(t, server.URL())
	documents.End()
	opstest.AwaitUp(t, ops)
	w.bus, w.store = bustest.Open(t, w.natsURL), documents
	w.seed()
	replies := w.collect(subject.AllReplies)
	w.publish(w.wrote(chat.Text, `{"text":"are you there"}`))
	replies.Next()

	// It stays ready when its servers stop: it serves no requests, and waits for them.
	documents.Begin()
	server.Stop()
	opstest.AwaitDown(t, ops, "nats")
	opstest.AwaitDown(t, ops, "store")
	documents.End()
}

func TestDemoAssetsHoldThePicture(t *testing.T) {
	t.Parallel()
	if _, err := fs.Stat(processor.DemoAssets(), "parley.png"); err != nil {
		t.Errorf("got %v, want parley.png", err)
	}
	if processor.DemoAssetsPath != "/demo/assets/" {
		t.Errorf("got %s, want /demo/assets/", processor.DemoAssetsPath)
	}
}

// Heavy engines for tests must not be linked into the binary.
func TestBinaryLinksNoEngine(t *testing.T) {
	t.Parallel()
	servicetest.LinksNoEngine(t)
}

// A company whose bot has used up its budget is silent: its questions become dead letters at once, and wait
// in no queue that another company's questions share.
func TestBotsAreCharged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cfg := w.config()
	cfg.BytesCompany = config.Rate{Count: 4 << 10, Per: 168 * time.Hour}
	w.run(cfg)
	dead := w.collect(subject.DeadLetter(subject.Inbound, "bot"))
	replies := w.collect(subject.AllReplies)
	for range 10 {
		w.publish(w.wrote(chat.Text, `{"text":"hello"}`))
	}
	letter := dead.Await(1)[0]
	if reason := letter.Header.Get(bus.HeaderDeadReason); !strings.Contains(reason, string(apperr.TooMany)) {
		t.Errorf("got a dead letter for %q, want the budget", reason)
	}
	if answered := len(replies.Await(1)); answered == 0 {
		t.Error("got no answers, want those within the budget")
	}
}

// Two writers with clocks apart: the history has the order of the stream, which is what sockets were sent.
func TestHistoryHasTheOrderOfTheStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(w.config())
	kept := w.acked(subject.Replies, "recorder")
	var want []string
	for n, clock := range []time.Duration{time.Hour, -time.Hour, 0} {
		m := message(chat.Text, fmt.Sprintf(`{"text":"%d"}`, n), "Nora")
		m.CreatedAt = m.CreatedAt.Add(clock)
		w.publish(event.Reply{
			CompanyID: w.company.ID, AppID: w.application.ID, ChatUserID: w.visitor.ID, ChatID: w.chat.ID, Message: m,
		})
		want = append(want, m.ID)
	}
	kept.Await(len(want))
	var got []string
	for _, m := range w.history(w.chat.ID) {
		got = append(got, m.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
