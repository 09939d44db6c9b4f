package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/httpapitest"
	"github.com/parley-chat/parley/testkit/nemesis"
)

const (
	// quietTime is how long nothing may arrive any more before the run is over: longer than a consumer waits for an
	// acknowledgement before it delivers again (6 s).
	quietTime = 8 * time.Second
	// quietLimit bounds the wait for that.
	quietLimit = 90 * time.Second
	// mostUnread is up to where the APIs count unread messages.
	mostUnread = 100
	// pageSize makes the lists of the APIs have several pages.
	pageSize = 50
)

// awaitQuiet waits until nothing arrives any more, the statuses are handled, and each client has the newest message: a
// client of which the connection was lost notices that after the time of two pings.
func (w *nemesisWorld) awaitQuiet(t *testing.T) {
	t.Helper()
	js := plainJetStream(t, w.natsURL("operator"))
	before, since := 0, time.Now()
	until(time.Now().Add(quietLimit), func() bool {
		arrived, current := w.countArrived(t)
		if arrived != before {
			before, since = arrived, time.Now()
		}
		time.Sleep(quietTime / 8)
		return current && time.Since(since) > quietTime && isHandled(t.Context(), js, subject.Status)
	})
}

// isHandled reports whether the consumers that stay have acknowledged each event of a stream.
func isHandled(ctx context.Context, js jetstream.JetStream, name string) bool {
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return false
	}
	consumers := stream.ListConsumers(ctx)
	handled := true
	for c := range consumers.Info() {
		isIdle := c.NumPending == 0 && c.NumAckPending == 0
		handled = handled && (isIdle || c.Config.Durable == "")
	}
	return handled && consumers.Err() == nil
}

// countArrived counts what readers have, and reports whether each client has the newest message to its visitor.
func (w *nemesisWorld) countArrived(t *testing.T) (n int, current bool) {
	current = true
	for _, g := range w.guests {
		history, err := g.tryHistory()
		if err != nil {
			t.Logf("a history at the end: %v", err)
		}
		n += len(history)
		for _, b := range g.tabs {
			shown := b.shown()
			n += len(shown)
			current = current && hasNewest(shown, history)
		}
		for _, a := range w.agents {
			shown, _ := a.shown(g.chatID)
			n += len(shown)
		}
	}
	return n + w.endpoint.count(), current
}

// hasNewest reports whether a client shows the newest message to its visitor.
func hasNewest(shown, history []record) bool {
	for _, newest := range slices.Backward(history) {
		if newest.IsFromSupport {
			return slices.ContainsFunc(shown, func(r record) bool { return r.ID == newest.ID })
		}
	}
	return true
}

// collect records what each reader has in the end.
func (w *nemesisWorld) collect(t *testing.T) {
	t.Helper()
	for _, g := range w.guests {
		history := w.collectHistory(t, g)
		w.collectExport(t, g)
		w.collectPanel(t, g)
		w.collectUnreadOfPanel(t, g, history)
		w.collectLive(g, history)
		if g.page != nil {
			g.page.collect(history)
		}
		for _, b := range g.tabs {
			w.addView("page of "+b.name, g, b.shown(), nemesis.View{Owner: g.name, Live: true})
		}
	}
	w.collectEvents(t)
	w.collectStatuses()
	w.collectPending(t)
}

// addView records a list of messages.
func (w *nemesisWorld) addView(reader string, of *guest, messages []record, v nemesis.View) {
	v.Reader, v.ChatID = reader, of.chatID
	for _, r := range messages {
		v.Messages = append(v.Messages, nemesis.ViewedMessage{
			ID: r.ID, Side: w.sideOf(r), Text: spoken(r), CreatedAt: r.CreatedAt, FinishReason: finishReason(r),
		})
	}
	w.record.AddView(v)
}

// collectHistory records the visitor's history, and the number of unread messages in it.
func (w *nemesisWorld) collectHistory(t *testing.T, g *guest) []record {
	t.Helper()
	var history []record
	var head http.Header
	eventually(t, "the history of "+g.name, func() (err error) {
		got, err := g.api.try(http.MethodGet, "/message?limit=1", nil, bearer(g.token))
		if err != nil {
			return err
		}
		head = got.Header
		history, err = g.tryHistory()
		return err
	})
	w.addView("history", g, history, nemesis.View{Owner: g.name, Whole: true})
	counted, err := strconv.Atoi(head.Get("Parley-Unread"))
	if err != nil {
		return history // it is not known
	}
	readUpTo, unread := head.Get("Parley-Read-Up-To"), 0
	for _, r := range slices.Backward(history) {
		if r.ID == readUpTo {
			break
		}
		if r.IsFromSupport {
			unread++
		}
	}
	w.record.AddUnread(nemesis.Unread{
		ChatID: g.chatID, Reader: g.name, Counted: counted, Actual: min(unread, mostUnread),
	})
	return history
}

// collectExport records the Client API's list of the chat.
func (w *nemesisWorld) collectExport(t *testing.T, g *guest) {
	t.Helper()
	var all []record
	base := "/chats/" + g.chatID + "/messages"
	for query := fmt.Sprintf("?limit=%d", pageSize); query != ""; {
		var got httpapitest.Response
		eventually(t, "the messages of a chat", func() (err error) {
			got, err = w.company.try(http.MethodGet, base+query, nil, accessToken(w.AccessToken))
			return notOK(got, err)
		})
		var page []record
		got.Into(t, &page)
		all = append(page, all...)
		query = nextLink(got.Header.Get("Link"))
	}
	w.addView("client api", g, all, nemesis.View{Company: w.CompanyID, Whole: true})
}

// nextLink returns the target of the link to the next page (RFC 8288); empty: there is none.
func nextLink(link string) string {
	target, rest, _ := strings.Cut(strings.TrimPrefix(link, "<"), ">")
	if !strings.Contains(rest, `rel="next"`) {
		return ""
	}
	return target
}

// notOK returns an error for a response that is not 200.
func notOK(got httpapitest.Response, err error) error {
	if err == nil && got.Status != http.StatusOK {
		err = fmt.Errorf("got %d %s, want 200", got.Status, got.Body)
	}
	return err
}

// collectPanel records the panel's list of the chat.
func (w *nemesisWorld) collectPanel(t *testing.T, g *guest) {
	t.Helper()
	var all []record
	a := w.agents[0]
	for cursor := ""; ; {
		path := w.panelPath(g, "/messages") + fmt.Sprintf("&limit=%d&cursor=%s", pageSize, cursor)
		var got httpapitest.Response
		eventually(t, "the messages of a chat in the panel", func() (err error) {
			got, err = a.api.try(http.MethodGet, path, nil, a.cookie)
			return notOK(got, err)
		})
		var page struct {
			Messages []record
			Next     *string
		}
		got.Into(t, &page)
		all = append(page.Messages, all...)
		if page.Next == nil {
			break
		}
		cursor = *page.Next
	}
	w.addView("panel history", g, all, nemesis.View{Company: w.CompanyID, Whole: true})
}

// collectUnreadOfPanel lets an agent read half of a chat that the bot answers, and records the number of unread
// messages. The agents have read an unknown part of the others.
func (w *nemesisWorld) collectUnreadOfPanel(t *testing.T, g *guest, history []record) {
	t.Helper()
	if g.byAgent || g.inTurns {
		return
	}
	a, upTo := w.agents[0], history[len(history)/2].CreatedAt
	unread := 0
	for _, r := range history {
		if !r.IsFromSupport && r.CreatedAt > upTo {
			unread++
		}
	}
	var chat struct{ UnreadCount int }
	eventually(t, "an agent reads", func() error {
		body := map[string]string{"upTo": upTo}
		got, err := a.api.try(http.MethodPost, w.panelPath(g, "/read"), body, a.cookie, a.csrf)
		if err == nil && got.Status != http.StatusNoContent {
			err = &refusedError{"POST /read", got.Status, got.Body}
		}
		if err != nil {
			return err
		}
		got, err = a.api.try(http.MethodGet, w.panelPath(g, ""), nil, a.cookie)
		if err := notOK(got, err); err != nil {
			return err
		}
		return json.Unmarshal([]byte(got.Body), &chat)
	})
	w.record.AddUnread(nemesis.Unread{
		ChatID: g.chatID, Reader: "the panel", Counted: chat.UnreadCount, Actual: min(unread, mostUnread),
	})
}

// collectLive records what the panels have of the chat. They know ids; the history has the rest. A panel sorts what it
// has received, by time and id, as the history does. After a reset it lacks what is older than the page that it loaded.
func (w *nemesisWorld) collectLive(g *guest, history []record) {
	for n, a := range w.agents {
		ids, whole := a.shown(g.chatID)
		var shown []record
		for _, r := range history {
			if slices.Contains(ids, r.ID) {
				shown = append(shown, r)
			}
		}
		view := nemesis.View{Company: w.CompanyID, Whole: whole, SinceFirst: true}
		w.addView(fmt.Sprintf("panel live agent-%d", n+1), g, shown, view)
	}
}

// collectEvents records the events of the streams that connectors and other systems may read.
func (w *nemesisWorld) collectEvents(t *testing.T) {
	t.Helper()
	js := plainJetStream(t, w.natsURL("operator"))
	for _, stream := range []string{subject.Inbound, subject.Replies, subject.Sends, subject.Outbound} {
		eachStreamed(t, js, stream, func(id string) {
			w.record.AddEvent(nemesis.Event{Stream: stream, ID: id})
		})
	}
}

// collectStatuses records the statuses of the company's messages.
func (w *nemesisWorld) collectStatuses() {
	w.mu.Lock()
	ids := w.sent
	w.mu.Unlock()
	deadline := time.Now().Add(limit) // for all: after it each is asked once
	for _, id := range ids {
		var err error
		until(deadline, func() bool {
			err = w.tryStatus(id)
			return err == nil
		})
		if err != nil {
			w.breach(ruleAnswers, "the status of the accepted message %s: %v", id, err)
		}
	}
}

// tryStatus records the status of a message.
func (w *nemesisWorld) tryStatus(id string) error {
	got, err := w.company.try(http.MethodGet, "/message/"+id, nil, accessToken(w.AccessToken))
	if err := notOK(got, err); err != nil {
		return err
	}
	var status struct{ Status string }
	if err := json.Unmarshal([]byte(got.Body), &status); err != nil {
		return err
	}
	w.record.AddStatus(nemesis.Status{MessageID: id, Name: status.Status, At: time.Now(), Source: "client api"})
	return nil
}

// collectPending records the webhooks that wait for a further attempt as received: the third one comes five minutes
// after the second.
func (w *nemesisWorld) collectPending(t *testing.T) {
	t.Helper()
	type delivery struct{ ID, Body string }
	var pending []delivery // the newest first
	a := w.agents[0]
	for cursor := ""; ; {
		path := fmt.Sprintf(
			"/api/webhooks/%s/deliveries?companyId=%s&status=pending&cursor=%s", w.endpoint.id, w.CompanyID, cursor,
		)
		var got httpapitest.Response
		eventually(t, "the webhooks that wait", func() (err error) {
			got, err = a.api.try(http.MethodGet, path, nil, a.cookie)
			return notOK(got, err)
		})
		var page struct {
			Deliveries []delivery
			Next       *string
		}
		got.Into(t, &page)
		pending = append(pending, page.Deliveries...)
		if page.Next == nil {
			break
		}
		cursor = *page.Next
	}
	for _, d := range slices.Backward(pending) {
		var body webhookBody
		check(t, json.Unmarshal([]byte(d.Body), &body))
		w.endpoint.note(body, d.ID)
	}
	t.Logf("%d webhooks wait for a further attempt", len(pending))
}
