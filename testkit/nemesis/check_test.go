package nemesis

import (
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// at returns a time of the run.
func at(seconds float64) time.Time {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	return noon.Add(time.Duration(seconds * float64(time.Second)))
}

// lists has the messages of the chats, in order. Of chat-1, m3 was retried, and a1 answers m1.
var lists = map[string][]ViewedMessage{
	"chat-1": {
		{ID: "m1", Side: Visitor, Text: Text(1)},
		{ID: "a1", Side: Bot, Text: "You said: " + Text(1)},
		{ID: "m2", Side: Company, Text: Text(2)},
		{ID: "m3", Side: Agent, Text: Text(3)},
		{ID: "m6", Side: Company, Text: Text(6)},
	},
	"chat-2": {{ID: "m5", Side: Visitor, Text: Text(5)}},
}

// kept returns a record that breaks nothing. Ann has two clients, of which the second leaves and comes back; the write
// "w4." had no answer and no effect.
func kept() *Record {
	r := &Record{}
	write := func(w Write, begun, ended float64) {
		w.Begun, w.Ended = at(begun), at(ended)
		r.AddWrite(w)
	}
	question := Write{Side: Visitor, Actor: "ann", ChatID: "chat-1", Key: "k1", Text: Text(1), Status: 201}
	question.MessageID, question.AnswerExpected, question.WebhookExpected = "m1", true, true
	write(question, 1, 2)
	api := Write{Side: Company, Actor: "api", ChatID: "chat-1", Status: 200}
	api.Key, api.Text, api.MessageID, api.SeenIDs = "k2", Text(2), "m2", []string{"m1", "a1"}
	api.WebhookExpected = true
	write(api, 4, 5)
	agent := Write{Side: Agent, Actor: "ada", ChatID: "chat-1", Key: "k3", Text: Text(3), Status: 503}
	write(agent, 6, 7)
	agent.Status, agent.MessageID = 201, "m3"
	write(agent, 8, 9)
	lost := Write{Side: Visitor, Actor: "ann", ChatID: "chat-1", Key: "k4", Text: Text(4)}
	lost.AnswerExpected, lost.WebhookExpected = true, true
	write(lost, 10, 11)
	api.Key, api.Text, api.MessageID, api.SeenIDs = "k6", Text(6), "m6", []string{"m2", "m3"}
	write(api, 12, 13)
	write(Write{Side: Visitor, Actor: "bob", Key: "k5", Text: Text(5), Status: 201, MessageID: "m5"}, 1, 2)

	connect := func(client, actor, chatID string, seconds float64, loaded ...string) {
		r.AddConnect(Connect{Client: client, Actor: actor, ChatID: chatID, At: at(seconds), Loaded: loaded})
	}
	connect("ann/1", "ann", "chat-1", 0, []string{}...)
	connect("ann/2", "ann", "chat-1", 0, []string{}...)
	r.AddConnect(Connect{Client: "ann/2", Actor: "ann", ChatID: "chat-1", At: at(5.5), Gone: true})
	connect("ann/2", "ann", "chat-1", 6, "m1", "a1", "m2")
	connect("bob/1", "bob", "chat-2", 0, []string{}...)
	for n, seconds := range []float64{3, 5, 9, 13} {
		m := lists["chat-1"][n+1]
		d := Delivery{Client: "ann/1", ChatID: "chat-1", MessageID: m.ID, Text: m.Text, At: at(seconds)}
		r.AddDelivery(d)
		d.Client = "ann/2"
		r.AddDelivery(d)
	}
	for chatID, owner := range map[string]string{"chat-1": "ann", "chat-2": "bob"} {
		for _, reader := range []string{"export", "history", "panel"} {
			v := View{Reader: reader, ChatID: chatID, Owner: owner, Company: "acme", Whole: true}
			v.Messages = slices.Clone(lists[chatID])
			r.AddView(v)
		}
	}
	r.AddView(View{Reader: "panel live", ChatID: "chat-1", Live: true, Messages: slices.Clone(lists["chat-1"][2:])})
	for n, name := range []string{"accepted", "stored", "failed", "delivered", "delivered", "read"} {
		r.AddStatus(Status{MessageID: "m2", Name: name, Source: "api", At: at(5 + float64(n))})
	}
	for n, name := range []string{"delivered", "read", "delivered"} { // the last one is a repetition
		r.AddStatus(Status{MessageID: "m2", Name: name, Source: "webhook", ReportID: name, At: at(5 + float64(n))})
	}
	r.AddUnread(Unread{ChatID: "chat-1", Reader: "ada", Counted: 1, Actual: 1})
	call := Webhook{Endpoint: "crm", Type: "message.received", WebhookID: "h1", MessageID: "m1", Text: Text(1)}
	call.At = at(3)
	r.AddWebhook(call)
	r.AddWebhook(call)
	r.AddFault(FaultSpan{Fault: Fault{Kind: Kill, Target: "gateway-1", For: time.Second}, Begun: at(8), Ended: at(9)})
	return r
}

// ofModel adds two questions: the model answers the first, at its second call, and a failure text the second.
func (r *Record) ofModel() {
	asked := func(n int, id string) {
		w := Write{Side: Visitor, Actor: "ann", ChatID: "chat-1", Key: "k" + id, Text: Text(n), Status: 201}
		w.MessageID, w.AnswerExpected = id, true
		w.Begun, w.Ended = at(float64(n)), at(float64(n)+0.5)
		r.AddWrite(w)
		r.insert(len(r.view("history").Messages), ViewedMessage{ID: id, Side: Visitor, Text: Text(n)})
	}
	asked(20, "m20")
	r.insert(6, ViewedMessage{ID: "a20", Side: Bot, Text: Text(20) + " Second."})
	asked(21, "m21")
	r.insert(8, ViewedMessage{ID: sorry, Side: Bot, Text: FailureText})
	r.AddCompletion(Completion{Question: Text(1), Text: "You said: " + Text(1), Ended: true})
	r.AddCompletion(Completion{Question: Text(20), Text: Text(20) + " First"})
	r.AddCompletion(Completion{Question: Text(20), Text: Text(20) + " Second.", Ended: true})
	r.AddDraft(Draft{Client: "ann/1", ChatID: "chat-1", MessageID: "a20", Text: Text(20) + " Fi", At: at(20)})
	r.AddDraft(Draft{
		Client: "ann/1", ChatID: "chat-1", MessageID: "a20", Text: Text(20) + " Second.", Whole: true, At: at(21),
	})
}

// sorry is the id of the failure text for m21.
var sorry = failureID("m21")

// eachView changes the views of chat-1.
func (r *Record) eachView(change func(v *View)) {
	for n := range r.Views {
		if r.Views[n].ChatID == "chat-1" {
			change(&r.Views[n])
		}
	}
}

// change changes a message in the views.
func (r *Record) change(id string, do func(m *ViewedMessage)) {
	r.eachView(func(v *View) {
		for n := range v.Messages {
			if v.Messages[n].ID == id {
				do(&v.Messages[n])
			}
		}
	})
}

// remove removes a message from the views.
func (r *Record) remove(id string) {
	r.eachView(func(v *View) {
		v.Messages = slices.DeleteFunc(v.Messages, func(m ViewedMessage) bool { return m.ID == id })
	})
}

// view returns a reader's view of chat-1.
func (r *Record) view(reader string) *View {
	n := slices.IndexFunc(r.Views, func(v View) bool { return v.Reader == reader && v.ChatID == "chat-1" })
	return &r.Views[n]
}

// insert adds a message to the views at its place, and delivers it.
func (r *Record) insert(place int, m ViewedMessage) {
	r.eachView(func(v *View) {
		if v.Whole {
			v.Messages = slices.Insert(v.Messages, place, m)
		}
	})
	if m.Side != Visitor {
		r.deliver("ann/1", 20, m)
		r.deliver("ann/2", 20, m)
	}
}

func (r *Record) deliver(client string, seconds float64, m ViewedMessage) {
	r.AddDelivery(Delivery{Client: client, ChatID: "chat-1", MessageID: m.ID, Text: m.Text, At: at(seconds)})
}

// undeliver removes the deliveries of a message to a client.
func (r *Record) undeliver(client, id string) {
	r.Deliveries = slices.DeleteFunc(r.Deliveries, func(d Delivery) bool {
		return d.Client == client && d.MessageID == id
	})
}

// untell removes the webhooks of a status of m2.
func (r *Record) untell(name string) {
	r.Statuses = slices.DeleteFunc(r.Statuses, func(s Status) bool { return s.Source == "webhook" && s.Name == name })
}

// swap exchanges two messages in the views.
func (r *Record) swap(a, b string) {
	r.eachView(func(v *View) {
		is := func(id string) func(ViewedMessage) bool { return func(m ViewedMessage) bool { return m.ID == id } }
		i, j := slices.IndexFunc(v.Messages, is(a)), slices.IndexFunc(v.Messages, is(b))
		if i >= 0 && j >= 0 {
			v.Messages[i], v.Messages[j] = v.Messages[j], v.Messages[i]
		}
	})
}

// swapDeliveries exchanges two messages in the deliveries and loads.
func (r *Record) swapDeliveries(a, b string) {
	other := map[string]string{a: b, b: a}
	texts := map[string]string{}
	for _, d := range r.Deliveries {
		texts[d.MessageID] = d.Text
	}
	for n, d := range r.Deliveries {
		if id := other[d.MessageID]; id != "" && texts[id] != "" {
			r.Deliveries[n].MessageID, r.Deliveries[n].Text = id, texts[id]
		}
	}
	for _, c := range r.Connects {
		i, j := slices.Index(c.Loaded, a), slices.Index(c.Loaded, b)
		if i >= 0 && j >= 0 {
			c.Loaded[i], c.Loaded[j] = b, a
		}
	}
}

// write returns the accepted write of a message.
func (r *Record) write(id string) *Write {
	n := slices.IndexFunc(r.Writes, func(w Write) bool { return w.MessageID == id })
	return &r.Writes[n]
}

var breaks = map[string]struct {
	change func(r *Record)
	want   []string // the rules that are broken
}{
	// What may happen.
	"nothing": {func(r *Record) {}, nil},
	"a client that has left misses a message": {func(r *Record) {
		r.undeliver("ann/2", "m6")
		r.AddConnect(Connect{Client: "ann/2", ChatID: "chat-1", At: at(11), Gone: true})
	}, nil},
	"a client that connects without a load misses what was before": {func(r *Record) {
		r.undeliver("ann/1", "m2")
		r.AddConnect(Connect{Client: "ann/1", ChatID: "chat-1", At: at(5.1)})
	}, nil},
	"a client loads only the last messages": {func(r *Record) {
		r.AddConnect(Connect{Client: "ann/2", ChatID: "chat-1", At: at(30), Part: true, Loaded: []string{"m3", "m6"}})
	}, nil},
	"a client that has recovered gets what it missed": {func(r *Record) {
		r.undeliver("ann/1", "m3")
		r.AddConnect(Connect{Client: "ann/1", ChatID: "chat-1", At: at(12), Recovered: true})
		r.deliver("ann/1", 12.5, lists["chat-1"][3])
	}, nil},
	"a message is delivered again in a new session": {func(r *Record) {
		loaded := []string{"m1", "a1", "m2", "m3"}
		r.AddConnect(Connect{Client: "ann/1", ChatID: "chat-1", At: at(14), Loaded: loaded})
		r.deliver("ann/1", 14, lists["chat-1"][4])
	}, nil},
	"a loaded message is delivered, also twice": {func(r *Record) {
		r.deliver("ann/2", 10, lists["chat-1"][2])
		r.deliver("ann/2", 11, lists["chat-1"][2])
	}, nil},
	"a write without an answer had its effect": {func(r *Record) {
		r.insert(4, ViewedMessage{ID: "m4", Side: Visitor, Text: Text(4)})
		r.eachView(func(v *View) {
			v.Messages = append(v.Messages, ViewedMessage{ID: "a4", Side: Bot, Text: "You said: " + Text(4)})
		})
	}, nil},
	"an agent is not told the id of its message": {func(r *Record) { r.write("m3").MessageID = "" }, nil},
	"a webhook names no id": {func(r *Record) {
		r.Webhooks[0].MessageID, r.Webhooks[1].MessageID = "", ""
	}, nil},
	"only a panel has the order of arrival": {func(r *Record) {
		r.Views = slices.DeleteFunc(r.Views, func(v View) bool { return v.Reader == "history" })
		live := View{Reader: "panel live", ChatID: "chat-1", Whole: true, Live: true}
		live.Messages = slices.Clone(lists["chat-1"])
		live.Messages[0], live.Messages[1] = live.Messages[1], live.Messages[0]
		r.Views = slices.Insert(r.Views, 0, live)
	}, nil},

	"a model answers one question, and a failure text the other": {func(r *Record) { r.ofModel() }, nil},
	"a model is interrupted": {func(r *Record) {
		r.ofModel()
		r.change("a20", func(m *ViewedMessage) { m.Text, m.FinishReason = Text(20)+" Fir", "interrupted" })
		r.Drafts[1].Text = Text(20) + " Fir"
	}, nil},

	// What breaks a promise.
	"an answer and a failure text": {func(r *Record) {
		r.ofModel()
		r.insert(9, ViewedMessage{ID: "a21", Side: Bot, Text: Text(21) + " Late."})
		r.AddCompletion(Completion{Question: Text(21), Text: Text(21) + " Late.", Ended: true})
	}, []string{"answered-once"}},
	"a failure text lost for one of two clients": {func(r *Record) {
		r.ofModel()
		r.undeliver("ann/2", sorry)
	}, []string{"accepted-delivered"}},
	"neither an answer nor a failure text": {func(r *Record) {
		r.ofModel()
		r.remove(sorry)
		r.undeliver("ann/1", sorry)
		r.undeliver("ann/2", sorry)
	}, []string{"answered"}},
	"a failure text before its question": {func(r *Record) {
		r.ofModel()
		r.swap("m21", sorry)
	}, []string{"cause-before-effect"}},
	"a failure text for no question": {func(r *Record) {
		r.insert(5, ViewedMessage{ID: "sorry", Side: Bot, Text: FailureText})
	}, []string{"nothing-invented"}},
	"an answer while the agents have the chat": {func(r *Record) {
		r.change("a1", func(m *ViewedMessage) { m.CreatedAt = at(1.5).Format(time.RFC3339Nano) })
		r.AddTurn(Turn{ChatID: "chat-1", Agent: true, Begun: at(0.1), Ended: at(0.2), Done: true})
		r.AddTurn(Turn{ChatID: "chat-1", Begun: at(1.8), Ended: at(1.9), Done: true})
	}, []string{"silent-for-agents"}},
	"an answer after the chat was handed back": {func(r *Record) {
		r.change("a1", func(m *ViewedMessage) { m.CreatedAt = at(1.5).Format(time.RFC3339Nano) })
		r.AddTurn(Turn{ChatID: "chat-1", Agent: true, Begun: at(0.1), Ended: at(0.2), Done: true})
		r.AddTurn(Turn{ChatID: "chat-1", Begun: at(1.4), Ended: at(1.9), Done: true})
	}, nil},
	"an answer while the agents may have the chat": {func(r *Record) {
		r.change("a1", func(m *ViewedMessage) { m.CreatedAt = at(1.5).Format(time.RFC3339Nano) })
		r.AddTurn(Turn{ChatID: "chat-1", Agent: true, Begun: at(0.1), Ended: at(0.2)})
	}, nil},
	"an answer that the model did not write": {func(r *Record) {
		r.ofModel()
		r.change("a20", func(m *ViewedMessage) { m.Text = Text(20) + " First. Second." })
		r.Drafts = nil
	}, []string{"answer-of-model"}},
	"an answer that does not say that it ended early": {func(r *Record) {
		r.ofModel()
		r.change("a20", func(m *ViewedMessage) { m.Text = Text(20) + " First" })
		r.Drafts = nil
	}, []string{"answer-of-model"}},
	"parts of another text than that of the message": {func(r *Record) {
		r.ofModel()
		r.Drafts[1].Text = Text(20) + " First"
	}, []string{"parts-agree"}},
	"parts of two calls": {func(r *Record) {
		r.ofModel()
		r.Drafts[0].Text = Text(20) + " First Second."
	}, []string{"parts-agree"}},
	"messages of two writers at the same time arrive in another order": {func(r *Record) {
		r.write("m6").Begun = at(8.5)
		r.swapDeliveries("m3", "m6")
	}, []string{"one-order"}},
	"an answer before the write": {func(r *Record) { r.remove("m2") }, []string{"accepted-stored"}},
	"a message that one reader lacks": {func(r *Record) {
		v := r.view("panel")
		v.Messages = slices.Delete(v.Messages, 2, 3)
	}, []string{"accepted-stored"}},
	"a message that a reader since later lacks": {func(r *Record) {
		v := r.view("panel live")
		v.SinceFirst = true
		v.Messages = slices.Delete(v.Messages, 1, 2)
	}, []string{"accepted-stored"}},
	"an event twice in a stream": {func(r *Record) {
		r.AddEvent(Event{Stream: "REPLIES", ID: "m2"})
		r.AddEvent(Event{Stream: "OUTBOUND", ID: "m2"})
		r.AddEvent(Event{Stream: "REPLIES", ID: "m2"})
	}, []string{"event-once"}},
	"a message twice in one view": {func(r *Record) {
		r.Views[0].Messages = append(r.Views[0].Messages, r.Views[0].Messages[0])
	}, []string{"accepted-stored"}},
	"no reader has a chat": {func(r *Record) {
		r.Views = slices.DeleteFunc(r.Views, func(v View) bool { return v.ChatID == "chat-2" })
	}, []string{"accepted-stored"}},
	"a message lost for one of two clients": {
		func(r *Record) { r.undeliver("ann/2", "m3") }, []string{"accepted-delivered"},
	},
	"an answer lost for one of two clients": {
		func(r *Record) { r.undeliver("ann/1", "a1") }, []string{"accepted-delivered"},
	},
	"a message lost for a client that loaded nothing": {func(r *Record) {
		r.AddConnect(Connect{Client: "ann/1", ChatID: "chat-1", At: at(11)})
		r.undeliver("ann/1", "m6")
	}, []string{"accepted-delivered"}},
	"a load without a message": {func(r *Record) {
		r.Connects[3].Loaded = []string{"m1", "a1"}
		r.undeliver("ann/2", "m2")
	}, []string{"accepted-delivered"}},
	"a delivery doubled after a recovery": {func(r *Record) {
		r.AddConnect(Connect{Client: "ann/1", ChatID: "chat-1", At: at(14), Recovered: true})
		r.deliver("ann/1", 15, lists["chat-1"][4])
	}, []string{"delivered-once"}},
	"a reader sorts by time alone": {func(r *Record) {
		v := r.view("panel")
		v.Messages[3], v.Messages[4] = v.Messages[4], v.Messages[3]
	}, []string{"one-order"}},
	"a load in another order": {func(r *Record) {
		slices.Reverse(r.Connects[3].Loaded)
	}, []string{"one-order"}},
	"a load in another order, of messages of the same time": {func(r *Record) {
		r.write("m2").Ended = at(10)
		r.Connects[3].Loaded = []string{"m1", "a1", "m3", "m2"}
	}, []string{"one-order"}},
	"messages arrive in another order, one is repeated later": {func(r *Record) {
		again := *r.write("m3")
		again.Begun, again.Ended = at(30), at(31)
		r.AddWrite(again)
		r.swapDeliveries("m3", "m6")
	}, []string{"one-order"}},
	"answers arrive in another order": {func(r *Record) {
		next := Write{Side: Visitor, Actor: "ann", Key: "k7", Text: Text(7), Status: 201, MessageID: "m7"}
		next.Begun, next.Ended = at(2.5), at(3)
		r.AddWrite(next)
		r.insert(2, ViewedMessage{ID: "m7", Side: Visitor, Text: Text(7)})
		r.insert(3, ViewedMessage{ID: "a7", Side: Bot, Text: "You said: " + Text(7)})
		r.swapDeliveries("a1", "a7")
		r.Connects[3].Loaded = []string{"m1", "a1", "m7", "a7", "m2"}
	}, []string{"one-order"}},
	"messages arrive in another order": {
		func(r *Record) { r.swapDeliveries("m3", "m6") }, []string{"one-order"},
	},
	"a load with a hole that a delivery fills": {func(r *Record) {
		r.Connects[3].Loaded = []string{"m1", "m2"}
		r.deliver("ann/2", 6.5, lists["chat-1"][1])
	}, []string{"one-order"}},
	"a writer's retried message in another order": {func(r *Record) {
		r.write("m3").Side, r.Writes[2].Side = Company, Company
		r.write("m3").Actor, r.Writes[2].Actor = "api", "api"
		r.write("m6").SeenIDs = nil
		r.swap("m3", "m6")
		r.swapDeliveries("m3", "m6")
	}, []string{"order-of-writer"}},
	"a writer's messages in another order": {func(r *Record) {
		r.write("m6").SeenIDs = nil
		r.swap("m2", "m6")
		r.swapDeliveries("m2", "m6")
		r.Connects[3].Loaded = []string{"m1", "a1", "m6", "m3", "m2"}
	}, []string{"order-of-writer"}},
	"a message before what its writer had seen": {func(r *Record) {
		r.swap("m3", "m6")
		r.swapDeliveries("m3", "m6")
	}, []string{"cause-before-effect"}},
	"a message before what its writer had seen and what the power then took": {func(r *Record) {
		r.swap("m3", "m6")
		r.swapDeliveries("m3", "m6")
		r.change("m3", func(m *ViewedMessage) { m.CreatedAt = at(12.5).Format(time.RFC3339Nano) })
		r.AddFault(FaultSpan{Fault: Fault{Kind: Power, Target: "nats-disk"}, Begun: at(12.1), Ended: at(12.2)})
	}, nil},
	"a message before what its writer had seen, written again without a power cut": {func(r *Record) {
		r.swap("m3", "m6")
		r.swapDeliveries("m3", "m6")
		r.change("m3", func(m *ViewedMessage) { m.CreatedAt = at(12.5).Format(time.RFC3339Nano) })
	}, []string{"cause-before-effect"}},
	"an answer before its question": {func(r *Record) {
		r.swap("m1", "a1")
		r.swapDeliveries("m1", "a1")
	}, []string{"cause-before-effect"}},
	"a message that was not written": {func(r *Record) {
		r.insert(5, ViewedMessage{ID: "m99", Side: Company, Text: Text(99)})
	}, []string{"nothing-invented"}},
	"a message with the text of another": {func(r *Record) {
		r.Deliveries[len(r.Deliveries)-1].Text = Text(2)
	}, []string{"nothing-invented"}},
	"a message of the other side": {func(r *Record) {
		r.eachView(func(v *View) { v.Messages[len(v.Messages)-1].Side = Visitor })
	}, []string{"nothing-invented"}},
	"an answer twice in a view": {func(r *Record) {
		r.Views[0].Messages = append(r.Views[0].Messages, ViewedMessage{ID: "x"}, ViewedMessage{ID: "x"})
	}, []string{"nothing-invented"}},
	"a key with two effects": {func(r *Record) {
		r.insert(5, ViewedMessage{ID: "m2b", Side: Company, Text: Text(2)})
	}, []string{"key-once"}},
	"a key with two answers": {func(r *Record) {
		again := *r.write("m2")
		again.MessageID = "m2b"
		r.AddWrite(again)
	}, []string{"key-once"}},
	"an id for two keys": {func(r *Record) {
		r.write("m6").SeenIDs = nil
		r.write("m6").MessageID = "m2"
		r.remove("m6")
		r.undeliver("ann/1", "m6")
		r.undeliver("ann/2", "m6")
	}, []string{"nothing-invented", "key-once"}},
	"no answer of the bot": {func(r *Record) {
		r.remove("a1")
		r.undeliver("ann/1", "a1")
		r.undeliver("ann/2", "a1")
	}, []string{"answered"}},
	"a second answer": {func(r *Record) {
		r.insert(5, ViewedMessage{ID: "a1b", Side: Bot, Text: "You said: " + Text(1)})
	}, []string{"answered-once"}},
	"a second answer that only one client got": {func(r *Record) {
		r.deliver("ann/1", 20, ViewedMessage{ID: "a1b", Side: Bot, Text: "You said: " + Text(1)})
	}, []string{"answered-once"}},
	"a status goes back": {func(r *Record) {
		r.AddStatus(Status{MessageID: "m2", Name: "delivered", Source: "api", At: at(30)})
	}, []string{"status-up", "status-told"}},
	"a webhook of a delivery after that of the read": {func(r *Record) {
		r.untell("delivered")
		r.AddStatus(Status{MessageID: "m2", Name: "delivered", Source: "webhook", ReportID: "late", At: at(30)})
	}, []string{"status-up"}},
	"a webhook of a delivery overtakes that of the read": {func(r *Record) {
		r.untell("delivered")
		late := Status{MessageID: "m2", Name: "delivered", Source: "webhook", ReportID: "late", At: at(30)}
		late.Unordered = true
		r.AddStatus(late)
	}, nil},
	"no webhook of a delivery before that of the read": {func(r *Record) { r.untell("delivered") }, nil},
	"no webhook of a read":                             {func(r *Record) { r.untell("read") }, []string{"status-told"}},
	"a second webhook of a delivery": {func(r *Record) {
		r.AddStatus(Status{MessageID: "m2", Name: "delivered", Source: "webhook", ReportID: "again", At: at(5.5)})
	}, []string{"status-told"}},
	"a webhook of a read that the API does not know": {func(r *Record) {
		r.Statuses = slices.DeleteFunc(r.Statuses, func(s Status) bool { return s.Source == "api" && s.Name == "read" })
	}, []string{"status-told"}},
	"a webhook of a read after the API was asked": {func(r *Record) {
		r.AddStatus(Status{MessageID: "m6", Name: "delivered", Source: "webhook", ReportID: "d6", At: at(30)})
		r.AddStatus(Status{MessageID: "m6", Name: "delivered", Source: "api", At: at(31)})
		r.AddStatus(Status{MessageID: "m6", Name: "read", Source: "webhook", ReportID: "r6", At: at(32)})
	}, nil},
	"a stale count": {func(r *Record) { r.Unread[0].Counted++ }, []string{"unread-equal"}},
	"a message in the view of another chat": {func(r *Record) {
		v := &r.Views[slices.IndexFunc(r.Views, func(v View) bool { return v.ChatID == "chat-2" })]
		v.Messages = append(v.Messages, lists["chat-1"][2])
	}, []string{"owned"}},
	"a chat of two visitors": {func(r *Record) {
		r.AddConnect(Connect{Client: "eve/1", Actor: "eve", ChatID: "chat-1", At: at(30), Gone: true})
	}, []string{"owned"}},
	"a delivery to another visitor": {
		func(r *Record) { r.deliver("bob/1", 5, lists["chat-1"][2]) }, []string{"owned"},
	},
	"a load of another visitor":      {func(r *Record) { r.Connects[4].Loaded = []string{"m1"} }, []string{"owned"}},
	"a delivery with the wrong chat": {func(r *Record) { r.Deliveries[0].ChatID = "chat-9" }, []string{"owned"}},
	"a view with the wrong visitor":  {func(r *Record) { r.Views[0].Owner = "eve" }, []string{"owned"}},
	"a view with the wrong company":  {func(r *Record) { r.Views[0].Company = "evil" }, []string{"owned"}},
	"no webhook":                     {func(r *Record) { r.Webhooks = nil }, []string{"webhook-called"}},
	"a new id for a repeated webhook": {
		func(r *Record) { r.Webhooks[1].WebhookID = "h2" }, []string{"webhook-id"},
	},
	"the id of another webhook": {func(r *Record) { r.Webhooks[1].MessageID = "m5" }, []string{"webhook-id"}},
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, test := range breaks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := kept()
			test.change(r)
			violations := Check(r)
			var got []string
			for _, v := range violations {
				if !slices.Contains(got, v.Rule) {
					got = append(got, v.Rule)
				}
				if len(v.History) == 0 {
					t.Errorf("%s: got no history", v.Detail)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v; %+v", got, test.want, violations)
			}
		})
	}
}

func TestEachRuleCanBreak(t *testing.T) {
	t.Parallel()
	broken := map[string]bool{}
	for _, test := range breaks {
		for _, name := range test.want {
			broken[name] = true
		}
	}
	for _, rule := range Rules() {
		if !broken[rule.Name] {
			t.Errorf("no record breaks %s", rule.Name)
		}
	}
}

func TestSaveAndLoad(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "record.json")
	saved := kept()
	if err := saved.Save(path); err != nil {
		t.Fatal(err)
	}
	loaded, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(loaded.notes, saved.notes) {
		t.Errorf("got %+v, want %+v", loaded.notes, saved.notes)
	}
}
