package bot

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/webhook"
	"github.com/parley-chat/parley/services/processor/internal/excerpt"
)

const (
	// maxAnswer bounds the body of a webhook's answer, in bytes.
	maxAnswer = 256 << 10
	// maxAnswers bounds the number of messages in one answer.
	maxAnswers = 10
)

// WebhookConfig configures the servers that answer for bots.
type WebhookConfig struct {
	URL    string // of the operator's server, http or https; empty: there is none
	Secret string // of the operator's server, whsec_ and the key in base64
	CallConfig
}

// Problems returns the invalid settings by environment variable.
func (c WebhookConfig) Problems() []string {
	var problems []string
	if !config.WebURL(c.URL) {
		problems = append(problems, "BOT_WEBHOOK_URL must be an http or https URL when BOT=webhook")
	}
	if s := c.secret(); s.Kind() != webhook.HMAC || s.Check() != nil {
		problems = append(problems, "BOT_WEBHOOK_SECRET must be whsec_ and 24 to 64 bytes in base64 when BOT=webhook")
	}
	return append(problems, c.CallConfig.Problems()...)
}

func (c WebhookConfig) secret() webhook.Secret { return webhook.Secret{Value: c.Secret} }

// Webhook lets other servers answer, those of the operator and of companies: it posts every message of a visitor,
// signed as Standard Webhooks, with the event's JSON as body. The answer may have
// {"messages":[{"type":...,"data":{...}}]}, which become replies, and "handover", which hands the chat to the agents.
//
// A retry has the same webhook-id, so that the server can recognise it. A permanent error is not retried. An
// answer may also be text/event-stream: its text is streamed to the visitor.
//
// Answer and Forget, which make it an [Answerer], are those of the embedded caller; Answer calls post for one request.
type Webhook struct{ caller }

// NewWebhook returns a webhook without opening a connection.
func NewWebhook(c WebhookConfig) (*Webhook, error) {
	w := &Webhook{}
	w.open("webhook", c.CallConfig, w.post)
	if c.URL == "" {
		return w, nil
	}
	if problems := c.Problems(); len(problems) > 0 {
		return nil, errors.New(problems[0])
	}
	w.standard = w.target(bots.WebhookSettings{URL: c.URL}, []webhook.Secret{c.secret()}, w.client)
	return w, nil
}

// target returns the server of a bot's settings.
func (w *Webhook) target(s bots.WebhookSettings, secrets []webhook.Secret, client *http.Client) *target {
	var hidden []string
	for _, secret := range secrets {
		hidden = append(hidden, secret.Value, strings.TrimPrefix(secret.Value, "whsec_"))
	}
	deadline := time.Duration(s.DeadlineSeconds) * time.Second
	return &target{
		url:      s.URL,
		client:   client,
		hidden:   excerpt.Secrets(s.URL, hidden...),
		deadline: cmp.Or(deadline, w.deadline),
		secrets:  secrets,
		kind:     bots.Webhook,
	}
}

// post makes one call; see [caller].
func (w *Webhook) post(
	ctx context.Context,
	x *exchange,
	e event.VisitorMessageAccepted,
	begin Begin,
) (Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	request, err := w.request(ctx, x.target, e)
	if err != nil {
		return Result{}, err
	}
	response, err := do(x.target.client, request)
	if err != nil {
		return Result{}, w.unavailable(err)
	}
	defer response.Body.Close()
	if err := w.refusal(x.target, response); err != nil {
		return Result{}, err
	}
	if isEventStream(response) {
		return w.stream(ctx, cancel, response.Body, begin)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return Result{}, w.unavailable(fmt.Errorf("reading the answer: %w", err))
	}
	return w.parseAnswers(body)
}

// stream reads an answer in text/event-stream: events with {"text":"..."}, of which the first may have a format, and at
// the end one with the data [DONE] or of the type done, whose data may hold the messages after the text.
func (w *Webhook) stream(
	ctx context.Context,
	cancel context.CancelCauseFunc,
	body io.Reader,
	begin Begin,
) (Result, error) {
	events := newEventReader(body, maxAnswer)
	var after Result
	var format chat.Format
	result, err := show(ctx, cancel, begin, w.silence, func() (piece, error) {
		p, more, err := w.next(events)
		after = more
		format = cmp.Or(format, p.format)
		p.format = format
		return p, err
	})
	if err != nil {
		return result, err // with the text so far if the visitor has read a part of it
	}
	result.Messages = append(result.Messages, after.Messages...)
	result.Handover = after.Handover
	return result, nil
}

// next returns the text of the next event, or io.EOF and what follows the text.
func (w *Webhook) next(events *eventReader) (p piece, after Result, err error) {
	e, err := events.next()
	switch {
	case errors.Is(err, io.EOF):
		return piece{}, Result{}, w.unavailable(errBrokenOff)
	case errors.Is(err, errTooLarge):
		return piece{}, Result{}, w.wrongAnswer(fmt.Sprintf("is larger than %d bytes", maxAnswer), nil)
	case err != nil:
		return piece{}, Result{}, w.unavailable(fmt.Errorf("reading the answer: %w", err))
	case string(e.data) == doneData:
		return piece{}, Result{}, io.EOF
	case e.name == "done":
		after, err = w.parseAnswers(e.data)
		if err != nil {
			return piece{}, Result{}, err
		}
		return piece{}, after, io.EOF
	}
	var delta struct {
		Text   string      `json:"text"`
		Format chat.Format `json:"format"`
	}
	if err := json.Unmarshal(e.data, &delta); err != nil {
		return piece{}, Result{}, w.wrongAnswer("has an event that is not a JSON object with a text", err)
	}
	if !delta.Format.Valid() {
		return piece{}, Result{}, w.wrongAnswer("is wrong in format: "+chat.FormatRule, nil)
	}
	return piece{text: delta.Text, format: delta.Format}, Result{}, nil
}

func (w *Webhook) request(ctx context.Context, t *target, e event.VisitorMessageAccepted) (*http.Request, error) {
	body := e.AppendJSON(nil)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("making the webhook's request: %w", err)
	}
	h := request.Header
	if err := webhook.SetHeaders(h, t.secrets, e.EventID(), w.now(), body); err != nil {
		return nil, fmt.Errorf("signing the webhook's request: %w", err)
	}
	h.Set("Accept", "application/json, text/event-stream")
	h.Set("User-Agent", "Parley-Webhook/1.0")
	h.Set("ce-type", e.Type())
	if t.test {
		h.Set("parley-test", "true")
	}
	if traceParent := event.TraceParent(ctx); traceParent != "" {
		h.Set("traceparent", traceParent)
	}
	return request, nil
}

// parseAnswers parses the body of a 2xx. The messages must be valid as a company's messages, which are what
// widgets can show; an invalid one fails all, since half of an answer may be misleading.
func (w *Webhook) parseAnswers(body []byte) (Result, error) {
	if len(body) > maxAnswer {
		return Result{}, w.wrongAnswer(fmt.Sprintf("is larger than %d bytes", maxAnswer), nil)
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return Result{}, nil
	}
	var answer struct {
		Messages []Answer        `json:"messages"`
		Handover json.RawMessage `json:"handover"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return Result{}, w.wrongAnswer("is not a JSON object of messages", err)
	}
	if len(answer.Messages) > maxAnswers {
		return Result{}, w.wrongAnswer(fmt.Sprintf("holds more than %d messages", maxAnswers), nil)
	}
	for i, m := range answer.Messages {
		if fault := faultOf(m, i); fault != "" {
			return Result{}, w.wrongAnswer(fault, nil)
		}
		answer.Messages[i].Data = formatted(m)
	}
	handover, err := w.parseHandover(answer.Handover)
	if err != nil {
		return Result{}, err
	}
	return Result{Messages: answer.Messages, Handover: handover}, nil
}

// formatted returns the data of a valid message: a text is Markdown unless its data has a format, because most servers
// pass on what a model has written. Data that would become too long stays as it is.
func formatted(m Answer) json.RawMessage {
	if m.Type != chat.Text {
		return m.Data
	}
	data := chat.WithFormat(m.Data, chat.Markdown)
	if len(data) > chat.MaxDataBytes {
		return m.Data
	}
	return data
}

// faultOf describes what is invalid in message i of an answer; empty: nothing.
func faultOf(m Answer, i int) string {
	if !m.Type.In(chat.CompanyTypes()) {
		return fmt.Sprintf("has a wrong type in messages[%d]", i)
	}
	if faults := chat.ValidateData(m.Type, m.Data); len(faults) > 0 {
		return fmt.Sprintf("is wrong in messages[%d].%s: %s", i, faults[0].Field, faults[0].Message)
	}
	if utf8.RuneCountInString(m.NameOfSender) > chat.MaxLabelLength {
		return fmt.Sprintf("has a nameOfSender of more than %d characters in messages[%d]", chat.MaxLabelLength, i)
	}
	return ""
}
