package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// eventRetry is how long a panel waits before it connects again.
const eventRetry = 100 * time.Millisecond

// agent is a signed-in user's panel: it follows the company's events, and loads its chats after a reset, as the web
// panel does. It begins with newAgent; follow and leave connect it and end that, in turn.
type agent struct {
	api     *api
	events  *http.Client
	url     string // of the event stream
	cookie  header
	csrf    header // of requests that change something
	leaving context.CancelFunc
	left    chan struct{} // closed when it has disconnected

	mu     sync.Mutex    // guards the rest
	last   string        // id of the last event
	live   chan struct{} // closed when it has everything
	stale  bool          // a reset was sent, and the chats are not loaded yet
	resets int
	chats  map[string]*shownChat
}

// shownChat is what a panel shows of a chat: ids of messages.
type shownChat struct {
	loaded []string // what it showed before the last reset, and the newest page after it
	live   []string // events since the last reset
	reset  bool     // there was one
}

// newAgent signs in to the panel and follows the events.
func newAgent(t *testing.T, p place, panel *api) *agent {
	t.Helper()
	credentials := map[string]string{"email": p.PanelEmail, "password": p.PanelPassword}
	fromPanel := header{"X-CSRF-Token", "none yet"}
	got := panel.call(t, http.MethodPost, "/api/session", credentials, fromPanel)
	if got.Status != http.StatusOK {
		t.Fatalf("signing in: got %d %s, want 200", got.Status, got.Body)
	}
	var cookies []string
	for _, line := range got.Header.Values("Set-Cookie") {
		cookie, _, _ := strings.Cut(line, ";")
		cookies = append(cookies, cookie)
	}
	var session struct{ CSRFToken string }
	got.Into(t, &session)
	transport := &http.Transport{ResponseHeaderTimeout: eventSilence / 2}
	t.Cleanup(transport.CloseIdleConnections)
	a := &agent{
		api:    panel,
		events: &http.Client{Transport: transport},
		url:    p.PanelURL + "/api/events?companyId=" + p.CompanyID,
		cookie: header{"Cookie", strings.Join(cookies, "; ")},
		csrf:   header{"X-CSRF-Token", session.CSRFToken},
		chats:  map[string]*shownChat{},
	}
	a.follow()
	t.Cleanup(a.leave)
	a.awaitLive(t, time.Now().Add(limit))
	return a
}

// follow connects the panel, which then connects again whenever it is disconnected.
func (a *agent) follow() {
	ctx, cancel := context.WithCancel(context.Background())
	a.leaving, a.left = cancel, make(chan struct{})
	a.mu.Lock()
	a.live = make(chan struct{})
	a.mu.Unlock()
	go func() {
		defer close(a.left)
		for ctx.Err() == nil {
			_ = a.read(ctx) // the power failed, or the panel disconnects those that are too slow
			select {
			case <-ctx.Done():
			case <-time.After(eventRetry):
			}
		}
	}()
}

// awaitLive waits until the panel has everything up to now, for the first time since it follows.
func (a *agent) awaitLive(t *testing.T, deadline time.Time) {
	t.Helper()
	a.mu.Lock()
	live := a.live
	a.mu.Unlock()
	select {
	case <-live:
	case <-time.After(time.Until(deadline)):
		t.Error("the panel's events: not live in time")
	}
}

// leave disconnects the panel.
func (a *agent) leave() {
	a.leaving()
	<-a.left
}

// read reads one event stream to its end.
func (a *agent) read(ctx context.Context) error {
	a.mu.Lock()
	last := a.last
	a.mu.Unlock()
	address := a.url
	if last != "" {
		address += "&lastEventId=" + url.QueryEscape(last)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	r.Header.Set(a.cookie.name, a.cookie.value)
	answer, err := a.events.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the panel's events: got %s", answer.Status)
	}
	silent := time.AfterFunc(eventSilence, func() { answer.Body.Close() })
	defer silent.Stop()
	return readEvents(watched{answer.Body, silent}, a.receive)
}

// eventSilence is how long a panel waits for a sign of life: the server sends one each 15 s.
const eventSilence = 20 * time.Second

// watched starts a timer anew with each read that has returned something.
type watched struct {
	io.Reader
	silent *time.Timer
}

func (w watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if n > 0 {
		w.silent.Reset(eventSilence)
	}
	return n, err
}

func (a *agent) receive(event serverEvent) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch event.name {
	case "reset":
		a.resets++
		a.stale = true
	case "message":
		var e struct {
			ChatID  string
			Message struct{ ID string }
		}
		if err := json.Unmarshal([]byte(event.data), &e); err != nil {
			return err
		}
		c := a.chat(e.ChatID)
		c.live = append(c.live, e.Message.ID)
	}
	if a.stale {
		if err := a.load(); err != nil {
			return err // the panel tries again when it is connected
		}
	}
	if event.id != "" {
		a.last = event.id
	}
	if event.name == "ready" {
		a.sawLive()
	}
	return nil
}

// sawLive ends [agent.awaitLive]. The caller holds mu.
func (a *agent) sawLive() {
	select {
	case <-a.live:
	default:
		close(a.live)
	}
}

// chat returns a chat. The caller holds mu.
func (a *agent) chat(id string) *shownChat {
	c := a.chats[id]
	if c == nil {
		c = &shownChat{}
		a.chats[id] = c
	}
	return c
}

// load loads the newest page of each chat, and adds it to what is shown. The caller holds mu.
func (a *agent) load() error {
	const page = "/messages?limit=200"
	for id, c := range a.chats {
		got, err := a.api.try(http.MethodGet, "/api/chats/"+id+page, nil, a.cookie)
		if err != nil {
			return err
		}
		if got.Status != http.StatusOK {
			return fmt.Errorf("loading a chat: got %d %s", got.Status, got.Body)
		}
		var loaded struct{ Messages []struct{ ID string } }
		if err := json.Unmarshal([]byte(got.Body), &loaded); err != nil {
			return err
		}
		ids := slices.Concat(c.loaded, c.live)
		for _, m := range loaded.Messages {
			ids = append(ids, m.ID)
		}
		slices.Sort(ids)
		*c = shownChat{loaded: slices.Compact(ids), reset: true}
	}
	a.stale = false
	return nil
}

// shown returns what the panel shows of a chat: what it has loaded, then the events, and whether that is the whole chat
// as it arrived. An event that was loaded is shown once. After a reset the panel sorts by time.
func (a *agent) shown(chatID string) (ids []string, whole bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.chats[chatID]
	if c == nil {
		return nil, a.resets == 0
	}
	ids = slices.Clone(c.loaded)
	for _, id := range c.live {
		if !slices.Contains(c.loaded, id) {
			ids = append(ids, id)
		}
	}
	return ids, !c.reset && a.resets == 0
}
