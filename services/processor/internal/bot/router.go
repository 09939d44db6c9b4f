package bot

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/services/processor/internal/fairshare"
	"github.com/parley-chat/parley/services/processor/internal/guard"
	"github.com/parley-chat/parley/services/processor/internal/tools"
)

// Bots returns what answers for applications: settings that were published a moment ago, or those before them.
type Bots interface {
	// Bot returns the bot of an application; the zero bot if it was never changed.
	Bot(ctx context.Context, appID string) (bots.Bot, error)
	ModelConnection(ctx context.Context, id string) (bots.Connection, error)
}

// RouterConfig holds the dependencies of a [Router].
type RouterConfig struct {
	Bots    Bots
	Default bots.Settings  // of the operator, for applications without a bot of their own
	Allow   []netip.Prefix // private networks that the servers of companies may be in
	Demo    *Demo
	Webhook *Webhook
	LLM     *LLM
}

// Router is the [Answerer] of all applications: it passes each message to what its application's settings name. A
// message that was begun with a server ends with it, whatever was published meanwhile.
type Router struct {
	cfg    RouterConfig
	client *http.Client    // for the servers of companies
	tools  *tools.Client   // for their servers of tools
	tests  *fairshare.Pool // of the tests that run, by company
}

// NewRouter returns a router. It closes the webhook and the model of its config.
func NewRouter(c RouterConfig) *Router {
	client := guard.NewClient(c.Allow, 0)
	transport := client.Transport.(*http.Transport)
	transport.HTTP2 = pings()
	return &Router{
		cfg:    c,
		client: client,
		tools:  tools.New(client, c.LLM.now),
		tests:  fairshare.New(testsAtOnce),
	}
}

// Close ends the idle connections. No message may be answered any more.
func (r *Router) Close() {
	r.client.CloseIdleConnections()
	r.cfg.Webhook.Close()
	r.cfg.LLM.Close()
}

// Settings returns the settings in force for an application. Their kind is not [bots.Default].
func (r *Router) Settings(ctx context.Context, appID string) (bots.Settings, error) {
	b, err := r.cfg.Bots.Bot(ctx, appID)
	if err != nil {
		return bots.Settings{}, fmt.Errorf("finding the bot of the application: %w", err)
	}
	s := b.InForce().Settings
	s.Kind = r.kindOf(s)
	switch s.FailureText {
	case "":
		s.FailureText = r.cfg.Default.FailureText
	case bots.NoFailureText:
		s.FailureText = ""
	}
	return s, nil
}

// Forget implements [Answerer].
func (r *Router) Forget(messageID string) {
	r.cfg.Webhook.Forget(messageID)
	r.cfg.LLM.Forget(messageID)
}

// Answer implements [Answerer].
func (r *Router) Answer(ctx context.Context, e event.VisitorMessageAccepted, begin Begin) (Result, error) {
	for _, c := range []*caller{&r.cfg.Webhook.caller, &r.cfg.LLM.caller} {
		if t := c.exchanges.targetOf(e.EventID()); t != nil {
			return c.answer(ctx, t, e, begin)
		}
	}
	b, err := r.cfg.Bots.Bot(ctx, e.AppID)
	if err != nil {
		return Result{}, fmt.Errorf("finding the bot of the application: %w", err)
	}
	inForce := b.InForce()
	switch r.kindOf(inForce.Settings) {
	case bots.Demo:
		return r.cfg.Demo.Answer(ctx, e, begin)
	case bots.Webhook, bots.Model:
		c, t, err := r.server(ctx, b, inForce.Settings)
		if err != nil {
			return Result{}, err
		}
		return c.answer(ctx, t.of(inForce), e, begin)
	}
	return Nobody{}.Answer(ctx, e, begin)
}

// kindOf returns what answers by settings. It is not [bots.Default].
func (r *Router) kindOf(s bots.Settings) bots.Kind {
	if s.Kind == bots.Default {
		return r.cfg.Default.Kind
	}
	return s.Kind
}

// server returns the server that answers by settings of a bot, and what calls it.
func (r *Router) server(ctx context.Context, b bots.Bot, s bots.Settings) (*caller, *target, error) {
	isDefault := s.Kind == bots.Default
	if r.kindOf(s) == bots.Webhook {
		w := r.cfg.Webhook
		if isDefault {
			return &w.caller, w.standard, nil
		}
		return &w.caller, w.target(s.Webhook, b.Secrets, r.client).ofCompany(), nil
	}
	l := r.cfg.LLM
	if isDefault {
		return &l.caller, l.standard, nil
	}
	c, err := r.connection(ctx, b.CompanyID, s.Model.ConnectionID)
	if err != nil {
		return nil, nil, err
	}
	servers, err := r.toolServers(ctx, b.CompanyID, s.Model.Tools)
	if err != nil {
		return nil, nil, err
	}
	return &l.caller, l.target(s.Model, c, r.client).with(servers).ofCompany(), nil
}

// toolServers returns the servers of tools of a bot's settings.
func (r *Router) toolServers(ctx context.Context, companyID string, s bots.ToolSettings) ([]toolServer, error) {
	var servers []toolServer
	for _, of := range s.Servers {
		c, err := r.connection(ctx, companyID, of.ConnectionID)
		if err != nil {
			return nil, err
		}
		servers = append(servers, toolServer{of, tools.Server{URL: c.BaseURL, Key: c.APIKey}, r.tools})
	}
	return servers, nil
}

// connection returns a connection of a company.
func (r *Router) connection(ctx context.Context, companyID, id string) (bots.Connection, error) {
	c, err := r.cfg.Bots.ModelConnection(ctx, id)
	if apperr.Is(err, apperr.NotFound) || err == nil && c.CompanyID != companyID {
		return c, bus.Permanent(apperr.ConnectionNotFound.New())
	}
	if err != nil {
		return c, fmt.Errorf("finding the connection of the bot: %w", err)
	}
	return c, nil
}
