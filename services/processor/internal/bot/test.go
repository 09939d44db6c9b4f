package bot

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/services/processor/internal/tools"
)

const (
	// testsAtOnce bounds the tests of one process, which companies share: they hold no place of BOT_CONCURRENCY.
	testsAtOnce = 64
	// probeTimeout bounds a probe, probeTokens its answer: some models refuse less.
	probeTimeout = 15 * time.Second
	probeTokens  = 16
)

// errTests is the answer to a company that has as many tests as it may.
var errTests = apperr.New(apperr.TooMany, "TOO_MANY_TESTS", "Too many tests of bots run: try again in a moment")

// errNoSecret is the answer to a test of a webhook that was never published.
var errNoSecret = apperr.New(
	apperr.Invalid, "WEBHOOK_NO_SECRET",
	"The bot has no secret yet that signs the request: create one, or publish the bot",
)

// Test asks settings a question, and returns the call. A server that fails is no error: the call has the failure.
func (r *Router) Test(ctx context.Context, t bots.Test) (bots.Call, error) {
	ctx, cancel := context.WithTimeout(ctx, bots.MaxTestTime)
	defer cancel()
	b, err := r.cfg.Bots.Bot(ctx, t.AppID)
	if err != nil {
		return bots.Call{}, fmt.Errorf("finding the bot of the application: %w", err)
	}
	b.AppID, b.CompanyID = t.AppID, t.CompanyID // an unchanged one has neither
	e := event.VisitorMessageAccepted{
		CompanyID: t.CompanyID, AppID: t.AppID, ChatUserID: t.ChatUserID, ChatID: t.ChatID, Message: t.Message,
	}
	x := &exchange{
		target: &target{kind: r.kindOf(t.Settings), test: true},
		began:  r.cfg.LLM.now(),
		made:   t.Made || t.Probe,
		before: t.Before,
	}
	if !r.tests.Take(t.CompanyID) {
		return x.describe(e, outcome{err: errTests}, r.cfg.LLM.now()), nil
	}
	defer r.tests.Release(t.CompanyID)
	began := time.Now()
	result, err := r.test(ctx, x, b, t, e)
	o := outcome{result, err, time.Since(began)}
	if !t.Probe {
		r.cfg.LLM.log.add(ctx, x, e, o)
	}
	return x.describe(e, o, r.cfg.LLM.now()), nil
}

// test makes the call of a test, and leaves it in x.
func (r *Router) test(
	ctx context.Context, x *exchange, b bots.Bot, t bots.Test, e event.VisitorMessageAccepted,
) (Result, error) {
	switch r.kindOf(t.Settings) {
	case bots.Demo:
		return r.cfg.Demo.Answer(ctx, e, unseen)
	case bots.Webhook, bots.Model:
	default:
		return Nobody{}.Answer(ctx, e, unseen)
	}
	c, server, err := r.server(ctx, b, t.Settings)
	if err != nil {
		return Result{}, err
	}
	x.target = server.of(bots.Version{Settings: t.Settings})
	x.target.test = true
	if t.Probe {
		return r.probe(ctx, c, x, e)
	}
	if x.target.kind == bots.Webhook && len(x.target.secrets) == 0 {
		return Result{}, errNoSecret
	}
	if err := c.prepareTest(ctx, x, e); err != nil {
		return Result{}, err
	}
	return c.once(ctx, min(x.target.deadline, bots.MaxTestTime), x, e, unseen)
}

// prepareTest prepares the call of a test as that of a message. No bound of the company refuses it.
func (c *caller) prepareTest(ctx context.Context, x *exchange, e event.VisitorMessageAccepted) error {
	if c.prepare != nil {
		if err := c.prepare(ctx, x, e); err != nil {
			return err
		}
	}
	if c.admit == nil {
		return nil
	}
	return c.admit(ctx, x, e)
}

// once makes one call that no other follows.
func (c *caller) once(
	ctx context.Context, timeout time.Duration, x *exchange, e event.VisitorMessageAccepted, begin Begin,
) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	result, err := c.post(ctx, x, e, begin)
	if err != nil && ctx.Err() != nil {
		err = c.timedOut(timeout)
	}
	return result, err
}

// probe asks only whether the server answers.
func (r *Router) probe(
	ctx context.Context, c *caller, x *exchange, e event.VisitorMessageAccepted,
) (Result, error) {
	if x.target.kind == bots.Webhook {
		return Result{}, c.reach(ctx, x.target)
	}
	if most := x.target.model.MaxTokens; most == 0 || most > probeTokens {
		x.target.model.MaxTokens = probeTokens
	}
	x.messages = x.target.prompted([]completionMessage{{Role: bots.RoleUser, Content: "Hello"}}, "")
	servers := x.target.tools
	x.target.tools = nil
	if result, err := c.once(ctx, probeTimeout, x, e, unseen); err != nil {
		return result, err
	}
	return Result{}, checkTools(ctx, servers)
}

// checkTools returns an error if a server of tools does not answer, or does not have a tool that may be called.
func checkTools(ctx context.Context, servers []toolServer) error {
	for i, of := range servers {
		field := fmt.Sprintf("model.tools.servers[%d]", i)
		listed, err := of.list(ctx)
		if err != nil {
			return &fieldError{field + ".connectionId", apperr.New(apperr.Unavailable, "TOOLS_UNAVAILABLE", of.reason(err))}
		}
		for j, allowed := range of.Tools {
			if slices.ContainsFunc(listed, func(t tools.Tool) bool { return t.Name == allowed.Name }) {
				continue
			}
			field = fmt.Sprintf("%s.tools[%d].name", field, j)
			return &fieldError{field, apperr.New(apperr.NotFound, "TOOL_NOT_FOUND", "The server has no tool of this name")}
		}
	}
	return nil
}

// fieldError is an error that a field of the settings is at fault for.
type fieldError struct {
	field string
	error
}

func (e *fieldError) Unwrap() error { return e.error }

// Tools returns the tools of a connection's server.
func (r *Router) Tools(ctx context.Context, q bots.ToolsOf) (bots.ToolList, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	c, err := r.connection(ctx, q.CompanyID, q.ConnectionID)
	if err != nil {
		return bots.ToolList{}, err
	}
	of := toolServer{server: tools.Server{URL: c.BaseURL, Key: c.APIKey}, client: r.tools}
	listed, err := of.list(ctx)
	if err != nil {
		return bots.ToolList{Tools: []bots.ListedTool{}, Failure: of.reason(err)}, nil
	}
	list := bots.ToolList{Tools: []bots.ListedTool{}}
	for _, t := range listed {
		list.Tools = append(list.Tools, bots.ListedTool{Name: t.Name, Description: t.Description, ReadOnly: t.ReadOnly})
	}
	return list, nil
}

// reach reports whether a server answers at all: a bot need not know HEAD, which asks for nothing.
func (c *caller) reach(ctx context.Context, t *target) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, t.url, nil)
	if err != nil {
		return fmt.Errorf("making the request: %w", err)
	}
	request.Header.Set("User-Agent", "Parley-Webhook/1.0")
	response, err := do(t.client, request)
	if err != nil {
		return c.unavailable(err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswer)) // so that the connection can be reused
	if response.StatusCode < http.StatusInternalServerError || response.StatusCode == http.StatusNotImplemented {
		return nil
	}
	return c.refusal(t, response)
}

// unseen is a [Begin] of a text that no visitor sees.
func unseen(_ context.Context, format chat.Format, _ func()) (*PartWriter, error) {
	return newPartWriter(discard{}, time.Now, event.MessagePart{Format: format}, 0, func() {}), nil
}
