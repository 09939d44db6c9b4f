package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
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
	failed   bool
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

const (
	// awaitPatience is how long the page waits for the newest message: a lost connection is noticed after two pings.
	awaitPatience = 60 * time.Second
	// pagePatience is how long the page may take for a command.
	pagePatience = 90 * time.Second
)

// command asks the page to do something, with the members of the command. A page that fails or hangs breaks a rule, and
// does nothing any more.
func (p *widgetPage) command(answer any, op string, members map[string]any) (ok bool) {
	if p.failed {
		return false
	}
	err := p.ask(answer, op, members)
	if err != nil {
		p.failed = true
		p.of.world.breach(ruleRecovers, "the widget of %s, %s %v: %v", p.of.name, op, members, err)
	}
	return err == nil
}

func (p *widgetPage) ask(answer any, op string, members map[string]any) error {
	command := map[string]any{"op": op}
	maps.Copy(command, members)
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
	select {
	case line, open := <-p.child.lines:
		if !open {
			<-p.child.ended
			return fmt.Errorf("the page has ended:\n%s", p.child.stderr)
		}
		return json.Unmarshal([]byte(line), answer)
	case <-time.After(pagePatience):
		return fmt.Errorf("no answer within %v", pagePatience)
	}
}

// act lets the visitor write, and lose the network now and then, until ctx ends.
func (p *widgetPage) act(ctx context.Context) {
	chance := p.of.chance
	for !p.failed && pause(ctx, chance, 1500*time.Millisecond) {
		if chance.IntN(100) < 92 {
			p.say()
			continue
		}
		p.command(&struct{}{}, "offline", nil)
		pause(ctx, chance, 4*time.Second)
		p.command(&struct{}{}, "online", nil)
	}
}

// say writes a message. The widget sends it until it is accepted; a message for which the visitor does not wait any
// more is recorded as one without an answer.
func (p *widgetPage) say() {
	if p.failed {
		return
	}
	write := p.of.write()
	var got struct {
		ID   string
		Seen []string
	}
	write.Begun = time.Now()
	p.command(&got, "write", map[string]any{"text": write.Text})
	write.Ended = time.Now()
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
	p.command(&struct{}{}, "await", map[string]any{"id": newest, "patience": awaitPatience.Milliseconds()})
	var shown struct {
		Messages []struct {
			ID, Text      string
			IsMine, IsCut bool
		}
	}
	if !p.command(&shown, "show", nil) {
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
	if p.failed {
		return
	}
	_, err := fmt.Fprintln(p.commands, `{"op":"end"}`)
	check(t, err)
	finish(t, p.child)
}
