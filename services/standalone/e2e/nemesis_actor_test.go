package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/testkit/httpapitest"
	"github.com/parley-chat/parley/testkit/nemesis"
)

// The actors of a run.
const (
	guests         = 12
	guestsOfAgents = 3 // of these, the visitors that agents answer
	guestsInTurns  = 2 // those after them, whose chats an agent takes and hands back; the bot answers the others
	writersOfAPI   = 3 // of the company
	agents         = 2
	legacyShare    = 3 // one in so many clients has version 2, in a run with such clients
)

// guest is a visitor who writes, reads, leaves and comes back.
type guest struct {
	*visitor
	world   *nemesisWorld
	name    string
	chatID  string
	byAgent bool // agents have the chat: the bot is silent
	chance  *rand.Rand
	tabs    []*browserTab // open ones; nil: closed
	page    *widgetPage   // instead of tabs; nil: there is none

	inTurns    bool // an agent takes the chat and hands it back, until the last faults have ended
	handedBack bool // for the last time
}

// populate registers the webhook, signs the agents in, and registers the visitors, each with one client or two, in half
// of the runs also one with the widget. The agents take their visitors over.
func (w *nemesisWorld) populate(t *testing.T) {
	t.Helper()
	w.company = w.client(t, w.ClientBaseURL)
	w.widget = w.client(t, w.WidgetBaseURL)
	w.panel = w.client(t, w.PanelURL)
	w.endpoint = w.newEndpoint(t)
	for range agents {
		w.agents = append(w.agents, newAgent(t, w.place, w.panel))
	}
	for n := range writersOfAPI {
		w.writers = append(w.writers, w.newCompanyWriter(t, fmt.Sprintf("company-%d", n+1)))
	}
	for n := range guests {
		at := w.place
		if w.model != nil && n%2 == 1 {
			at.AppID = w.model.appID
		}
		g := &guest{
			visitor: register(t, at, w.widget),
			world:   w,
			name:    fmt.Sprintf("visitor-%d", n+1),
			byAgent: n < guestsOfAgents,
			inTurns: n >= guestsOfAgents && n < guestsOfAgents+guestsInTurns,
		}
		_, g.chatID = w.chatUser(t, g.visitor)
		g.chance = w.chance(g.name)
		g.tabs = make([]*browserTab, 1+g.chance.IntN(2))
		if g.byAgent {
			eventually(t, "an agent takes a chat over", func() error { return w.giveChat(g, true) })
		}
		for n := range g.tabs {
			g.open(t, n)
		}
		w.guests = append(w.guests, g)
	}
	if w.chance("widget").IntN(2) == 0 {
		w.guests = append(w.guests, w.newWidgetGuest(t, fmt.Sprintf("visitor-%d", guests+1)))
	}
}

// open opens one of the visitor's clients, on a way that chance selects.
func (g *guest) open(t *testing.T, n int) {
	t.Helper()
	ways := transports()
	way := ways[g.chance.IntN(len(ways))]
	legacy := g.world.legacy && g.chance.IntN(legacyShare) == 0
	g.tabs[n] = g.openTab(t, n+1, legacy, way)
}

// giveChat gives a visitor's chat to the agents or to the bot. After an error it may have had an effect.
func (w *nemesisWorld) giveChat(g *guest, toAgents bool) error {
	a, path := w.agents[0], w.panelPath(g, "/control")
	side := map[bool]string{true: "agent", false: "bot"}[toAgents]
	turn := nemesis.Turn{ChatID: g.chatID, Agent: toAgents, Begun: time.Now()}
	got, err := a.api.try(http.MethodPut, path, map[string]string{"control": side}, a.cookie, a.csrf)
	if err == nil && got.Status != http.StatusOK {
		err = &refusedError{"PUT " + path, got.Status, got.Body}
	}
	turn.Ended, turn.Done = time.Now(), err == nil
	w.record.AddTurn(turn)
	return err
}

// takeTurns lets an agent take a chat over and hand it back, again and again. At the end the bot has it.
func (w *nemesisWorld) takeTurns(ctx context.Context, g *guest) {
	chance, byAgent := w.chance("turns of "+g.name), false
	for pause(ctx, chance, 6*time.Second) {
		byAgent = !byAgent
		_ = w.giveChat(g, byAgent) // the record knows that it is uncertain
	}
	for w.giveChat(g, false) != nil {
		if !pause(w.over, chance, time.Second) {
			return
		}
	}
}

// act lets all actors act until ctx ends, and returns when all have finished what they began.
func (w *nemesisWorld) act(ctx context.Context, t *testing.T) {
	var actors sync.WaitGroup
	for _, g := range w.guests {
		actors.Go(func() { g.act(ctx, t) })
		if g.inTurns {
			actors.Go(func() { w.takeTurns(ctx, g) })
		}
	}
	for _, c := range w.writers {
		actors.Go(func() { c.act(ctx, w) })
	}
	for n, a := range w.agents {
		actors.Go(func() { w.answerAsAgent(ctx, fmt.Sprintf("agent-%d", n+1), a) })
	}
	actors.Wait()
}

// pause waits as people do between two actions. It returns false when ctx has ended.
func pause(ctx context.Context, chance *rand.Rand, most time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(time.Duration(chance.Int64N(int64(most)))):
		return true
	}
}

// act lets the visitor act.
func (g *guest) act(ctx context.Context, t *testing.T) {
	if g.page != nil {
		g.page.act(ctx)
		return
	}
	for pause(ctx, g.chance, 800*time.Millisecond) {
		n := g.chance.IntN(len(g.tabs))
		switch action := g.chance.IntN(100); {
		case g.tabs[n] == nil && action < 50:
			g.open(t, n)
		case action < 70:
			g.say()
		case action < 73:
			g.upload()
		case g.tabs[n] == nil:
		case action < 80:
			g.tabs[n].emit(t, "typing")
		case action < 88:
			g.readUpTo(t, g.tabs[n])
		case action < 92:
			g.tabs[n].leave(t)
			g.tabs[n] = nil
		case action < 96 && g.tabs[n].isOnline(): // a client that connects would not notice that it comes back
			g.tabs[n].drop(t)
			pause(ctx, g.chance, 4*time.Second)
			g.tabs[n].reconnect(t)
		}
	}
}

// readUpTo reports over the socket, or over HTTP, that the visitor has read the newest message of a client.
func (g *guest) readUpTo(t *testing.T, b *browserTab) {
	id := b.newestReceived()
	switch {
	case id == "":
	case g.chance.IntN(2) == 0:
		b.emit(t, "read", map[string]string{"messageId": id})
	default:
		_, _ = g.api.try(http.MethodPost, "/message/"+id+"/read", nil, bearer(g.token)) // the next report says more
	}
}

// newest returns what the visitor has seen, on the first open client.
func (g *guest) newest() []string {
	for _, b := range g.tabs {
		if b != nil {
			return b.newest()
		}
	}
	return nil
}

// say writes a message.
func (g *guest) say() {
	if g.page != nil {
		g.page.say()
		return
	}
	write := g.write()
	body := map[string]any{"type": "TEXT", "data": map[string]string{"text": write.Text}}
	g.world.insist(g.chance, write, func(key header) (httpapitest.Response, error) {
		return g.api.try(http.MethodPost, "/message", body, bearer(g.token), key)
	})
}

// write begins a message of the visitor.
func (g *guest) write() nemesis.Write {
	write := g.world.write(nemesis.Visitor, g.name, g.chatID)
	write.SeenIDs = g.newest()
	write.AnswerExpected = !g.byAgent && (!g.inTurns || g.handedBack)
	write.WebhookExpected = true
	return write
}

// upload sends a small file, with the text as its caption.
func (g *guest) upload() {
	write := g.write()
	const form = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"note.txt\"\r\n" +
		"Content-Type: text/plain\r\n\r\nA note.\r\n" +
		"--b\r\nContent-Disposition: form-data; name=\"caption\"\r\n\r\n%s\r\n--b--\r\n"
	body := fmt.Sprintf(form, write.Text)
	contentType := header{"Content-Type", "multipart/form-data; boundary=b"}
	g.world.insist(g.chance, write, func(key header) (httpapitest.Response, error) {
		return g.api.try(http.MethodPost, "/message", body, bearer(g.token), contentType, key)
	})
}

// write begins a message.
func (w *nemesisWorld) write(side nemesis.Side, actor, chatID string) nemesis.Write {
	return nemesis.Write{Side: side, Actor: actor, ChatID: chatID, Key: uuid.NewString(), Text: w.text(side)}
}

// Of a hundred writers that get no answer, so many give up; the others try again with the same key until they have one.
const givesUp = 5

// insist sends a message until it has a definite answer, and records each attempt.
func (w *nemesisWorld) insist(
	chance *rand.Rand, write nemesis.Write, send func(key header) (httpapitest.Response, error),
) {
	key := header{"Idempotency-Key", write.Key}
	for {
		write.Begun = time.Now()
		got, err := send(key)
		write.Ended = time.Now()
		if errors.Is(err, errClientEnded) {
			return
		}
		write.Status, write.MessageID = 0, ""
		if err == nil {
			write.Status = got.Status
		}
		if write.Accepted() {
			var answer struct{ ID, MessageID string }
			_ = json.Unmarshal([]byte(got.Body), &answer)  // the contract is checked
			write.MessageID = answer.ID + answer.MessageID // one of them
		}
		w.noteAttempt(write)
		if write.Accepted() {
			w.noteSent(write)
			return
		}
		if !mayRetry(write.Status) {
			w.breach(ruleAnswers, "%s: got %d %s, which no fault explains", write.Actor, got.Status, got.Body)
			return
		}
		if chance.IntN(100) < givesUp || !pause(w.over, chance, time.Second) {
			return
		}
	}
}

// noteAttempt records and counts an attempt.
func (w *nemesisWorld) noteAttempt(write nemesis.Write) {
	w.record.AddWrite(write)
	if write.Accepted() {
		w.accepted.Add(1)
	} else {
		w.failed.Add(1)
	}
}

// noteSent notes a message of the company, for its status.
func (w *nemesisWorld) noteSent(write nemesis.Write) {
	if write.Side != nemesis.Company {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, write.MessageID)
}

// mayRetry reports whether a request may be sent again after a response of a status; 0: none.
func mayRetry(status int) bool {
	switch status {
	case 0, http.StatusConflict, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return true
	}
	return false
}

// answerAsAgent writes to the visitors of the agents in the panel, and reads what they write.
func (w *nemesisWorld) answerAsAgent(ctx context.Context, name string, a *agent) {
	chance := w.chance(name)
	for pause(ctx, chance, 1500*time.Millisecond) {
		to := w.guests[chance.IntN(guestsOfAgents)]
		switch action := chance.IntN(100); {
		case action < 70:
			w.sayAsAgent(chance, name, a, to)
		case action < 75:
			a.leave()
			pause(ctx, chance, 4*time.Second)
			a.follow()
		case action < 87:
			_, _ = a.api.try(http.MethodPost, w.panelPath(to, "/read"), map[string]any{}, a.cookie, a.csrf)
		default:
			_, _ = a.api.try(http.MethodPost, w.panelPath(to, "/typing"), nil, a.cookie, a.csrf)
		}
	}
}

// sayAsAgent writes a message to a visitor.
func (w *nemesisWorld) sayAsAgent(chance *rand.Rand, name string, a *agent, to *guest) {
	write := w.write(nemesis.Agent, name, to.chatID)
	shown, _ := a.shown(to.chatID)
	write.SeenIDs = shown[max(0, len(shown)-seenByWriter):]
	body := map[string]any{"type": "TEXT", "data": map[string]string{"text": write.Text}}
	w.insist(chance, write, func(key header) (httpapitest.Response, error) {
		return a.api.try(http.MethodPost, w.panelPath(to, "/messages"), body, a.cookie, a.csrf, key)
	})
}

// panelPath returns the path of an operation of the panel on a visitor's chat.
func (w *nemesisWorld) panelPath(of *guest, operation string) string {
	return "/api/chats/" + of.chatID + operation + "?companyId=" + w.CompanyID
}
