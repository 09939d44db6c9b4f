package bots

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parley-chat/parley/pkg/apperr"
)

// Bounds of the tools of a bot.
const (
	MaxToolServers = 5
	MaxTools       = 50 // of all its servers
	maxToolName    = 128
	maxQuestion    = 500 // characters
	maxLabel       = 100 // characters

	// DefaultAgree and DefaultDecline are the titles of the buttons below a question, if the settings have none.
	DefaultAgree   = "Yes"
	DefaultDecline = "No"
)

// Effect is what a tool does.
type Effect string

// The effects of tools.
const (
	Reads   Effect = "reads"   // nothing but answer
	Changes Effect = "changes" // something, so that the visitor is asked first
)

// ToolSettings are those of the tools that a language model may call.
type ToolSettings struct {
	Servers []ToolServer `json:"servers,omitempty"`
	Agree   string       `json:"agree,omitempty"`   // title of the button that agrees to a question; empty: [DefaultAgree]
	Decline string       `json:"decline,omitempty"` // title of the one that declines it; empty: [DefaultDecline]
}

// ToolServer is a server of the Model Context Protocol, and the tools of it that may be called.
type ToolServer struct {
	ConnectionID string `json:"connectionId"` // of the company; its address is that of the protocol's endpoint
	Tools        []Tool `json:"tools"`
}

// Tool is a tool that may be called.
type Tool struct {
	Name   string `json:"name"`
	Effect Effect `json:"effect"`
	// Question is what a visitor is asked before the tool changes something, with arguments as {name}. Arguments that it
	// does not name are listed below it.
	Question string `json:"question,omitempty"`
}

// Allows returns the tool of a connection that may be called.
func (s ToolSettings) Allows(connectionID, name string) (Tool, bool) {
	for _, server := range s.Servers {
		for _, tool := range server.Tools {
			if server.ConnectionID == connectionID && tool.Name == name {
				return tool, true
			}
		}
	}
	return Tool{}, false
}

func (s ToolSettings) check(f *apperr.Fields) {
	if len(s.Servers) > MaxToolServers {
		f.Add("model.tools.servers", "must be at most "+strconv.Itoa(MaxToolServers))
	}
	all := 0
	known := map[string]bool{}
	for i, server := range s.Servers {
		field := fmt.Sprintf("model.tools.servers[%d]", i)
		if server.ConnectionID == "" || known[server.ConnectionID] {
			f.Add(field+".connectionId", "is required, and must be another one for each server")
		}
		known[server.ConnectionID] = true
		all += len(server.Tools)
		server.check(f, field)
	}
	if all > MaxTools {
		f.Add("model.tools.servers", "must have at most "+strconv.Itoa(MaxTools)+" tools")
	}
	checkLabel(f, "model.tools.agree", s.Agree)
	checkLabel(f, "model.tools.decline", s.Decline)
}

func (s ToolServer) check(f *apperr.Fields, field string) {
	if len(s.Tools) == 0 {
		f.Add(field+".tools", "must have at least one tool")
	}
	known := map[string]bool{}
	for i, tool := range s.Tools {
		of := fmt.Sprintf("%s.tools[%d]", field, i)
		checkText(f, of+".name", tool.Name, maxToolName)
		if known[tool.Name] {
			f.Add(of+".name", "must be another one for each tool")
		}
		known[tool.Name] = true
		tool.check(f, of)
	}
}

func (t Tool) check(f *apperr.Fields, field string) {
	switch t.Effect {
	case Reads:
	case Changes:
		if strings.TrimSpace(t.Question) == "" {
			f.Add(field+".question", "is required for a tool that changes something")
		}
	default:
		f.Add(field+".effect", "must be reads or changes")
	}
	if utf8.RuneCountInString(t.Question) > maxQuestion || !utf8.ValidString(t.Question) {
		f.Add(field+".question", "must have at most "+strconv.Itoa(maxQuestion)+" characters")
	}
}

// checkLabel checks the title of a button, which may be empty.
func checkLabel(f *apperr.Fields, field, title string) {
	if title != "" {
		checkText(f, field, title, maxLabel)
	}
}
