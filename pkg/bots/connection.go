package bots

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/webhook"
)

const (
	// MaxConnections is the maximum number of connections of a company.
	MaxConnections = 50
	maxName        = 100  // characters
	maxAPIKey      = 4096 // bytes
)

// Connection is a server, and the key of a company there: one that speaks OpenAI's chat completions or embeddings, or the
// Model Context Protocol.
type Connection struct {
	ID        string    `json:"-"`
	CompanyID string    `json:"-"`
	Name      string    `json:"name"`
	BaseURL   string    `json:"baseUrl"`          // of chat completions without /chat/completions, of tools the endpoint
	APIKey    string    `json:"apiKey,omitempty"` // sent as Authorization: Bearer; empty: none
	CreatedAt time.Time `json:"createdAt"`
	Revision  int64     `json:"-"` // incremented by each update; 0: not stored
}

// Check returns Invalid for a connection with invalid fields.
func (c Connection) Check() error {
	var f apperr.Fields
	checkText(&f, "name", c.Name, maxName)
	webhook.CheckURL(&f, "baseUrl", c.BaseURL)
	if strings.Contains(c.BaseURL, "?") {
		f.Add("baseUrl", "must not have a query")
	}
	if len(c.APIKey) > maxAPIKey || !printable(c.APIKey) || strings.ContainsFunc(c.APIKey, unicode.IsSpace) {
		f.Add("apiKey", "must have at most "+strconv.Itoa(maxAPIKey)+" bytes, and no white space")
	}
	return f.Err()
}

// CompletionsURL is where the server answers.
func (c Connection) CompletionsURL() string {
	return strings.TrimSuffix(c.BaseURL, "/") + "/chat/completions"
}

// EmbeddingsURL is where the server makes embeddings.
func (c Connection) EmbeddingsURL() string {
	return strings.TrimSuffix(c.BaseURL, "/") + "/embeddings"
}

func printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}
