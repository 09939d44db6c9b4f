package bot

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/services/processor/internal/excerpt"
	"github.com/parley-chat/parley/services/processor/internal/tools"
)

const (
	// toolTimeout bounds a call of a tool, listTimeout the wait for the list of a server's tools.
	toolTimeout = 15 * time.Second
	listTimeout = 5 * time.Second
	// maxArguments bounds the arguments of a call in bytes.
	maxArguments = 16 << 10
	maxFunction  = 64 // characters of a function's name
	// maxLogged bounds the arguments and the result of a call in the log, in bytes.
	maxLogged = 2 << 10
)

// MetaVisitor is the member of a call's _meta that names the visitor: what Parley has verified, never what the visitor or
// the model wrote.
const MetaVisitor = "parley/visitor"

// toolServer is a server of tools that the settings of a bot name.
type toolServer struct {
	bots.ToolServer
	server tools.Server
	client *tools.Client
}

// list returns the tools that the server has now.
func (s toolServer) list(ctx context.Context) ([]tools.Tool, error) {
	session := s.client.Open(s.server)
	defer session.Close()
	return session.Read(ctx)
}

// reason returns why the server has not answered, without its secrets.
func (s toolServer) reason(err error) string {
	return "No answer: " + excerpt.Line(tools.Reason(err), excerpt.Secrets(s.server.URL, s.server.Key))
}

// toolbox has the tools that a model may call for an answer. It belongs to one call of the model's server.
type toolbox struct {
	llm      *LLM
	x        *exchange
	event    event.VisitorMessageAccepted
	sessions map[string]*tools.Session // by connection
	offered  []offer
}

// offer is a tool that is offered to the model, as a function.
type offer struct {
	function     string
	connectionID string
	allowed      bots.Tool
	described    tools.Tool
}

// openToolbox returns the tools that the settings allow and their servers have. A server that does not answer offers
// none, and the log of calls says so.
func (l *LLM) openToolbox(ctx context.Context, x *exchange, e event.VisitorMessageAccepted) *toolbox {
	b := &toolbox{llm: l, x: x, event: e, sessions: map[string]*tools.Session{}}
	for _, of := range x.target.tools {
		b.sessions[of.ConnectionID] = of.client.Open(of.server)
		b.offer(ctx, of)
	}
	return b
}

func (b *toolbox) close() {
	for _, session := range b.sessions {
		session.Close()
	}
}

func (b *toolbox) offer(ctx context.Context, of toolServer) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	began := b.llm.now()
	var listed []tools.Tool
	err := b.guarded(of.server, func() (err error) {
		listed, err = b.sessions[of.ConnectionID].List(ctx)
		return err
	})
	if err != nil {
		b.log(bots.ToolUse{Name: "list of tools", Outcome: bots.ToolFailed, Result: of.reason(err)}, began)
		return
	}
	for _, allowed := range of.Tools {
		i := slices.IndexFunc(listed, func(t tools.Tool) bool { return t.Name == allowed.Name })
		if i < 0 {
			continue
		}
		b.offered = append(b.offered, offer{b.function(allowed.Name), of.ConnectionID, allowed, listed[i]})
	}
}

// guarded calls a server unless its breaker is open, and reports the result to it.
func (b *toolbox) guarded(s tools.Server, call func() error) error {
	name := b.event.AppID + " " + s.URL
	if b.llm.breakers.Admit(name, b.llm.now()) > 0 {
		return apperr.New(apperr.Unavailable, "TOOLS_PAUSED", "the server is not called for now, because it has not answered")
	}
	err := call()
	b.llm.breakers.Report(name, b.llm.now(), err == nil, 0)
	return err
}

// function returns the name of a new function for a tool: protocols of models allow fewer characters.
func (b *toolbox) function(tool string) string {
	base := functionName(tool)
	name := base
	for n := 2; slices.ContainsFunc(b.offered, func(o offer) bool { return o.function == name }); n++ {
		suffix := fmt.Sprintf("_%d", n)
		name = base[:min(len(base), maxFunction-len(suffix))] + suffix
	}
	return name
}

func functionName(tool string) string {
	name := strings.Map(func(r rune) rune {
		if r < 128 && (r == '_' || r == '-' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z') {
			return r
		}
		return '_'
	}, tool)
	return name[:min(len(name), maxFunction)]
}

// functions returns the offered tools as models read them.
func (b *toolbox) functions() []function {
	var all []function
	for _, o := range b.offered {
		f := function{Type: "function"}
		f.Function.Name = o.function
		f.Function.Description = o.described.Description
		f.Function.Parameters = o.described.Schema
		all = append(all, f)
	}
	return all
}

// find returns the offer of a function.
func (b *toolbox) find(name string) (offer, bool) {
	i := slices.IndexFunc(b.offered, func(o offer) bool { return o.function == name })
	if i < 0 {
		return offer{}, false
	}
	return b.offered[i], true
}

// call calls a tool, and returns what the model is told. A failure is told to it: it may know another way.
func (b *toolbox) call(ctx context.Context, connectionID, tool, arguments string) (result string, failed bool) {
	began := b.llm.now()
	use := bots.ToolUse{Name: tool, Arguments: arguments, Outcome: bots.ToolOK}
	answered, err := b.ask(ctx, connectionID, tool, arguments)
	if err != nil {
		answered = tools.Result{Text: b.server(connectionID).reason(err), Failed: true}
	}
	if answered.Failed {
		use.Outcome = bots.ToolFailed
	}
	use.Result = answered.Text
	b.log(use, began)
	return answered.Text, answered.Failed
}

func (b *toolbox) ask(ctx context.Context, connectionID, tool, arguments string) (answered tools.Result, err error) {
	meta, err := b.llm.visitorMeta(ctx, b.x, b.event)
	if err != nil {
		return answered, err
	}
	ctx, cancel := context.WithTimeout(ctx, toolTimeout)
	defer cancel()
	err = b.guarded(b.server(connectionID).server, func() (err error) {
		answered, err = b.sessions[connectionID].Call(ctx, tool, arguments, map[string]any{MetaVisitor: meta})
		return err
	})
	return answered, err
}

// visitorMeta returns what a tool is told about the visitor. A test whose question is made up has none.
func (l *LLM) visitorMeta(ctx context.Context, x *exchange, e event.VisitorMessageAccepted) (map[string]any, error) {
	meta := map[string]any{"companyId": e.CompanyID, "appId": e.AppID}
	if x.target.test {
		meta["test"] = true
	}
	if x.made {
		return meta, nil
	}
	meta["chatId"] = e.ChatID
	meta["chatUserId"] = e.ChatUserID
	v, err := l.cfg.Visitors.Visitor(ctx, e.ChatUserID)
	if apperr.Is(err, apperr.NotFound) {
		return meta, nil // not stored yet: nothing of it is proven
	}
	if err != nil {
		return nil, fmt.Errorf("finding the visitor: %w", err)
	}
	proven := map[string]string{"userId": v.UserID, "email": v.Email, "phone": v.Phone}
	if value := proven[v.VerifiedBy]; value != "" {
		meta["verified"] = map[string]string{"by": v.VerifiedBy, "value": value}
	}
	return meta, nil
}

// server returns the server of a connection that the settings name.
func (b *toolbox) server(connectionID string) toolServer {
	i := slices.IndexFunc(b.x.target.tools, func(s toolServer) bool { return s.ConnectionID == connectionID })
	return b.x.target.tools[i]
}

// log adds a call to what the log of calls shows.
func (b *toolbox) log(use bots.ToolUse, began time.Time) {
	b.llm.usage.tools.WithLabelValues(string(use.Outcome)).Inc()
	use.Arguments = shortened(use.Arguments, maxLogged)
	use.Result = shortened(use.Result, maxLogged)
	use.Milliseconds = b.llm.now().Sub(began).Milliseconds()
	b.x.uses = append(b.x.uses, use)
}

// objectOf parses the arguments of a call; false: they are no JSON object, or too long.
func objectOf(arguments string) (object map[string]any, ok bool) {
	if len(arguments) > maxArguments {
		return nil, false
	}
	decoder := json.NewDecoder(strings.NewReader(arguments))
	decoder.UseNumber() // numbers are shown as they were written
	err := decoder.Decode(&object)
	return object, err == nil && object != nil && !decoder.More()
}

// Visitors finds visitors.
type Visitors interface {
	Visitor(ctx context.Context, id string) (chat.Visitor, error)
}
