package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/testkit/nemesis"
)

// widgetPage is a page with the widget in a browser of its own. Its visitor writes through it and looks at it; the
// widget itself connects, loads and sends.
//
// It begins with newWidgetGuest and ends with close. Its methods are called by one goroutine at a time.
type widgetPage struct {
	of       *guest
	child    *child
	commands io.Writer
}

// newWidgetGuest opens the widget and registers a visitor with it.
func (w *nemesisWorld) newWidgetGuest(t *testing.T, name string) *guest {
	t.Helper()
	at := w.place
	at.WidgetBaseURL = w.startEntry(t)
	at.SiteURL = startWidgetSite(t, at)
	c, commands := startScenario(t, "./widget/nemesis.mjs", "visit", at, nil)
	g := &guest{world: w, name: name, chance: w.chance(name)}
	g.page = &widgetPage{of: g, child: c, commands: commands}
	var registered struct{ Token, Email string }
	check(t, g.page.read(&registered))
	g.visitor = &visitor{place: at, api: w.widget, token: registered.Token, email: registered.Email}
	_, g.chatID = w.chatUser(t, g.visitor)
	return g
}

// startEntry starts the address of the widget: as a load balancer it passes on the requests of sockets to the gateways,
// and the others to the Widget API, over the links of the clients.
func (w *nemesisWorld) startEntry(t *testing.T) (baseURL string) {
	t.Helper()
	gateways, err := url.Parse(w.SocketURLs[0])
	check(t, err)
	widgetAPI, err := url.Parse(w.WidgetBaseURL)
	check(t, err)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	entry := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			to := widgetAPI
			if strings.HasPrefix(r.In.URL.Path, "/socket.io/") {
				to = gateways
			}
			r.SetURL(to)
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	server := httptest.NewServer(entry)
	t.Cleanup(server.Close)
	return server.URL
}

// startWidgetSite starts a site that embeds the widget.
func startWidgetSite(t *testing.T, p place) (baseURL string) {
	t.Helper()
	const page = `<!doctype html><html lang="en"><title>Site</title>` +
		`<script async src="%s/widget.js" data-app-id="%s"></script><body></body>`
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, page, p.WidgetBaseURL, p.AppID)
	}))
	t.Cleanup(site.Close)
	return site.URL
}

// command asks the page to do something, with the members of the command.
func (p *widgetPage) command(answer any, op string, members map[string]any) error {
	command := map[string]any{"op": op}
	for name, value := range members {
		command[name] = value
	}
	line, err := json.Marshal(command)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(p.commands, "%s\n", line); err != nil {
		return err
	}
	return p.read(answer)
}

// read reads the answer to a command.
func (p *widgetPage) read(answer any) error {
	line, open := <-p.child.lines
	if !open {
		<-p.child.ended
		return fmt.Errorf("the page has ended:\n%s", p.child.stderr)
	}
	return json.Unmarshal([]byte(line), answer)
}

// try is command for what has no answer. It reports whether the page has done it.
func (p *widgetPage) try(op string, members map[string]any) bool {
	err := p.command(&struct{}{}, op, members)
	if err != nil {
		p.of.world.breach(ruleRecovers, "the widget of %s, %s: %v", p.of.name, op, err)
	}
	return err == nil
}

// act lets the visitor write, and lose the network now and then, until ctx ends.
func (p *widgetPage) act(ctx context.Context) {
	chance := p.of.chance
	for pause(ctx, chance, 1500*time.Millisecond) {
		if chance.IntN(100) < 92 {
			p.say()
			continue
		}
		if !p.try("offline", nil) {
			return
		}
		pause(ctx, chance, 4*time.Second)
		p.try("online", nil)
	}
}

// say writes a message. The widget sends it until it is accepted; a message for which the visitor does not wait any
// more is recorded as one without an answer.
func (p *widgetPage) say() {
	write := p.of.write()
	var got struct {
		ID   string
		Seen []string
	}
	write.Begun = time.Now()
	err := p.command(&got, "write", map[string]any{"text": write.Text})
	write.Ended = time.Now()
	if err != nil {
		p.of.world.breach(ruleRecovers, "the widget of %s: %v", p.of.name, err)
	}
	write.SeenIDs = got.Seen
	write.MessageID = got.ID
	if got.ID != "" {
		write.Status = http.StatusCreated
	}
	p.of.world.noteAttempt(write)
}

// collect records what the widget shows, when it shows the newest message of the history, or should.
func (p *widgetPage) collect(history []record) {
	newest := history[len(history)-1].ID
	if !p.try("await", map[string]any{"id": newest, "patience": quietLimit.Milliseconds()}) {
		return
	}
	var shown struct {
		Messages []struct {
			ID, Text      string
			IsMine, IsCut bool
		}
	}
	if err := p.command(&shown, "show", nil); err != nil {
		p.of.world.breach(ruleRecovers, "the widget of %s: %v", p.of.name, err)
		return
	}
	var messages []record
	for _, m := range shown.Messages {
		data := map[string]string{"text": m.Text}
		if m.IsCut {
			data["finishReason"] = "shown"
		}
		encoded, _ := json.Marshal(data) // cannot fail
		messages = append(messages, record{ID: m.ID, Data: encoded, IsFromSupport: !m.IsMine})
	}
	p.of.world.addView("widget", p.of, messages, nemesis.View{Owner: p.of.name, Whole: true})
}

// close ends the page. It fails the test if the page has thrown an error.
func (p *widgetPage) close(t *testing.T) {
	t.Helper()
	_, err := fmt.Fprintln(p.commands, `{"op":"end"}`)
	check(t, err)
	finish(t, p.child)
}
