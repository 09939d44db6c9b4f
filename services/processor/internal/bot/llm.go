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
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/pkg/ratelimit"
	"github.com/parley-chat/parley/services/processor/internal/excerpt"
)

const (
	// maxCompletion bounds a chat completion in bytes: each token is an event of some hundred bytes.
	maxCompletion = 8 << 20
	// maxHistoryText bounds the texts of a prompt besides the system prompt, in bytes: visitors choose them, and the
	// operator pays for their tokens. It is about 4,000 tokens of English, and 20 messages of 800 bytes.
	maxHistoryText = 16 << 10
)

// LLMConfig configures the language models that answer, over the chat-completions protocol of OpenAI.
type LLMConfig struct {
	BaseURL string             // of the operator's model, without /chat/completions; empty: there is none
	APIKey  string             // of the operator's model; empty: none
	Model   bots.ModelSettings // of the operator's model
	Tokens  config.Rate        // of each application, see [tokenBudget]; zero: no bound
	Redis   *ratelimit.Redis   // shares the budgets between processors; nil: each counts by itself

	// ModerationURL checks texts before the visitor sees them; empty: no check.
	ModerationURL string
	Histories     Histories
	Passages      Passages
	Actions       Actions
	Visitors      Visitors
	CallConfig
}

// Passages searches the documents of companies.
type Passages interface {
	// FindPassages returns the passages of a company that fit a query best, best first.
	FindPassages(ctx context.Context, companyID string, q knowledge.Query, limit int) ([]knowledge.Passage, error)
}

// Histories reads the end of a chat's history, or what it has before a stored message: at most limit messages, in
// ascending order. It is NotFound if no history is stored.
type Histories interface {
	Recent(ctx context.Context, chatID, before string, limit int) ([]chat.Message, error)
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
	need(c.Model.Model != "", "LLM_MODEL is required when BOT=llm")
	history := c.Model.History
	need(history >= 1 && history <= bots.MaxHistory, fmt.Sprintf("LLM_HISTORY must be 1 to %d", bots.MaxHistory))
	need(c.Model.MaxTokens >= 0, "LLM_MAX_TOKENS must not be negative")
	need(c.ModerationURL == "" || config.WebURL(c.ModerationURL), "LLM_MODERATION_URL must be an http or https URL")
	need(
		c.Tokens.Count == 0 || c.Tokens.Count >= minTokens,
		fmt.Sprintf("LLM_TOKENS_APPLICATION must be 0 or at least %d tokens", minTokens),
	)
	return append(problems, c.CallConfig.Problems()...)
}

// LLM lets language models answer, streamed: the operator's, and those of companies. Its calls behave as those of a
// [Webhook]: Answer and Forget are those of the embedded caller, which calls post.
type LLM struct {
	caller
	cfg       LLMConfig
	usage     *usageMetrics
	budget    tokenBudget
	moderator *moderator    // nil: none
	wordsTime time.Duration // see [defaultWordsTime]
}

// NewLLM returns a connector without opening a connection.
func NewLLM(c LLMConfig) (*LLM, error) {
	l := &LLM{cfg: c, usage: newUsageMetrics(c.Registerer), wordsTime: defaultWordsTime}
	l.budget = newTokenBudget(c, l.usage.refused)
	l.prepare = l.read
	l.admit = l.budget.admit
	l.open("LLM", c.CallConfig, l.post)
	if c.BaseURL != "" {
		if problems := c.Problems(); len(problems) > 0 {
			return nil, errors.New(problems[0])
		}
		l.standard = l.target(c.Model, bots.Connection{BaseURL: c.BaseURL, APIKey: c.APIKey}, l.client)
	}
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

// target returns the server of a bot's settings.
func (l *LLM) target(s bots.ModelSettings, c bots.Connection, client *http.Client) *target {
	return &target{
		url:      c.CompletionsURL(),
		client:   client,
		hidden:   excerpt.Secrets(c.BaseURL, c.APIKey),
		deadline: l.deadline,
		apiKey:   c.APIKey,
		model:    s,
		kind:     bots.Model,
	}
}

// with returns the target with servers of tools.
func (t *target) with(servers []toolServer) *target {
	t.tools = servers
	if len(servers) > 0 {
		t.deadline = min(t.deadline, answerTime)
	}
	return t
}

type completionRequest struct {
	Model         string              `json:"model"`
	Messages      []completionMessage `json:"messages"`
	Stream        bool                `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Temperature *float64   `json:"temperature,omitempty"`
	MaxTokens   int        `json:"max_tokens,omitempty"`
	Tools       []function `json:"tools,omitempty"`
	ToolChoice  string     `json:"tool_choice,omitempty"` // none: they are not called; empty: the model chooses
}

// function is a tool as a model reads it.
type function struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"` // JSON Schema
	} `json:"function"`
}

type completionMessage struct {
	Role       string         `json:"role"`
	Content    string         `json:"content"`
	ToolCalls  []functionCall `json:"tool_calls,omitempty"`   // that the model wants
	ToolCallID string         `json:"tool_call_id,omitempty"` // of the call whose result the content is
}

// functionCall is a call that a model wants, or in a streamed answer a part of one.
type functionCall struct {
	Index    int    `json:"index,omitempty"` // of parts: which call they belong to
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"` // JSON
	} `json:"function"`
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

func (u completionUsage) total() int { return u.Input + u.Output }

// post makes one call; see [caller].
func (l *LLM) post(
	ctx context.Context,
	x *exchange,
	e event.VisitorMessageAccepted,
	begin Begin,
) (Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	x.used, x.uses, x.asked = nil, nil, nil
	box := l.openToolbox(ctx, x, e)
	defer box.close()
	if err := box.decide(ctx); err != nil {
		return Result{}, err
	}
	l.expand(ctx, x, e)
	a := &answering{llm: l, x: x, event: e, box: box}
	if err := a.call(ctx); err != nil {
		return Result{}, err
	}
	defer a.end(ctx)
	next := func() (piece, error) { return a.piece(ctx) }
	if x.target.model.Knowledge.Passages > 0 {
		next = cited(x.passages, next)
	}
	if l.moderator != nil {
		next = l.moderator.moderate(ctx, e, next)
	}
	result, err := show(ctx, cancel, begin, l.silence, next)
	if err == nil && x.asked != nil {
		result.Messages = append(result.Messages, asking(*x.asked, x.target.model.Tools))
	}
	return result, err
}

// used counts the tokens of a call, if the model has reported them.
func (l *LLM) used(ctx context.Context, x *exchange, e event.VisitorMessageAccepted, u *completionUsage) {
	if u == nil {
		return
	}
	if x.used == nil {
		x.used = &completionUsage{}
	}
	x.used.Input += u.Input
	x.used.Output += u.Output
	x.tokens.Input += u.Input
	x.tokens.Output += u.Output
	x.reported = true
	l.usage.used(*u)
	l.budget.spend(context.WithoutCancel(ctx), x, e, *u)
}

// complete asks a server for a completion, which the reader reads.
func (l *LLM) complete(ctx context.Context, t *target, c completionRequest) (*completionReader, error) {
	request, err := l.request(ctx, t, c)
	if err != nil {
		return nil, err
	}
	response, err := do(t.client, request)
	if err != nil {
		return nil, l.unavailable(err)
	}
	if err := l.refusal(t, response); err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	r := &completionReader{llm: l, from: t, body: response.Body}
	r.next = r.whole
	if isEventStream(response) {
		r.next = r.streamed()
	}
	return r, nil
}

// completionReader reads the answer of a model.
type completionReader struct {
	llm   *LLM
	from  *target
	body  io.ReadCloser
	next  func() (piece, error) // returns the next piece of the text
	usage *completionUsage      // as last reported: some servers repeat it with each event; nil: not
	text  strings.Builder
	calls []functionCall // of tools, that the model wants
}

func (r *completionReader) close() { _ = r.body.Close() }

// read adds an answer, or an event of a streamed one. It returns the text and the finish reason; empty: not finished.
func (r *completionReader) read(c completion) (text, finish string) {
	if len(c.Choices) == 0 {
		return "", ""
	}
	choice := c.Choices[0]
	text = choice.Delta.Content + choice.Message.Content
	r.text.WriteString(text)
	for i, call := range choice.Message.ToolCalls {
		call.Index = i
		r.add(call)
	}
	for _, part := range choice.Delta.ToolCalls {
		r.add(part)
	}
	return text, choice.FinishReason
}

// add adds a part of a call. Further calls than a step may make are left out.
func (r *completionReader) add(part functionCall) {
	i := slices.IndexFunc(r.calls, func(c functionCall) bool { return c.Index == part.Index })
	if i < 0 && len(r.calls) == maxCalls {
		return
	}
	if i < 0 {
		i = len(r.calls)
		r.calls = append(r.calls, functionCall{Index: part.Index, Type: "function"})
	}
	call := &r.calls[i]
	call.ID = cmp.Or(call.ID, part.ID)
	call.Function.Name += part.Function.Name
	if len(call.Function.Arguments) <= maxArguments {
		call.Function.Arguments += part.Function.Arguments
	}
}

// streamed reads a completion event by event.
func (r *completionReader) streamed() func() (piece, error) {
	l := r.llm
	events := newEventReader(r.body, maxCompletion)
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
		if err := r.decode(e.data, &c); err != nil {
			return piece{}, err
		}
		text, finish := r.read(c)
		finished = cmp.Or(finish, finished)
		return piece{text: text}, nil
	}
}

// whole reads a completion that the server does not stream.
func (r *completionReader) whole() (piece, error) {
	data, err := io.ReadAll(io.LimitReader(r.body, maxAnswer+1))
	if err != nil {
		return piece{}, r.llm.unavailable(fmt.Errorf("reading the answer: %w", err))
	}
	var c completion
	if err := r.decode(data, &c); err != nil {
		return piece{}, err
	}
	text, finish := r.read(c)
	return piece{text: text}, endOf(finish)
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

func (r *completionReader) decode(data []byte, into *completion) error {
	if err := json.Unmarshal(data, into); err != nil {
		return r.llm.wrongAnswer("is no chat completion", err)
	}
	if len(into.Error) > 0 && string(into.Error) != "null" {
		return r.llm.unavailable(fmt.Errorf("error in the answer: %s", r.from.printable(string(into.Error))))
	}
	if into.Usage != nil {
		r.usage = &completionUsage{max(0, into.Usage.Input), max(0, into.Usage.Output)}
	}
	return nil
}

// completionOf returns the request for a text of a model.
func completionOf(t *target, messages []completionMessage) completionRequest {
	c := completionRequest{
		Model:       t.model.Model,
		Messages:    messages,
		Stream:      true,
		Temperature: t.model.Temperature,
		MaxTokens:   t.model.MaxTokens,
	}
	c.StreamOptions.IncludeUsage = true
	return c
}

func (l *LLM) request(ctx context.Context, t *target, c completionRequest) (*http.Request, error) {
	body, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encoding the request: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("making the request: %w", err)
	}
	h := request.Header
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "text/event-stream")
	h.Set("User-Agent", "Parley-LLM/1.0")
	if t.apiKey != "" {
		h.Set("Authorization", "Bearer "+t.apiKey)
	}
	if traceParent := event.TraceParent(ctx); traceParent != "" {
		h.Set("traceparent", traceParent)
	}
	return request, nil
}

// read reads what the model is asked: the system prompt, passages of the company's documents, and the end of the chat, up
// to the visitor's message.
func (l *LLM) read(ctx context.Context, x *exchange, e event.VisitorMessageAccepted) error {
	var err error
	x.conversation, err = l.conversation(ctx, x, e)
	if err != nil {
		return err
	}
	if x.target.model.Knowledge.Passages > 0 {
		x.passages, err = l.find(ctx, x, e.CompanyID, "")
		if err != nil {
			return err
		}
	}
	x.compose()
	return nil
}

// compose makes what the model is asked.
func (x *exchange) compose() {
	var instructions []string
	if x.target.model.Knowledge.Passages > 0 {
		instructions = append(instructions, numbered(x.passages))
	}
	if len(x.target.tools) > 0 {
		instructions = append(instructions, withTools)
	}
	x.messages = x.target.prompted(x.conversation, strings.Join(instructions, "\n\n"))
}

// conversation returns the messages of the chat, the visitor's one last.
func (l *LLM) conversation(
	ctx context.Context, x *exchange, e event.VisitorMessageAccepted,
) ([]completionMessage, error) {
	if x.made {
		var messages []completionMessage
		for _, turn := range x.before {
			messages = append(messages, completionMessage{Role: turn.Role, Content: turn.Text})
		}
		return append(messages, completionMessage{Role: bots.RoleUser, Content: spoken(e.Message)}), nil
	}
	before, err := l.before(ctx, x.target, e)
	if err != nil {
		return nil, err
	}
	return newestMessages(append(before, e.Message)), nil
}

// prompted returns messages after the system prompt and further instructions.
func (t *target) prompted(messages []completionMessage, instructions string) []completionMessage {
	system := strings.TrimSpace(t.model.Prompt + "\n\n" + instructions)
	if system == "" {
		return messages
	}
	return slices.Concat([]completionMessage{{Role: bots.RoleSystem, Content: system}}, messages)
}

// before returns the messages of the chat before the visitor's message, as many as the model reads. The message of a
// test is stored, and not the last one.
func (l *LLM) before(ctx context.Context, t *target, e event.VisitorMessageAccepted) ([]chat.Message, error) {
	limit := cmp.Or(t.model.History, bots.DefaultHistory)
	if limit <= 1 {
		return nil, nil
	}
	stored := ""
	if t.test {
		stored = e.Message.ID
	}
	recent, err := l.cfg.Histories.Recent(ctx, e.ChatID, stored, limit)
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
		role := bots.RoleUser
		if m.IsFromSupport {
			role = bots.RoleAssistant
		}
		newest = append(newest, completionMessage{Role: role, Content: content})
	}
	slices.Reverse(newest)
	return newest
}

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
