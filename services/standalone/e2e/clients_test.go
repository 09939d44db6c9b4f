package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	parley "github.com/parley-chat/parley/clients/go"
	"github.com/parley-chat/parley/clients/go/clientapi"
	"github.com/parley-chat/parley/clients/go/webhook"
	"github.com/parley-chat/parley/clients/go/widgetapi"
	"github.com/parley-chat/parley/testkit/needs"
)

// lossy is a proxy of the Client API that drops the response to the first message sent.
func lossy(t *testing.T, p place) (address string, lost *atomic.Bool) {
	t.Helper()
	target, err := url.Parse(p.ClientBaseURL)
	check(t, err)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	lost = &atomic.Bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/message/send" || !lost.CompareAndSwap(false, true) {
			proxy.ServeHTTP(w, r)
			return
		}
		proxy.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(server.Close)
	return server.URL, lost
}

// webhookEndpoint creates an endpoint of the demo company for visitors' messages, and returns its secret.
func webhookEndpoint(t *testing.T, s *standalone, url string) (secret string) {
	t.Helper()
	o := newOperator(t, s)
	made := ask[struct {
		ID      string
		Secrets []string
	}](o, "webhooks", "create", "--company", s.CompanyID, "--url", url, "--events", "message.received")
	t.Cleanup(func() {
		remove := exec.Command(o.path, "webhooks", "delete", made.ID, "--yes") // the test's context has ended
		remove.Env = append(o.env, "HOME="+os.Getenv("HOME"))
		if out, err := remove.CombinedOutput(); err != nil {
			t.Errorf("deleting the endpoint: %v: %s", err, out)
		}
	})
	if len(made.Secrets) != 1 {
		t.Fatalf("got the secrets %q, want one", made.Secrets)
	}
	return made.Secrets[0]
}

// The Go client acts as a company and a visitor: a retry after a lost response sends one message, and
// webhooks are verified.
func TestGoClient(t *testing.T) {
	s := commonStandalone(t)
	address, lost := lossy(t, s.place)
	type received struct {
		event webhook.Event
		err   error
	}
	var verifier atomic.Pointer[webhook.Verifier]
	events := make(chan received, 64)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			var e received
			e.event, e.err = verifier.Load().Verify(body, r.Header)
			events <- e
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(receiver.Close)
	v, err := webhook.NewVerifier(webhookEndpoint(t, s, receiver.URL))
	check(t, err)
	verifier.Store(v)

	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	using := parley.WithHTTPClient(&http.Client{Transport: transport, Timeout: limit})
	anonymous, err := parley.NewWidget(s.WidgetBaseURL, "", using)
	check(t, err)
	email := uuid.NewString() + "@example.com"
	registered, err := anonymous.RegisterWithResponse(t.Context(), nil, widgetapi.Registration{AppId: s.AppID, FirstName: new("Ada"), Email: new(email)})
	check(t, err)
	visitor, err := parley.NewWidget(s.WidgetBaseURL, registered.JSON200.AccessToken, using)
	check(t, err)
	var question widgetapi.SendMessageJSONRequestBody
	check(t, question.FromSendText(widgetapi.SendText{Data: widgetapi.TextData{Text: "Where is my order?"}}))
	_, err = visitor.SendMessageWithResponse(t.Context(), nil, question)
	check(t, err)

	wrong, err := parley.NewClient(address, "pat_unknown", using)
	check(t, err)
	_, err = wrong.ListChatsWithResponse(t.Context(), nil)
	var refused *parley.Error
	if !errors.As(err, &refused) || refused.Code != "UNAUTHORIZED" || refused.RequestID == "" {
		t.Errorf("with an unknown token: got %v, want UNAUTHORIZED with the id of the request", err)
	}
	company, err := parley.NewClient(address, s.AccessToken, using)
	check(t, err)
	chats, err := company.ListChatsWithResponse(t.Context(), &clientapi.ListChatsParams{Email: new(email)})
	check(t, err)
	chatID := (*chats.JSON200)[0].ChatId
	var body clientapi.SendMessageJSONRequestBody
	check(t, body.FromSendText(clientapi.SendText{ChatId: chatID, Data: clientapi.TextData{Text: "It is on its way."}}))
	answered, err := company.SendMessageWithResponse(t.Context(), nil, body)
	check(t, err)
	sent, err := answered.JSON200.AsMessageSent()
	check(t, err)
	if !lost.Load() || answered.HTTPResponse.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("got %v, want the first answer again", answered.HTTPResponse.Header)
	}

	eventually(t, "the message is stored", func() error {
		got, err := company.GetMessageWithResponse(t.Context(), sent.MessageId, nil)
		if err == nil && got.JSON200.Status == "accepted" {
			err = errors.New("it is only accepted")
		}
		return err
	})
	times := 0
	for m, err := range parley.All(func(page clientapi.RequestEditorFn) (http.Header, *[]clientapi.Message, error) {
		answer, err := company.ListMessagesWithResponse(t.Context(), chatID, &clientapi.ListMessagesParams{Limit: new(2)}, page)
		if err != nil {
			return nil, nil, err
		}
		return answer.HTTPResponse.Header, answer.JSON200, nil
	}) {
		check(t, err)
		if text, err := m.AsTextMessage(); err == nil && text.Data.Text == "It is on its way." {
			times++
		}
	}
	if times != 1 {
		t.Errorf("got the message %d times in the chat, want once", times)
	}

	for {
		select {
		case e := <-events:
			check(t, e.err)
			var got webhook.MessageReceived
			check(t, json.Unmarshal(e.event.Data, &got))
			if got.ChatId != chatID {
				continue // of another test's visitor
			}
			if e.event.Type != "message.received" || got.Message.Type != "TEXT" {
				t.Errorf("got %s with %+v, want the visitor's text", e.event.Type, got)
			}
			return
		case <-time.After(limit):
			t.Fatal("no webhook arrived")
		}
	}
}

// The TypeScript client does the same in Node; clients.mjs has the checks.
func TestTypeScriptClient(t *testing.T) {
	node := needs.Program(t, "node")
	s := commonStandalone(t)
	address, lost := lossy(t, s.place)
	config, err := json.Marshal(map[string]string{"client": address, "widget": s.WidgetBaseURL, "accessToken": s.AccessToken, "appId": s.AppID})
	check(t, err)
	c, input, err := spawnWithInput("clients.mjs", nil, node, "clients.mjs", string(config))
	check(t, err)
	c.stopAtEnd(t)
	receiver, found := strings.CutPrefix(<-c.lines, "listening ")
	if !found {
		t.Fatalf("clients.mjs did not start:\n%s", c.stderr)
	}
	_, err = fmt.Fprintln(input, webhookEndpoint(t, s, receiver))
	check(t, err)
	finish(t, c)
	if !lost.Load() {
		t.Error("no answer was lost")
	}
}

// TestClientsInstall runs the commands of docs/clients.md with this repository as the clone, then imports
// what they have installed.
func TestClientsInstall(t *testing.T) {
	needs.Program(t, "npm")
	needs.Packages(t)
	guide := readFile(t, "../../../docs/clients.md")
	blocks := regexp.MustCompile("(?s)```bash\n(.*?)```\n").FindAllStringSubmatch(guide, -1)
	if len(blocks) != 2 {
		t.Fatalf("got %d blocks, want one for TypeScript and one for Go", len(blocks))
	}
	dir, packed := t.TempDir(), t.TempDir()
	program := filepath.Join(dir, "program")
	check(t, os.Mkdir(program, 0o700))
	check(t, os.Symlink(root(), filepath.Join(dir, "parley")))
	check(t, os.WriteFile(filepath.Join(program, "main.go"), []byte(goProgram), 0o600))
	check(t, os.WriteFile(filepath.Join(program, "main.mjs"), []byte(nodeProgram), 0o600))
	install := strings.NewReplacer(
		"git clone https://github.com/parley-chat/parley ../parley\n", "npm init --yes > /dev/null\n", "npm ci && ", "",
		"--pack-destination clients/typescript", "--pack-destination "+packed, "../parley/clients/typescript/parley-client", packed+"/parley-client",
	).Replace(blocks[0][1])
	run := exec.CommandContext(t.Context(), "bash", "-c", "set -eu -o pipefail\ngo mod init example.com/program\n"+install+blocks[1][1]+
		"tar -tzf "+packed+"/*.tgz\nnode main.mjs\ngo run .\n")
	run.Dir = program
	run.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "npm_config_offline=true", "npm_config_audit=false", "npm_config_fund=false")
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"package/README.md", "package/LICENSE", "package/dist/index.js", "package/dist/index.d.ts", "TypeScript: function", "Go: true"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("got no %q in\n%s", want, out)
		}
	}
	if strings.Contains(string(out), "package/src/") || strings.Contains(string(out), "package/test") {
		t.Errorf("got sources or tests in the package:\n%s", out)
	}
}

// TestWidgetInstall runs the commands of docs/widget.md with this repository as the clone, then imports what they have installed.
func TestWidgetInstall(t *testing.T) {
	needs.Program(t, "npm")
	needs.Packages(t)
	block := regexp.MustCompile("(?s)```bash\n(.*?)```\n").FindStringSubmatch(readFile(t, "../../../docs/widget.md"))
	if block == nil {
		t.Fatal("got no commands")
	}
	dir, packed := t.TempDir(), t.TempDir()
	check(t, os.Symlink(root(), filepath.Join(dir, "parley")))
	program := filepath.Join(dir, "program")
	check(t, os.Mkdir(program, 0o700))
	install := strings.NewReplacer(
		"git clone https://github.com/parley-chat/parley ../parley\n", "npm init --yes > /dev/null\n",
		"--pack-destination web/widget", "--pack-destination "+packed, "../parley/web/widget/parley-widget", packed+"/parley-widget",
	).Replace(block[1])
	const load = "import { load } from '@parley/widget'; console.log('Widget:', typeof load)"
	run := exec.CommandContext(t.Context(), "bash", "-c",
		"set -eu -o pipefail\n"+install+"node --input-type=module -e \""+load+"\"\nls node_modules/@parley/widget/package\n")
	run.Dir = program
	run.Env = append(os.Environ(), "npm_config_offline=true", "npm_config_audit=false", "npm_config_fund=false")
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"Widget: function", "index.d.ts", "react.d.ts"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("got no %q in\n%s", want, out)
		}
	}
}

const nodeProgram = `import { createClient } from '@parley/client';
console.log('TypeScript:', typeof createClient({ baseUrl: 'https://api.example.com', accessToken: 'x' }).getChat);
`

const goProgram = `package main

import (
	"fmt"

	parley "github.com/parley-chat/parley/clients/go"
)

func main() {
	client, err := parley.NewClient("https://api.example.com", "x")
	fmt.Println("Go:", client != nil && err == nil)
}
`
