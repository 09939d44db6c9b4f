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
	"slices"
	"strings"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/ratelimit"
)

const (
	// maxCompletion bounds a chat completion in bytes: each token is an event of some hundred bytes.
	maxCompletion = 8 << 20
	// maxHistory bounds LLM_HISTORY.
	maxHistory = 200
	// maxHistoryText bounds the texts of a prompt besides the system prompt, in bytes: visitors choose them, and the
	// operator pays for their tokens. It is about 4,000 tokens of English, and 20 messages of 800 bytes.
	maxHistoryText = 16 << 10
)

// LLMConfig configures the language model that answers, over the chat-completions protocol of OpenAI.
type LLMConfig struct {
	BaseURL      string           // without /chat/completions
	APIKey       string           // empty: none
	MaxTokens    int              // of an answer; zero: the server's limit
	Tokens       config.Rate      // of each application, see [tokenBudget]; zero: no bound
	Redis        *ratelimit.Redis // shares the budgets between processors; nil: each counts by itself
	Default      LLMApplication
	Applications string // JSON object of overrides by appId

	// ModerationURL checks texts before the visitor sees them; empty: no check.
	ModerationURL string
	Histories     Histories
	CallConfig
}

// LLMApplication is the prompt of one application.
type LLMApplication struct {
	Model        string `json:"model,omitempty"`
	SystemPrompt string `json:"systemPrompt,omitempty"`
	// History is the number of the chat's last messages that it reads, the visitor's last one included. Together they
	// have at most maxHistoryText.
	History *int `json:"history,omitempty"`
}

// Histories reads the end of a chat's history: at most limit messages, in ascending order. It is NotFound if
// no history is stored.
type Histories interface {
	Recent(ctx context.Context, chatID string, limit int) ([]chat.Message, error)
}

// Problems returns the invalid settings by environment variable.
func (c LLMConfig) Problems() []string {
	var problems []string
	need := func(ok bool, problem string) {
		if !ok {
			problems = append(problems, problem)
		}
	}
	need(config.WebURL(c.BaseURL), "LLM_BASE_URL must be an http or https URL when BOT=llm")
	need(c.Default.Model != "", "LLM_MODEL is required when BOT=llm")
	need(c.Default.validHistory(), fmt.Sprintf("LLM_HISTORY must be 1 to %d", maxHistory))
	need(c.MaxTokens >= 0, "LLM_MAX_TOKENS must not be negative")
	need(c.ModerationURL == "" || config.WebURL(c.ModerationURL), "LLM_MODERATION_URL must be an http or https URL")
	need(
		c.Tokens.Count == 0 || c.Tokens.Count >= minTokens,
		fmt.Sprintf("LLM_TOKENS_APPLICATION must be 0 or at least %d tokens", minTokens),
	)
	if _, err := c.applications(); err != nil {
		problems = append(problems, "LLM_APPLICATIONS "+err.Error())
	}
	return append(problems, c.CallConfig.Problems()...)
}

func (a LLMApplication) validHistory() bool {
	return a.History == nil || *a.History >= 1 && *a.History <= maxHistory
}

func (c LLMConfig) applications() (map[string]LLMApplication, error) {
	if c.Applications == "" {
		return nil, nil
	}
	decoder := json.NewDecoder(strings.NewReader(c.Applications))
	decoder.DisallowUnknownFields()
	var all map[string]LLMApplication
	if err := decoder.Decode(&all); err != nil {
		return nil, errors.New("must be a JSON object of objects with model, systemPrompt and history, by appId")
	}
	for id, a := range all {
		if canonical, ok := chat.ParseID(id); !ok || canonical != id {
			return nil, fmt.Errorf("has the key %q, which is no appId in lower case", id)
		}
		if !a.validHistory() {
			return nil, fmt.Errorf("must have a history of 1 to %d for %s", maxHistory, id)
		}
	}
	return all, nil
}

// LLM lets a language model answer, streamed. Its calls behave as those of a [Webhook]: Answer and Forget are those of
// the embedded caller, which calls post.
type LLM struct {
	caller
	cfg          LLMConfig
	url          string
	applications map[string]LLMApplication
	usage        *usageMetrics
	budget       tokenBudget
	moderator    *moderator // nil: none
}

// NewLLM returns a connector without opening a connection.
func NewLLM(c LLMConfig) (*LLM, error) {
	if problems := c.Problems(); len(problems) > 0 {
		return nil, errors.New(problems[0])
	}
	applications, err := c.applications()
	if err != nil {
		return nil, err
	}
	l := &LLM{
		cfg:          c,
		url:          strings.TrimSuffix(c.BaseURL, "/") + "/chat/completions",
		applications: applications,
		usage:        newUsageMetrics(c.Registerer),
	}
	l.budget = newTokenBudget(c, l.usage.refused)
	l.admit = l.budget.admit
	l.open("LLM", c.CallConfig, secretsOf(c.BaseURL, c.APIKey), l.post)
	if c.ModerationURL != "" {
		l.moderator = newModerator(c.ModerationURL, c.CallConfig)
	}
	return l, nil
}

// Close ends the idle connections.
func (l *LLM) Close() {
	l.caller.Close()
	if l.moderator != nil {
		l.moderator.client.CloseIdleConnections()
	}
}

// application returns the prompt of an application.
func (l *LLM) application(appID string) LLMApplication {
	own, standard := l.applications[appID], l.cfg.Default
	return LLMApplication{
		Model:        cmp.Or(own.Model, standard.Model),
		SystemPrompt: cmp.Or(own.SystemPrompt, standard.SystemPrompt),
		History:      cmp.Or(own.History, standard.History),
	}
}

type completionRequest struct {
	Model         string              `json:"model"`
	Messages      []completionMessage `json:"messages"`
	Stream        bool                `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	MaxTokens int `json:"max_tokens,omitempty"`
}

type completionMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// completion is an answer, or one event of a streamed answer.
type completion struct {
	Choices []struct {
		Delta        completionMessage `json:"delta"`
		Message      completionMessage `json:"message"`
		FinishReason string            `json:"finish_reason"`
	} `json:"choices"`
	Usage *completionUsage `json:"usage"`
	Error json.RawMessage  `json:"error"`
}

type completionUsage struct {
	Input  int `json:"prompt_tokens"`
	Output int `json:"completion_tokens"`
}

// text returns the text that an event adds, and the finish reason; empty: not finished.
func (c completion) text() (text, finish string) {
	if len(c.Choices) == 0 {
		return "", ""
	}
	return c.Choices[0].Delta.Content + c.Choices[0].Message.Content, c.Choices[0].FinishReason
}

// post makes one call; see [caller].
func (l *LLM) post(
	ctx context.Context,
	x *exchange,
	e event.VisitorMessageAccepted,
	begin Begin,
) (Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	request, err := l.request(ctx, e)
	if err != nil {
		return Result{}, err
	}
	response, err := do(l.client, request)
	if err != nil {
		return Result{}, l.unavailable(err)
	}
	defer response.Body.Close()
	if err := l.refusal(response); err != nil {
		return Result{}, err
	}
	used := func(u completionUsage) {
		l.usage.used(u)
		l.budget.spend(ctx, x, e, u)
	}
	next := l.whole(response.Body, used)
	if isEventStream(response) {
		next = l.streamed(response.Body, used)
	}
	if l.moderator != nil {
		next = l.moderator.moderate(ctx, e, next)
	}
	return show(ctx, cancel, begin, l.silence, next)
}

// streamed reads a completion event by event.
func (l *LLM) streamed(body io.Reader, used func(completionUsage)) func() (piece, error) {
	events := newEventReader(body, maxCompletion)
	finished := ""
	return func() (piece, error) {
		e, err := events.next()
		switch {
		case errors.Is(err, io.EOF) && finished == "":
			return piece{}, l.unavailable(errBrokenOff)
		case errors.Is(err, errTooLarge):
			return piece{}, l.wrongAnswer(fmt.Sprintf("is larger than %d bytes", maxCompletion), nil)
		case err != nil && !errors.Is(err, io.EOF):
			return piece{}, l.unavailable(fmt.Errorf("reading the answer: %w", err))
		case err != nil, string(e.data) == doneData:
			return piece{}, endOf(finished)
		}
		var c completion
		if err := l.decode(e.data, &c, used); err != nil {
			return piece{}, err
		}
		text, finish := c.text()
		finished = cmp.Or(finish, finished)
		return piece{text: text}, nil
	}
}

// whole reads a completion that the server does not stream.
func (l *LLM) whole(body io.Reader, used func(completionUsage)) func() (piece, error) {
	return func() (piece, error) {
		data, err := io.ReadAll(io.LimitReader(body, maxAnswer+1))
		if err != nil {
			return piece{}, l.unavailable(fmt.Errorf("reading the answer: %w", err))
		}
		var c completion
		if err := l.decode(data, &c, used); err != nil {
			return piece{}, err
		}
		text, finish := c.text()
		return piece{text: text}, endOf(finish)
	}
}

// errFiltered means that the model's own filter has ended the answer.
var errFiltered = apperr.New(apperr.Invalid, "LLM_FILTERED", "The LLM's content filter has ended the answer")

// endOf maps the model's finish reason to the error that ends a text.
func endOf(finish string) error {
	switch finish {
	case "length":
		return errFull
	case "content_filter":
		return errFiltered
	}
	return io.EOF
}

func (l *LLM) decode(data []byte, into *completion, used func(completionUsage)) error {
	if err := json.Unmarshal(data, into); err != nil {
		return l.wrongAnswer("is no chat completion", err)
	}
	if len(into.Error) > 0 && string(into.Error) != "null" {
		return l.unavailable(fmt.Errorf("error in the answer: %s", l.printable(string(into.Error))))
	}
	if into.Usage != nil {
		used(*into.Usage)
	}
	return nil
}

func (l *LLM) request(ctx context.Context, e event.VisitorMessageAccepted) (*http.Request, error) {
	messages, err := l.messages(ctx, e)
	if err != nil {
		return nil, err
	}
	content := completionRequest{
		Model:     l.application(e.AppID).Model,
		Messages:  messages,
		Stream:    true,
		MaxTokens: l.cfg.MaxTokens,
	}
	content.StreamOptions.IncludeUsage = true
	body, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encoding the request: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("making the request: %w", err)
	}
	h := request.Header
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "text/event-stream")
	h.Set("User-Agent", "Parley-LLM/1.0")
	if l.cfg.APIKey != "" {
		h.Set("Authorization", "Bearer "+l.cfg.APIKey)
	}
	if traceParent := event.TraceParent(ctx); traceParent != "" {
		h.Set("traceparent", traceParent)
	}
	return request, nil
}

// messages returns the system prompt and the end of the chat, up to the visitor's message.
func (l *LLM) messages(ctx context.Context, e event.VisitorMessageAccepted) ([]completionMessage, error) {
	app := l.application(e.AppID)
	before, err := l.before(ctx, e, app)
	if err != nil {
		return nil, err
	}
	newest := newestMessages(append(before, e.Message))
	if app.SystemPrompt == "" {
		return newest, nil
	}
	return slices.Insert(newest, 0, completionMessage{"system", app.SystemPrompt}), nil
}

// before returns the messages of the chat before the visitor's message that the application's model reads.
func (l *LLM) before(
	ctx context.Context,
	e event.VisitorMessageAccepted,
	app LLMApplication,
) ([]chat.Message, error) {
	limit := defaultHistory
	if app.History != nil {
		limit = *app.History
	}
	if limit <= 1 {
		return nil, nil
	}
	recent, err := l.cfg.Histories.Recent(ctx, e.ChatID, limit)
	if err != nil && !apperr.Is(err, apperr.NotFound) {
		return nil, fmt.Errorf("reading the history: %w", err)
	}
	var before []chat.Message
	for _, m := range recent {
		if chat.CompareMessages(m, e.Message) < 0 && m.ID != e.Message.ID {
			before = append(before, m)
		}
	}
	return before[max(0, len(before)-(limit-1)):], nil
}

// newestMessages returns the last message, and as many of those before it as fit into maxHistoryText.
func newestMessages(history []chat.Message) []completionMessage {
	var newest []completionMessage
	size := 0
	for i, m := range slices.Backward(history) {
		content := spoken(m)
		size += len(content)
		isLast := i == len(history)-1
		if size > maxHistoryText && !isLast {
			break
		}
		if content == "" {
			continue
		}
		role := "user"
		if m.IsFromSupport {
			role = "assistant"
		}
		newest = append(newest, completionMessage{role, content})
	}
	slices.Reverse(newest)
	return newest
}

// defaultHistory is the default number of messages that the model reads.
const defaultHistory = 20

// spoken returns a message as plain text.
func spoken(m chat.Message) string {
	text := chat.TextOf(m.Data)
	if !m.Type.IsFile() {
		return text
	}
	var d struct{ FileName string }
	_ = json.Unmarshal(m.Data, &d) // a name of another form counts as absent
	label := strings.ToLower(string(m.Type)) + " " + cmp.Or(d.FileName, "without a name")
	return strings.TrimSpace("[" + label + "] " + text)
}
