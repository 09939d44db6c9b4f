package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	parley "github.com/parley-chat/parley/clients/go"
	"github.com/parley-chat/parley/clients/go/clientapi"
	"github.com/parley-chat/parley/testkit/httpapitest"
	"github.com/parley-chat/parley/testkit/needs"
	"github.com/parley-chat/parley/testkit/nemesis"
)

// companyWriter is a system of the company that writes to visitors through the Client API.
type companyWriter struct {
	name string
	send sender
}

// sender sends a message to a chat. An official client tries several times under the key, which counts as one attempt.
type sender func(key, chatID, text string) (httpapitest.Response, error)

// newCompanyWriter returns a writer that uses plain HTTP or an official client, as chance selects.
func (w *nemesisWorld) newCompanyWriter(t *testing.T, name string) *companyWriter {
	t.Helper()
	writer := &companyWriter{name: name, send: w.sendByHTTP}
	switch w.chance(name + " client").IntN(3) {
	case 1:
		writer.send = w.goClient(t)
	case 2:
		writer.send = w.typeScriptClient(t)
	}
	return writer
}

// errClientEnded is the error of a client program that has ended, which no retry mends.
var errClientEnded = errors.New("the client has ended")

func (w *nemesisWorld) sendByHTTP(key, chatID, text string) (httpapitest.Response, error) {
	body := map[string]any{"type": "TEXT", "chatId": chatID, "data": map[string]string{"text": text}}
	token, idempotencyKey := accessToken(w.AccessToken), header{"Idempotency-Key", key}
	return w.company.try(http.MethodPost, "/message/send", body, token, idempotencyKey)
}

// goClient returns a sender that uses the Go client.
func (w *nemesisWorld) goClient(t *testing.T) sender {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	using := parley.WithHTTPClient(&http.Client{Transport: transport, Timeout: requestTimeout})
	company, err := parley.NewClient(w.ClientBaseURL, w.AccessToken, using)
	check(t, err)
	return func(key, chatID, text string) (httpapitest.Response, error) {
		message := clientapi.SendText{ChatId: chatID, Data: clientapi.TextData{Text: text}}
		var body clientapi.SendMessageJSONRequestBody
		if err := body.FromSendText(message); err != nil {
			return httpapitest.Response{}, err
		}
		params := &clientapi.SendMessageParams{IdempotencyKey: &key}
		got, err := company.SendMessageWithResponse(w.over, params, body)
		if refused, ok := errors.AsType[*parley.Error](err); ok {
			return httpapitest.Response{Status: refused.StatusCode, Body: refused.Message}, nil
		}
		if err != nil {
			return httpapitest.Response{}, err
		}
		return httpapitest.Response{Status: got.StatusCode(), Body: string(got.Body)}, nil
	}
}

// typeScriptClient returns a sender that uses the TypeScript client in a process of its own.
func (w *nemesisWorld) typeScriptClient(t *testing.T) sender {
	t.Helper()
	node := needs.Program(t, "node")
	config, err := json.Marshal(map[string]any{
		"client": w.ClientBaseURL, "accessToken": w.AccessToken, "timeout": requestTimeout.Milliseconds(),
	})
	check(t, err)
	c, commands, err := spawnWithInput("company.mjs", nil, node, "company.mjs", string(config))
	check(t, err)
	c.stopAtEnd(t)
	return func(key, chatID, text string) (got httpapitest.Response, err error) {
		command, err := json.Marshal(map[string]string{"key": key, "chatId": chatID, "text": text})
		if err != nil {
			return got, err
		}
		if _, err := fmt.Fprintf(commands, "%s\n", command); err != nil {
			t.Errorf("company.mjs: %v:\n%s", err, c.stderr)
			return got, errClientEnded
		}
		line, open := <-c.lines
		if !open {
			t.Errorf("company.mjs has ended:\n%s", c.stderr)
			return got, errClientEnded
		}
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			return got, err
		}
		return got, nil
	}
}

// say writes a message to a visitor.
func (c *companyWriter) say(w *nemesisWorld, chance *rand.Rand, to *guest) {
	write := w.write(nemesis.Company, c.name, to.chatID)
	write.WebhookExpected = true
	w.insist(chance, write, func(key header) (httpapitest.Response, error) {
		return c.send(key.value, to.chatID, write.Text)
	})
}

// act writes to visitors, and asks for the status of messages, until ctx ends.
func (c *companyWriter) act(ctx context.Context, w *nemesisWorld) {
	chance := w.chance(c.name)
	for pause(ctx, chance, 500*time.Millisecond) {
		if chance.IntN(100) < 80 {
			c.say(w, chance, w.guests[chance.IntN(len(w.guests))])
			continue
		}
		if id := w.anySent(chance); id != "" {
			_ = w.tryStatus(id) // the next one says more
		}
	}
}

// recentlySent is how many messages of the company are asked for their status now and then.
const recentlySent = 200

// anySent returns the id of one of the company's newest messages; empty: there is none.
func (w *nemesisWorld) anySent(chance *rand.Rand) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	newest := w.sent[max(0, len(w.sent)-recentlySent):]
	if len(newest) == 0 {
		return ""
	}
	return newest[chance.IntN(len(newest))]
}
