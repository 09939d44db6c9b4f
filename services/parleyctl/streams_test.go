package parleyctl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/services/parleyctl"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/logtest"
	"github.com/parley-chat/parley/testkit/timetest"
)

func (w *world) publish(events ...event.Event) {
	w.t.Helper()
	for _, e := range events {
		w.must(w.bus.Publish(w.t.Context(), event.Derived(), e))
	}
}

// consume runs a consumer until the test ends or stop is called.
func (w *world) consume(c bus.Consumer) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.bus.Consume(ctx, c) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("consuming: %v", err)
		}
	}
	w.t.Cleanup(stop)
	return stop
}

func handled(context.Context, bus.Delivery) error { return nil }

// conversation returns a visitor's question, the bot's answer, and a company's message, all of now.
func (w *world) conversation() (c chat.Chat, question event.VisitorMessageAccepted, answer event.Reply, company event.CompanyMessageAccepted) {
	w.t.Helper()
	w.seed()
	c = w.open(chat.Visitor{AppID: appID, FirstName: "Ada"}, chat.ChannelWidget, time.Now())
	now := time.Now()
	question = event.VisitorMessageAccepted{CompanyID: companyID, AppID: appID, ChatUserID: c.ChatUserID, ChatID: c.ID, Message: message(now, "menu\x1b[2J", false)}
	answer = event.Reply{CompanyID: companyID, AppID: appID, ChatUserID: c.ChatUserID, ChatID: c.ID, Message: message(now, "Here it is", true)}
	company = event.CompanyMessageAccepted{CompanyID: companyID, ChatID: c.ID, Message: message(now, "Your order", true)}
	return c, question, answer, company
}

func TestWatchPrintsThePast(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.now = time.Now
	c, question, answer, company := w.conversation()
	push := event.PushAccepted{CompanyID: appID, TemplateID: templateID, MessageID: message(noon, "", true).ID, CreatedAt: noon, Source: "491701234567"}
	w.publish(question, answer, company, push)
	if _, err := bustest.JetStream(t, w.natsURL).Publish(t.Context(), "chat.in.visitor.odd", []byte("no \x1b JSON")); err != nil {
		t.Fatal(err)
	}

	printed := strings.Split(strings.TrimSpace(w.ctl("watch", "--no-follow").done()), "\n")
	if len(printed) != 5 {
		t.Fatalf("got %d lines, want 5:\n%s", len(printed), strings.Join(printed, "\n"))
	}
	for i, want := range []string{
		fmt.Sprintf("visitor-message  INBOUND/1     chat=%s  msg=%s  TEXT Ada: menu [2J", c.ID, question.Message.ID),
		fmt.Sprintf("reply            REPLIES/1     chat=%s  msg=%s  TEXT Polly: Here it is", c.ID, answer.Message.ID),
		fmt.Sprintf("company-message  SENDS/1       chat=%s  msg=%s  TEXT Polly: Your order", c.ID, company.Message.ID),
		fmt.Sprintf("push             SENDS/2       msg=%s  template=%s  to 491701234567", push.MessageID, templateID),
		"event            INBOUND/2     chat.in.visitor.odd",
	} {
		if at, rest, _ := strings.Cut(printed[i], "  "); rest != want || len(at) != len(chat.TimeFormat) {
			t.Errorf("line %d: got %q, want %q after the time", i, printed[i], want)
		}
	}
	for args, want := range map[string]string{
		"--company " + companyID:                "visitor-message reply company-message",
		"--company " + appID:                    "push",
		"--app " + appID:                        "visitor-message reply company-message", // which names only its chat
		"--app " + companyID:                    "",
		"--chat " + c.ID:                        "visitor-message reply company-message",
		"--visitor " + c.ChatUserID:             "visitor-message reply",
		"--message " + answer.Message.ID:        "reply",
		"--kind push,reply":                     "reply push",
		"--stream replies":                      "reply",
		"--stream INBOUND --kind reply":         "",
		"--since 10m --count 2":                 "visitor-message reply",
		"--since 2100-01-01":                    "",
		"--since 1d --kind visitor-message -n1": "visitor-message",
	} {
		var kinds []string
		out := w.ctl(append([]string{"watch", "--no-follow", "-o", "json"}, strings.Fields(args)...)...).done()
		for line := range strings.Lines(out) {
			var p struct {
				Kind  string
				Event json.RawMessage
			}
			w.must(json.Unmarshal([]byte(line), &p))
			kinds = append(kinds, p.Kind)
			if p.Kind == "reply" && string(p.Event) != string(answer.AppendJSON(nil)) {
				t.Errorf("got event %s, want it as it was published", p.Event)
			}
		}
		if got := strings.Join(kinds, " "); got != want {
			t.Errorf("%s: got %q, want %q", args, got, want)
		}
	}
	w.ctl("watch", "--since", "soon").fails(parleyctl.ExitUsage, "--since")
	w.ctl("watch", "--kind", "x").fails(parleyctl.ExitUsage, "there is no kind x")
	w.ctl("watch", "--stream", "x").fails(parleyctl.ExitUsage, "--stream")
	w.ctl("watch", "--chat", "x").fails(parleyctl.ExitUsage, "--chat must be a UUID")
}

func TestWatchFollowsUntilInterrupted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, question, answer, _ := w.conversation()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var out, errs logtest.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- parleyctl.Run(ctx, []string{"watch"}, parleyctl.Terminal{
			In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(name string) string { return w.env[name] }, Now: time.Now,
		})
	}()
	timetest.Until(t, "watch listens", func() bool {
		for _, stream := range subject.Streams() {
			s, err := w.bus.Stream(t.Context(), stream.Name)
			if err != nil || s.CachedInfo().State.Consumers == 0 {
				return false
			}
		}
		return true
	})
	w.publish(question)
	timetest.Until(t, "the question is printed", func() bool { return strings.Contains(out.String(), question.Message.ID) })
	w.publish(answer)
	timetest.Until(t, "the answer is printed", func() bool { return strings.Contains(out.String(), answer.Message.ID) })
	interrupt()
	if code := <-ended; code != parleyctl.ExitOK || errs.String() != "" {
		t.Errorf("interrupted: got code %d, %q, want 0 and silence", code, errs.String())
	}
	s, err := w.bus.Stream(t.Context(), subject.Inbound)
	if err != nil || s.CachedInfo().State.Consumers != 0 || s.CachedInfo().State.Msgs != 1 {
		t.Errorf("got %+v, %v, want no consumer left and no message removed", s.CachedInfo().State, err)
	}
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.now = time.Now
	_, question, answer, _ := w.conversation()
	var repaired atomic.Bool
	var again atomic.Int64
	w.publish(question, answer)
	for _, stream := range []string{subject.Inbound, subject.Replies} {
		w.consume(bus.Consumer{Stream: stream, Durable: "recorder", Handle: func(context.Context, bus.Delivery) error {
			if !repaired.Load() {
				return apperr.New(apperr.Invalid, "X", "No disk").Wrap(errors.New("it\x1b[31m burns"))
			}
			again.Add(1)
			return nil
		}})
	}
	list := func(args ...string) []object {
		t.Helper()
		return decoded[[]object](w.ctl(append([]string{"dead", "list", "-o", "json"}, args...)...))
	}
	timetest.Until(t, "both are dead", func() bool { return len(list()) == 2 })

	reply := list("--stream", "replies")[0]
	number := fmt.Sprint(reply["sequence"])
	if reply["messageId"] != answer.Message.ID || reply["consumer"] != "recorder" || reply["companyId"] != companyID || reply["attempts"] != 1.0 ||
		!strings.HasPrefix(reply["reason"].(string), "invalid: No disk: it") || reply["originalSequence"] != 1.0 {
		t.Errorf("got %v", reply)
	}
	for args, want := range map[string]int{
		"--consumer recorder": 2, "--consumer bot": 0, "--company " + companyID: 2, "--company " + appID: 0, "--message " + question.Message.ID: 1,
		"--reason disk": 2, "--reason flood": 0, "--since 1h": 2, "--since 2100-01-01": 0, "--limit 1": 1, "--chat " + question.ChatID: 2,
	} {
		if got := list(strings.Fields(args)...); len(got) != want {
			t.Errorf("%s: got %d letters, want %d", args, len(got), want)
		}
	}
	if table := w.ctl("dead", "list").done(); !strings.Contains(table, "REPLIES/1  recorder  "+answer.Message.ID) || strings.Contains(table, "\x1b") {
		t.Errorf("got\n%s", table)
	}
	shown := decoded[object](w.ctl("dead", "show", number, "-o", "json"))
	if e, _ := shown["event"].(object); e == nil || e["chatId"] != answer.ChatID || shown["headers"].(object)[bus.HeaderDeadConsumer] == nil {
		t.Errorf("got %v, want the event and the headers", shown)
	}
	if out := w.ctl("dead", "show", number).done(); !strings.Contains(out, "No disk: it") || !strings.Contains(out, `"text":"Here it is"`) {
		t.Errorf("got\n%s", out)
	}

	repaired.Store(true)
	if out := w.ctl("dead", "replay", "--all", "--dry-run").done(); strings.Count(out, "would be replayed") != 2 || len(list()) != 2 || again.Load() != 0 {
		t.Errorf("a dry run: got\n%s", out)
	}
	if out := w.ctl("dead", "replay", number).done(); strings.Count(out, "replayed") != 1 || len(list()) != 1 {
		t.Errorf("got\n%s, want one replayed", out)
	}
	timetest.Until(t, "it is handled", func() bool { return again.Load() == 1 })
	w.ctl("dead", "replay", "--all", "--consumer", "recorder", "--rate", "1000").done()
	timetest.Until(t, "the other is handled", func() bool { return again.Load() == 2 })
	if left := list(); len(left) != 0 {
		t.Errorf("got %v, want none left", left)
	}

	for range 3 {
		if _, err := bustest.JetStream(t, w.natsURL).Publish(t.Context(), subject.DeadLetter("INBOUND", "bot"), []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	if r := w.ctl("dead", "replay", "--all"); r.code != parleyctl.ExitRefused || strings.Count(r.out, "lacks its stream, subject or consumer") != 3 {
		t.Errorf("dead letters without a consumer: got code %d\n%s%s", r.code, r.out, r.errors)
	}
	w.ctl("dead", "drop", "--all").fails(parleyctl.ExitUsage, "Remove 3 dead letters for good? Add --yes")
	if out := w.ctlIn("y\n", true, "dead", "drop", "3").done(); !strings.Contains(out, "dropped") || len(list()) != 2 {
		t.Errorf("got %s", out)
	}
	w.ctl("dead", "drop", "--all", "--consumer", "bot", "-y").done()
	if left := list(); len(left) != 0 {
		t.Errorf("got %v, want none left", left)
	}
	w.ctl("dead", "show", "99").fails(parleyctl.ExitNotFound, "Dead letter 99 not found")
	w.ctl("dead", "replay").fails(parleyctl.ExitUsage, "--all")
	w.ctl("dead", "replay", "1", "--consumer", "x").fails(parleyctl.ExitUsage, "filters need --all")
	w.ctl("dead", "show", "x").fails(parleyctl.ExitUsage, "is not the number of a dead letter")
	w.ctl("dead", "replay", "--all", "--rate", "-1").fails(parleyctl.ExitUsage, "--rate")
}

func TestDropAndReplayOfNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, verb := range []string{"drop", "replay"} {
		w.ctl("dead", verb, "--all", "-o", "json").prints("[]")
	}
}

// traced holds the checked members of a trace.
type traced struct {
	MessageID, CompanyID, ChatID, CreatedAt string
	Events                                  []struct {
		Stream, Kind, Source, ReplayForConsumer string
		Sequence                                int
		Consumers                               []struct {
			Name, State, LastError, NextTry string
			Attempts                        int
		}
	}
	Stored      *struct{ ChatID, From string }
	Status      *struct{ Status, AcceptedAt, StoredAt, DeliveredAt string }
	DeadLetters []struct{ Consumer, Reason string }
}

func (v traced) consumer(t *testing.T, stream, name string) string {
	t.Helper()
	for _, e := range v.Events {
		for _, c := range e.Consumers {
			if e.Stream == stream && c.Name == name {
				return fmt.Sprintf("%s %d %s", c.State, c.Attempts, c.LastError)
			}
		}
	}
	return "none"
}

// A company's message: the dispatcher fails at first, the recorder gives the reply up, and then both succeed.
func TestTraceFollowsACompanyMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.now = time.Now
	_, question, _, company := w.conversation()
	id := company.Message.ID
	trace := func() traced { t.Helper(); return decoded[traced](w.ctl("trace", id, "-o", "json")) }
	w.ctl("trace", id).fails(parleyctl.ExitNotFound, "No trace of message "+id)

	stop := w.consume(bus.Consumer{Stream: subject.Sends, Durable: "dispatcher", Filters: []string{subject.AllCompanyMessages}, Handle: handled})
	w.consume(bus.Consumer{Stream: subject.Inbound, Durable: "bot", Filters: []string{subject.AllVisitorMessages}, Handle: handled})
	timetest.Until(t, "both consumers are there", func() bool {
		bots, err := w.bus.Groups(t.Context(), subject.Inbound)
		dispatchers, err2 := w.bus.Groups(t.Context(), subject.Sends)
		return err == nil && err2 == nil && len(bots) == 1 && len(dispatchers) == 1 && len(bots[0].Partitions) == len(dispatchers[0].Partitions)
	})
	stop()
	w.publish(question, company)
	v := trace()
	if v.MessageID != id || v.CompanyID != companyID || v.ChatID != company.ChatID || len(v.Events) != 1 || v.Events[0].Sequence != 1 ||
		v.Events[0].Kind != "company-message" || v.Stored != nil || v.CreatedAt == "" {
		t.Fatalf("accepted: got %+v", v)
	}
	if got := v.consumer(t, subject.Sends, "dispatcher"); got != "waiting 0 " || len(v.Events[0].Consumers) != 1 {
		t.Errorf("no consumer runs: got %q of %+v, want the dispatcher waiting and no other", got, v.Events[0].Consumers)
	}

	var right atomic.Bool
	w.consume(bus.Consumer{Stream: subject.Sends, Durable: "dispatcher", Filters: []string{subject.AllCompanyMessages},
		Handle: func(ctx context.Context, d bus.Delivery) error {
			if !right.Load() {
				return apperr.New(apperr.Unavailable, "AWAY", "not now")
			}
			return w.bus.Publish(ctx, event.Derived(), event.Reply{CompanyID: companyID, AppID: appID, ChatUserID: question.ChatUserID, ChatID: company.ChatID, Message: company.Message})
		}})
	timetest.Until(t, "it is being retried", func() bool {
		return strings.HasPrefix(trace().consumer(t, subject.Sends, "dispatcher"), "retrying ")
	})
	if got := trace().consumer(t, subject.Sends, "dispatcher"); !strings.Contains(got, "unavailable: not now") || strings.Contains(got, " 0 ") {
		t.Errorf("got %q, want tries and the last error", got)
	}
	var recorder atomic.Bool
	w.consume(bus.Consumer{Stream: subject.Replies, Durable: "socket-gateway", Handle: handled})
	w.consume(bus.Consumer{Stream: subject.Replies, Durable: "recorder", Handle: func(ctx context.Context, d bus.Delivery) error {
		if !recorder.Load() {
			return apperr.New(apperr.Invalid, "X", "No disk")
		}
		return w.store.AppendMessage(ctx, company.ChatID, company.Message)
	}})
	right.Store(true)
	timetest.Until(t, "the reply is dead", func() bool { return len(trace().DeadLetters) == 1 })
	v = trace()
	if v.DeadLetters[0].Consumer != "recorder" || v.consumer(t, subject.Replies, "recorder") != "dead 1 invalid: No disk" {
		t.Errorf("got %+v", v)
	}
	timetest.Until(t, "the others are done", func() bool {
		v := trace()
		return strings.HasPrefix(v.consumer(t, subject.Replies, "socket-gateway"), "acknowledged 1") &&
			strings.HasPrefix(v.consumer(t, subject.Sends, "dispatcher"), "acknowledged ")
	})

	recorder.Store(true)
	w.ctl("dead", "replay", "--all").done()
	timetest.Until(t, "it is in the history", func() bool { return trace().Stored != nil })
	w.must(errorOf(w.store.JoinMessageStatus(t.Context(), companyID, id, chat.MessageStatus{AcceptedAt: noon, StoredAt: noon.Add(time.Second), DeliveredAt: noon.Add(2 * time.Second)})))
	v = trace()
	if len(v.Events) != 3 || v.Events[2].ReplayForConsumer != "recorder" || v.Stored.ChatID != company.ChatID || len(v.DeadLetters) != 0 ||
		v.Status == nil || v.Status.Status != "delivered" {
		t.Errorf("got %+v, want the replay, the history and the status", v)
	}
	for _, c := range v.Events[2].Consumers {
		if c.Name == "socket-gateway" && c.State != "passed over" {
			t.Errorf("the replay: got %+v of the gateway, want it passed over", c)
		}
	}
	table := w.ctl("trace", id).done()
	for _, want := range []string{"company-message in SENDS/1", "reply in REPLIES/1", "  socket-gateway", "acknowledged after 1 try", "letter 1 again, for recorder", "in the history", "delivered", "2026-11-21T12:00:02.000Z"} {
		if !strings.Contains(table, want) {
			t.Errorf("got\n%s\nwant %q in it", table, want)
		}
	}
}

func errorOf[T any](_ T, err error) error { return err }

func TestTraceOfAVisitorsMessageAndOfAReply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.now = time.Now
	c, question, answer, _ := w.conversation()
	// created long before it was published: only its chat identifies its subject
	answer.Message.ID = "01939f3c-8a4e-7c7b-9a53-5f2f8b3b8c11"
	w.publish(question, answer)
	if v := decoded[traced](w.ctl("trace", question.Message.ID, "-o", "json")); len(v.Events) != 1 || v.Events[0].Kind != "visitor-message" || v.ChatID != c.ID {
		t.Errorf("got %+v, want the visitor's message", v)
	}
	w.ctl("trace", answer.Message.ID).fails(parleyctl.ExitNotFound, "No trace")
	if v := decoded[traced](w.ctl("trace", answer.Message.ID, "--within", "0", "-o", "json")); len(v.Events) != 1 || v.Events[0].Kind != "reply" {
		t.Errorf("to the end: got %+v, want the reply", v)
	}
	w.must(w.store.AppendMessage(t.Context(), c.ID, answer.Message))
	if v := decoded[traced](w.ctl("trace", answer.Message.ID, "-o", "json")); len(v.Events) != 1 || v.Stored == nil {
		t.Errorf("stored: got %+v, want the reply in its stream and in the history", v)
	}
	w.ctl("trace", "x").fails(parleyctl.ExitUsage, "MESSAGE must be a UUID")
	w.ctl("trace", c.ID, "--within", "x").fails(parleyctl.ExitUsage, "--within")
}

func TestStreams(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, question, answer, _ := w.conversation()
	stop := w.consume(bus.Consumer{Stream: subject.Inbound, Durable: "bot", Filters: []string{subject.AllVisitorMessages}, Handle: handled})
	w.publish(question, answer)
	timetest.Until(t, "the bot is done", func() bool {
		v := decoded[[]object](w.ctl("streams", "consumers", "inbound", "-o", "json"))
		return len(v) == 1 && v[0]["ackFloorSequence"] == 1.0 && v[0]["lag"] == 0.0 && v[0]["active"] == true
	})
	stop()
	question.Message = message(time.Now(), "again", false)
	w.publish(question)
	v := decoded[[]object](w.ctl("streams", "consumers", "-o", "json"))
	if len(v) != 1 || v[0]["name"] != "bot" || v[0]["lag"] != 1.0 || v[0]["filters"].([]any)[0] != subject.AllVisitorMessages {
		t.Errorf("got %v, want the bot to lag by one", v)
	}
	list := decoded[[]object](w.ctl("streams", "list", "-o", "json"))
	if len(list) != len(subject.Streams()) || list[0]["name"] != "INBOUND" || list[0]["messages"] != 2.0 || list[0]["maxAge"] != "168h" {
		t.Errorf("got %v", list)
	}
	if table := w.ctl("streams", "list").done(); !strings.Contains(strings.Join(strings.Fields(table), " "), "1.0 GiB 0.0% 168h") {
		t.Errorf("got\n%s", table)
	}
	w.ctl("streams", "consumers", "x").fails(parleyctl.ExitUsage, "must be one of")
}

// An operator skips a message that a consumer keeps retrying; the messages after it are delivered.
// TestWebhookGuideReplays runs the commands of docs/webhook-bot.md: after a mended bot they leave no dead letter.
func TestWebhookGuideReplays(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/webhook-bot.md")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.now = time.Now
	_, question, _, _ := w.conversation()
	var mended atomic.Bool
	answered := make(chan string, 1)
	w.consume(bus.Consumer{Stream: subject.Inbound, Durable: "bot", Handle: func(_ context.Context, d bus.Delivery) error {
		if !mended.Load() {
			return apperr.New(apperr.Invalid, "X", "The webhook answered 400")
		}
		answered <- string(d.Data)
		return nil
	}})
	w.publish(question)
	timetest.Until(t, "the message is dead", func() bool {
		return strings.Contains(w.ctl("dead", "list").done(), "The webhook answered 400")
	})
	mended.Store(true)
	commands := regexp.MustCompile(`(?m)^    parleyctl (dead .*)$`).FindAllStringSubmatch(string(guide), -1)
	if len(commands) != 2 {
		t.Fatalf("got the commands %q, want two", commands)
	}
	for _, command := range commands {
		w.ctl(words(command[1])...).done()
	}
	if got := <-answered; !strings.Contains(got, question.Message.ID) {
		t.Errorf("got %s answered, want %s", got, question.Message.ID)
	}
	if left := decoded[[]object](w.ctl("dead", "list", "-o", "json")); len(left) > 0 {
		t.Errorf("got %v left, want none", left)
	}
}

func TestDeadSkip(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.now = time.Now
	_, question, _, _ := w.conversation()
	second := question
	second.Message = message(time.Now(), "again", false)
	answered := make(chan string, 1)
	w.consume(bus.Consumer{Stream: subject.Inbound, Durable: "bot", Handle: func(_ context.Context, d bus.Delivery) error {
		if d.ID == question.Message.ID {
			return apperr.New(apperr.Unavailable, "AWAY", "The webhook answered 503")
		}
		answered <- d.ID
		return nil
	}})
	w.publish(question, second)
	skip := func(args ...string) result {
		return w.ctl(append([]string{"dead", "skip", question.Message.ID}, args...)...)
	}
	timetest.Until(t, "the message is tried again", func() bool {
		return strings.Contains(skip("--dry-run").out, "unavailable: The webhook answered 503")
	})
	if out := skip("--dry-run").done(); !strings.Contains(out, "INBOUND/1  bot") || !strings.Contains(out, "would be skipped") || len(answered) != 0 {
		t.Errorf("got\n%s\nwant the bot, and nothing done", out)
	}
	skip("--consumer", "recorder").fails(parleyctl.ExitNotFound, "No consumer keeps retrying")
	if found := decoded[[]object](skip("-o", "json")); len(found) != 1 || found[0]["result"] != "skipped" || found[0]["consumer"] != "bot" {
		t.Errorf("got %v, want the bot's", found)
	}
	if id := <-answered; id != second.Message.ID {
		t.Errorf("got %s handled, want what waited, %s", id, second.Message.ID)
	}
	letters := decoded[[]object](w.ctl("dead", "list", "-o", "json"))
	if len(letters) != 1 || letters[0]["messageId"] != question.Message.ID || !strings.HasPrefix(letters[0]["reason"].(string), "invalid: Skipped by an operator: ") {
		t.Errorf("got the letters %v, want the message's, which was skipped", letters)
	}
	skip().fails(parleyctl.ExitNotFound, "No consumer keeps retrying")
	w.ctl("dead", "skip", "x").fails(parleyctl.ExitUsage, "MESSAGE")
}
