package bot

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/testkit/timetest"
)

// wish is a tool that a model wants to call, or its text if the tool has no name.
type wish struct{ tool, arguments, text string }

// wishes is a model that answers each request with the next wishes, and keeps what it was asked.
type wishes struct {
	mu    sync.Mutex
	next  [][]wish
	asked []completionRequest
}

func (m *wishes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request completionRequest
	_ = json.NewDecoder(r.Body).Decode(&request)
	m.mu.Lock()
	m.asked = append(m.asked, request)
	step := []wish{{text: "Done."}}
	if len(m.next) > 0 {
		step, m.next = m.next[0], m.next[1:]
	}
	m.mu.Unlock()
	write(w, step)
}

// write streams the wishes of one step.
func write(w http.ResponseWriter, step []wish) {
	w.Header().Set("Content-Type", "text/event-stream")
	finish := "stop"
	for i, one := range step {
		delta := map[string]any{"content": one.text}
		if one.tool != "" {
			finish = "tool_calls"
			half := len(one.arguments) / 2 // arguments come in parts
			for n, part := range []string{one.arguments[:half], one.arguments[half:]} {
				call := map[string]any{"index": i, "function": map[string]string{"arguments": part}}
				if n == 0 {
					call["id"] = fmt.Sprint("call", i)
					call["function"] = map[string]string{"name": one.tool, "arguments": part}
				}
				send(w, map[string]any{"tool_calls": []any{call}}, nil)
			}
			continue
		}
		send(w, delta, nil)
	}
	send(w, map[string]any{}, finish)
}

func send(w http.ResponseWriter, delta map[string]any, finish any) {
	body, _ := json.Marshal(map[string]any{
		"choices": []any{map[string]any{"delta": delta, "finish_reason": finish}},
		"usage":   map[string]int{"prompt_tokens": 10, "completion_tokens": 1},
	})
	fmt.Fprintf(w, "data: %s\n\n", body)
}

// last returns the messages of the last request.
func (m *wishes) last() []completionMessage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked[len(m.asked)-1].Messages
}

// shop is a server of tools: one reads, one changes something.
type shop struct {
	mu        sync.Mutex
	cancelled []string
	visitors  []string // as JSON
	fail      bool
	said      string // beside a status
}

func (s *shop) handler() http.Handler {
	server := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	type input struct {
		Order string `json:"order"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "order.status", Description: "Where an order is"},
		func(_ context.Context, r *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			visitor, _ := json.Marshal(r.Params.Meta[MetaVisitor])
			s.visitors = append(s.visitors, string(visitor))
			if s.fail {
				return nil, nil, fmt.Errorf("the warehouse is closed")
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Order + " is on its way" + s.said}}}, nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "cancel_order", Description: "Cancels an order"},
		func(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.cancelled = append(s.cancelled, in.Order)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "cancelled " + in.Order}}}, nil, nil
		})
	options := &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, options)
}

func (s *shop) orders() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.cancelled...)
}

// actions is a store of actions, with one visitor.
type actions struct {
	mu      sync.Mutex
	byID    map[string]bots.Action
	visitor chat.Visitor
}

func (a *actions) AddBotAction(_ context.Context, of bots.Action) (bots.Action, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known, ok := a.byID[of.ID]; ok {
		return known, nil
	}
	a.byID[of.ID] = of
	return of, nil
}

func (a *actions) BotAction(_ context.Context, id string) (bots.Action, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok := a.byID[id]
	if !ok {
		return known, apperr.BotActionNotFound.New()
	}
	return known, nil
}

func (a *actions) MoveBotAction(_ context.Context, of bots.Action, from bots.ActionState) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byID[of.ID].State != from {
		return apperr.ChangedMeanwhile.New()
	}
	a.byID[of.ID] = of
	return nil
}

func (a *actions) Visitor(context.Context, string) (chat.Visitor, error) { return a.visitor, nil }

// toolWorld is a router of an application whose model may use the shop.
type toolWorld struct {
	*Router
	model   *wishes
	shop    *shop
	actions *actions
	ledger  *ledger
	bots    *manyConnections
}

// manyConnections has bots, and more than one connection.
type manyConnections struct {
	publishedBots
	more map[string]bots.Connection
}

func (m *manyConnections) ModelConnection(ctx context.Context, id string) (bots.Connection, error) {
	if c, ok := m.more[id]; ok {
		return c, nil
	}
	return m.publishedBots.ModelConnection(ctx, id)
}

func shopTools() []bots.Tool {
	return []bots.Tool{
		{Name: "order.status", Effect: bots.Reads},
		{Name: "cancel_order", Effect: bots.Changes, Question: "Cancel order {order}?"},
	}
}

func openToolWorld(t *testing.T, next ...[]wish) *toolWorld {
	t.Helper()
	w := &toolWorld{model: &wishes{next: next}, shop: &shop{}, ledger: &ledger{}}
	w.actions = &actions{byID: map[string]bots.Action{}, visitor: chat.Visitor{
		UserID: "u-7", Email: "written@example.com", VerifiedBy: "userId",
	}}
	shopServer := httptest.NewServer(w.shop.handler())
	t.Cleanup(shopServer.Close)
	p := modelBot(t, w.model, bots.Bounds{})
	w.bots = &manyConnections{publishedBots: *p, more: map[string]bots.Connection{
		"shop": {ID: "shop", CompanyID: "company", BaseURL: shopServer.URL, APIKey: "shop-secret"},
	}}
	w.publish(bots.ToolSettings{Servers: []bots.ToolServer{{ConnectionID: "shop", Tools: shopTools()}}, Agree: "Ja"})
	w.Router = w.process(t)
	return w
}

// process returns the router of another process.
func (w *toolWorld) process(t *testing.T) *Router {
	t.Helper()
	calls := w.ledger.process(t, 1)
	hooks, err := NewWebhook(WebhookConfig{CallConfig: calls})
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewLLM(LLMConfig{Histories: recent(nil), Actions: w.actions, Visitors: w.actions, CallConfig: calls})
	if err != nil {
		t.Fatal(err)
	}
	r := NewRouter(RouterConfig{Bots: w.bots, Allow: []netip.Prefix{localhost}, Demo: NewDemo(""), Webhook: hooks, LLM: l})
	t.Cleanup(r.Close)
	return r
}

func (w *toolWorld) publish(s bots.ToolSettings) {
	settings := bots.Settings{Kind: bots.Model, Model: bots.ModelSettings{ConnectionID: "c1", Model: "small", Tools: s}}
	w.bots.publish(appOne, settings)
}

// says returns the answer to a message.
func (w *toolWorld) says(t *testing.T, r *Router, e event.VisitorMessageAccepted) Result {
	t.Helper()
	result, err := r.Answer(t.Context(), e, unseen)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// pressed returns the visitor's answer with a button of a question.
func pressed(t *testing.T, asked event.VisitorMessageAccepted, question Answer, button int) event.VisitorMessageAccepted {
	t.Helper()
	var data struct {
		Body    string
		Buttons []struct{ Title, Payload string }
	}
	if err := json.Unmarshal(question.Data, &data); err != nil || question.Type != chat.Interactive || len(data.Buttons) != 2 {
		t.Fatalf("got %+v, %v, want a question", question, err)
	}
	reply, _ := json.Marshal(map[string]string{"text": data.Buttons[button].Title, "payload": data.Buttons[button].Payload})
	e := asked
	e.Message = chat.Message{ID: chat.NewID(), CreatedAt: time.Now(), Type: chat.MultipleChoiceReply, Data: reply}
	return e
}

func TestAToolThatReadsIsCalledAtOnce(t *testing.T) {
	t.Parallel()
	w := openToolWorld(t,
		[]wish{{text: "One moment."}, {tool: "order_status", arguments: `{"order":"A1"}`}},
		[]wish{{text: "A1 is on its way."}},
	)
	result := w.says(t, w.Router, wroteTo(appOne))
	if got, want := textOf(result), "One moment.\n\nA1 is on its way."; got != want || len(result.Messages) != 1 {
		t.Errorf("got %q, want %q", got, want)
	}
	last := w.model.last()
	if told := last[len(last)-1]; told.Role != roleTool || told.Content != "A1 is on its way" || told.ToolCallID == "" {
		t.Errorf("the model is told %+v", told)
	}
	visitor := w.shop.visitors[0]
	if !strings.Contains(visitor, `"verified":{"by":"userId","value":"u-7"}`) || strings.Contains(visitor, "written@") {
		t.Errorf("the tool is told %s, want what is proven", visitor)
	}
	timetest.Until(t, "the call is logged", func() bool { return len(w.ledger.logged()) == 1 })
	got := w.ledger.logged()[0]
	if len(got.Tools) != 1 || got.Tools[0].Outcome != bots.ToolOK || got.InputTokens != 20 || strings.Contains(fmt.Sprint(got), "shop-secret") {
		t.Errorf("the log has %+v", got)
	}
}

func TestAToolThatChangesSomethingAsksFirst(t *testing.T) {
	t.Parallel()
	wanted := []wish{{tool: "cancel_order", arguments: `{"order":"A1"}`}}
	for name, c := range map[string]struct {
		button    int
		change    func(w *toolWorld, question bots.Action)
		cancelled int
		told      string
	}{
		"agreed":   {told: "cancelled A1", cancelled: 1},
		"declined": {button: 1, told: toldDeclined},
		"late": {told: toldLate, change: func(w *toolWorld, a bots.Action) {
			a.AskedAt = a.AskedAt.Add(-bots.ActionValid - time.Minute)
			w.actions.byID[a.ID] = a
		}},
		"no longer allowed": {told: toldForbidden, change: func(w *toolWorld, _ bots.Action) {
			w.publish(bots.ToolSettings{Servers: []bots.ToolServer{{ConnectionID: "shop", Tools: shopTools()[:1]}}})
		}},
		"broken off before": {told: toldUnknown, change: func(w *toolWorld, a bots.Action) {
			a.State = bots.ActionRunning
			w.actions.byID[a.ID] = a
		}},
		"asked in another chat": {told: "", change: func(w *toolWorld, a bots.Action) {
			a.ChatID = chat.NewID()
			w.actions.byID[a.ID] = a
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openToolWorld(t, wanted)
			asked := wroteTo(appOne)
			result := w.says(t, w.Router, asked)
			if len(w.shop.orders()) != 0 || len(result.Messages) != 1 {
				t.Fatalf("before the visitor agrees: cancelled %v, answered %+v", w.shop.orders(), result.Messages)
			}
			question := result.Messages[0]
			if !strings.Contains(string(question.Data), `"body":"Cancel order A1?"`) || !strings.Contains(string(question.Data), `"Ja"`) {
				t.Errorf("got the question %s", question.Data)
			}
			action := w.actions.byID[chat.AnswerID(asked.Message.ID, questionIndex)]
			if c.change != nil {
				c.change(w, action)
			}
			decided := pressed(t, asked, question, c.button)
			if got := textOf(w.says(t, w.Router, decided)); got != "Done." {
				t.Errorf("got the answer %q", got)
			}
			last := w.model.last()
			told := last[len(last)-1]
			if c.told != "" && told.Content != c.told || c.told == "" && told.Role == roleTool {
				t.Errorf("the model is told %+v, want %q", told, c.told)
			}
			// Another process reads the same message again, and the visitor presses again.
			again := w.process(t)
			w.says(t, again, decided)
			w.says(t, again, pressed(t, asked, question, c.button))
			if got := w.shop.orders(); len(got) != c.cancelled {
				t.Errorf("cancelled %v, want %d", got, c.cancelled)
			}
		})
	}
}

// Hostile wishes of a model call nothing that the company has not allowed, and end.
func TestWhatAModelWantsIsBounded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		wish wish
		told string
	}{
		"a tool that is not allowed": {wish{tool: "delete_everything", arguments: `{}`}, `There is no tool "delete_everything".`},
		"no object":                  {wish{tool: "order_status", arguments: `["A1"]`}, "The arguments are no JSON object, or too long."},
		"broken JSON":                {wish{tool: "order_status", arguments: `{"order":`}, "The arguments are no JSON object, or too long."},
		"long arguments": {
			wish{tool: "cancel_order", arguments: `{"order":"` + strings.Repeat("é", chat.MaxTextLength) + `"}`},
			"The arguments are too long to be shown to the visitor, so this cannot be done.",
		},
	} {
		w := openToolWorld(t, []wish{c.wish})
		w.says(t, w.Router, wroteTo(appOne))
		last := w.model.last()
		if told := last[len(last)-1].Content; told != c.told {
			t.Errorf("%s: the model is told %q, want %q", name, told, c.told)
		}
		if len(w.shop.orders()) > 0 {
			t.Errorf("%s: cancelled %v", name, w.shop.orders())
		}
	}

	var endless [][]wish
	for range 3 * maxSteps {
		endless = append(endless, []wish{{tool: "order_status", arguments: `{"order":"A1"}`}})
	}
	w := openToolWorld(t, endless...)
	w.says(t, w.Router, wroteTo(appOne))
	if n := len(w.shop.visitors); n != maxSteps {
		t.Errorf("called %d tools, want %d", n, maxSteps)
	}
	if last := w.model.asked[len(w.model.asked)-1]; len(w.model.asked) != maxSteps+1 || last.ToolChoice != "none" {
		t.Errorf("asked %d times, the last time with the choice %q", len(w.model.asked), last.ToolChoice)
	}
}

func TestAFailureOfAToolIsToldToTheModel(t *testing.T) {
	t.Parallel()
	w := openToolWorld(t, []wish{{tool: "order_status", arguments: `{"order":"A1"}`}})
	w.shop.fail = true
	w.says(t, w.Router, wroteTo(appOne))
	last := w.model.last()
	if told := last[len(last)-1].Content; told != "the warehouse is closed" {
		t.Errorf("the model is told %q", told)
	}
	w.bots.more["shop"] = bots.Connection{ID: "shop", CompanyID: "company", BaseURL: "http://127.0.0.1:1/", APIKey: "secret"}
	if got := textOf(w.says(t, w.Router, wroteTo(appOne))); got != "Done." {
		t.Errorf("without the server the answer is %q", got)
	}
	timetest.Until(t, "the calls are logged", func() bool { return len(w.ledger.logged()) == 2 })
	wanted := bots.ToolUse{Name: "list of tools", Outcome: bots.ToolFailed, Result: "No answer: connection refused"}
	logged := func(c bots.Call) bool {
		return slices.ContainsFunc(c.Tools, func(u bots.ToolUse) bool { u.Milliseconds = 0; return u == wanted })
	}
	if !slices.ContainsFunc(w.ledger.logged(), logged) {
		t.Errorf("the log has %+v, want %+v", w.ledger.logged(), wanted)
	}
}

func TestQuestionsShowAllArguments(t *testing.T) {
	for arguments, want := range map[string]string{
		`{"order":"A1"}`: "Cancel A1?",
		`{"order":"A1","refund":true,"amount":10.50}`:  "Cancel A1?\n\namount: 10.50\nrefund: true",
		`{"order":"A\n1 {refund}","refund":{"a":[1]}}`: "Cancel A 1 {refund}?\n\nrefund: {\"a\":[1]}",
		`{}`: "Cancel {order}?",
	} {
		object, ok := objectOf(arguments)
		if got, _ := questionOf("Cancel {order}?", object); !ok || got != want {
			t.Errorf("%s: got %q, want %q", arguments, got, want)
		}
	}
}

// A probe asks the servers of tools too, and the panel lists their tools.
func TestToolsAreChecked(t *testing.T) {
	t.Parallel()
	w := openToolWorld(t)
	probe := func(change func(*bots.ToolServer)) *bots.CallFailure {
		s := bots.ToolServer{ConnectionID: "shop", Tools: shopTools()}
		change(&s)
		settings := bots.Settings{Kind: bots.Model, Model: bots.ModelSettings{
			ConnectionID: "c1", Model: "small", Tools: bots.ToolSettings{Servers: []bots.ToolServer{s}},
		}}
		call, err := w.Test(t.Context(), bots.Test{CompanyID: "company", AppID: appOne, Settings: settings, Probe: true})
		if err != nil {
			t.Fatal(err)
		}
		return call.Failure
	}
	if f := probe(func(*bots.ToolServer) {}); f != nil {
		t.Errorf("got %+v, want no failure", f)
	}
	f := probe(func(s *bots.ToolServer) { s.Tools[1].Name = "unknown" })
	if f == nil || f.Field != "model.tools.servers[0].tools[1].name" {
		t.Errorf("an unknown tool: got %+v", f)
	}
	listed, err := w.Tools(t.Context(), bots.ToolsOf{CompanyID: "company", ConnectionID: "shop"})
	if err != nil || len(listed.Tools) != 2 || listed.Tools[0].Name != "cancel_order" {
		t.Errorf("got the tools %+v, %v", listed, err)
	}
	if _, err := w.Tools(t.Context(), bots.ToolsOf{CompanyID: "another", ConnectionID: "shop"}); apperr.CodeOf(err) != apperr.NotFound {
		t.Errorf("another company gets %v", err)
	}
}

// A test calls tools that read. It shows what the visitor would be asked, and changes nothing.
func TestToolsInATest(t *testing.T) {
	t.Parallel()
	w := openToolWorld(t,
		[]wish{{tool: "order_status", arguments: `{"order":"A1"}`}},
		[]wish{{tool: "cancel_order", arguments: `{"order":"A1"}`}},
	)
	settings := bots.Settings{Kind: bots.Model, Model: bots.ModelSettings{
		ConnectionID: "c1", Model: "small",
		Tools: bots.ToolSettings{Servers: []bots.ToolServer{{ConnectionID: "shop", Tools: shopTools()}}},
	}}
	e := newMessage("Cancel A1")
	call, err := w.Test(t.Context(), bots.Test{
		CompanyID: "company", AppID: appOne, ChatUserID: e.ChatUserID, Message: e.Message, Settings: settings, Made: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	var outcomes []bots.ToolOutcome
	for _, use := range call.Tools {
		outcomes = append(outcomes, use.Outcome)
	}
	if !slices.Equal(outcomes, []bots.ToolOutcome{bots.ToolOK, bots.ToolAsked}) || call.Failure != nil {
		t.Errorf("got %+v, %+v", call.Tools, call.Failure)
	}
	if asked := len(w.actions.byID); asked != 0 || len(w.shop.orders()) != 0 {
		t.Errorf("got %d stored questions and the cancelled orders %v, want none", asked, w.shop.orders())
	}
}
