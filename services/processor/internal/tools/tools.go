// Package tools calls the tools of companies' servers over the Model Context Protocol (streamable HTTP): in the revision
// 2026-07-28, or with a handshake in the revisions before it.
package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-chat/parley/services/processor/internal/guard"
)

const (
	// maxBody bounds a response in bytes, maxEvent an event of it.
	maxBody  = 4 << 20
	maxEvent = 1 << 20
	// maxTools bounds the tools that a server may have, maxSchema the description and the schema of one in bytes.
	maxTools  = 500
	maxSchema = 16 << 10
	// maxResult bounds the text of a result in bytes: about 4,000 tokens.
	maxResult = 16 << 10
	// listKept is how long the list of a server's tools is used again, lists the number of servers.
	listKept = time.Minute
	lists    = 1000
)

// Server is a server of tools.
type Server struct {
	URL string // of the endpoint
	Key string // sent as Authorization: Bearer; empty: none
}

// Tool is a tool as its server describes it.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of the arguments
	ReadOnly    bool            // as the server says, which nothing proves
}

// Result is what a tool has answered.
type Result struct {
	Text   string // shortened
	Failed bool   // the tool reports an error
}

// Client calls servers. It is safe for concurrent use.
type Client struct {
	http   *http.Client
	now    func() time.Time
	listed *lru.Cache[Server, list]
}

type list struct {
	tools []Tool
	at    time.Time
}

// New returns a client that connects with another one, whose guard decides which addresses are allowed.
func New(guarded *http.Client, now func() time.Time) *Client {
	listed, _ := lru.New[Server, list](lists) // fails only for a size of zero
	return &Client{http: guarded, now: now, listed: listed}
}

// Open returns a session with a server, which connects when it is used.
func (c *Client) Open(s Server) *Session { return &Session{client: c, server: s} }

// Session is a session with a server. It belongs to one goroutine. Close ends it.
type Session struct {
	client *Client
	server Server
	live   *mcp.ClientSession // nil: not connected
}

// Close ends the session.
func (s *Session) Close() {
	if s.live != nil {
		_ = s.live.Close() // the server ends a session that it knows by itself
	}
}

// connect connects the session. A tool cannot ask anything back: nothing would answer.
func (s *Session) connect(ctx context.Context) error {
	if s.live != nil {
		return nil
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "Parley", Version: "1.0"}, &mcp.ClientOptions{
		Capabilities:   &mcp.ClientCapabilities{},
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	})
	bounded := *s.client.http
	bounded.Transport = &transport{server: s.server, next: s.client.http.Transport}
	live, err := client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: s.server.URL, HTTPClient: &bounded, MaxRetries: -1, DisableStandaloneSSE: true, MaxEventSize: maxEvent,
	}, nil)
	s.live = live
	return err
}

// List returns the tools of the server, as it has listed them within a minute. Tools with a description or a schema of
// more than 16 KiB are left out.
func (s *Session) List(ctx context.Context) ([]Tool, error) {
	known, ok := s.client.listed.Get(s.server)
	if ok && s.client.now().Sub(known.at) < listKept {
		return known.tools, nil
	}
	return s.Read(ctx)
}

// Read returns the tools of the server as List does, as it lists them now.
func (s *Session) Read(ctx context.Context) ([]Tool, error) {
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	all := []Tool{}
	for tool, err := range s.live.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		if len(all) == maxTools {
			return nil, fmt.Errorf("the server has more than %d tools", maxTools)
		}
		schema, err := json.Marshal(tool.InputSchema)
		if err == nil && len(schema) <= maxSchema && len(tool.Description) <= maxSchema {
			all = append(all, Tool{
				Name: tool.Name, Description: cmp.Or(tool.Description, tool.Title), Schema: schema,
				ReadOnly: tool.Annotations != nil && tool.Annotations.ReadOnlyHint,
			})
		}
	}
	s.client.listed.Add(s.server, list{all, s.client.now()})
	return all, nil
}

// Call calls a tool once, with arguments that are a JSON object. meta is what Parley says about the call, beside what
// the model has written. An error means that it is not known whether the tool has run.
func (s *Session) Call(ctx context.Context, name, arguments string, meta map[string]any) (Result, error) {
	if err := s.connect(ctx); err != nil {
		return Result{}, err
	}
	answered, err := s.live.CallTool(ctx, &mcp.CallToolParams{
		Meta: meta, Name: name, Arguments: json.RawMessage(arguments),
	})
	if err != nil {
		return Result{}, err
	}
	if len(answered.InputRequests) > 0 {
		return Result{Text: "The tool asks for something that nobody can answer here", Failed: true}, nil
	}
	return Result{Text: textOf(answered), Failed: answered.IsError}, nil
}

// textOf returns a result as text.
func textOf(r *mcp.CallToolResult) string {
	var parts []string
	for _, content := range r.Content {
		switch of := content.(type) {
		case *mcp.TextContent:
			parts = append(parts, of.Text)
		case *mcp.EmbeddedResource:
			if of.Resource != nil && of.Resource.Text != "" {
				parts = append(parts, of.Resource.Text)
			}
		case *mcp.ResourceLink:
			parts = append(parts, of.URI)
		default:
			parts = append(parts, "[content that is no text was left out]")
		}
	}
	if len(parts) == 0 && r.StructuredContent != nil {
		structured, err := json.Marshal(r.StructuredContent)
		if err == nil {
			parts = append(parts, string(structured))
		}
	}
	text := strings.ToValidUTF8(strings.Join(parts, "\n"), "\uFFFD")
	if len(text) > maxResult {
		text = strings.ToValidUTF8(text[:maxResult], "") + "\n[shortened]"
	}
	return text
}

// Reason returns why a server has not answered, for a company.
func Reason(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.Is(err, errTooLarge):
		return errTooLarge.Error()
	}
	return guard.Reason(err)
}

// transport adds the key to requests, and bounds the responses.
type transport struct {
	server Server
	next   http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.server.Key != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+t.server.Key)
	}
	response, err := t.next.RoundTrip(r)
	if err == nil {
		response.Body = &boundedBody{ReadCloser: response.Body, left: maxBody}
	}
	return response, err
}

var errTooLarge = fmt.Errorf("the answer has more than %d bytes", maxBody)

// boundedBody fails when more than left bytes are read.
type boundedBody struct {
	io.ReadCloser
	left int
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.left -= n
	if b.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}
