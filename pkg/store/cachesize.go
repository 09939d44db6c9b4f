package store

import (
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/pkg/webhook"
)

// The sizes of cached values in bytes, by which a [Cache] is bounded: their texts, and about what the rest takes.

// recordBytes is what a record takes beside its longer texts, with its place in a cache.
const recordBytes = 768

func sizeOfToken(chat.AccessToken) int { return recordBytes }
func sizeOfChat(chat.Chat) int         { return recordBytes }

func sizeOfApplication(a chat.Application) int {
	size := 4*recordBytes + len(a.WidgetConfigs)
	for _, origin := range a.AllowedOrigins {
		size += len(origin)
	}
	return size
}

// SizeOfTemplate returns the memory of a template.
func SizeOfTemplate(t chat.MessageTemplate) int {
	size := recordBytes + len(t.Name) + len(t.Text)
	for _, p := range t.Parameters {
		size += len(p.Name) + len(p.Default)
	}
	return size
}

func sizeOfVisitor(v chat.Visitor) int {
	return recordBytes + len(v.FirstName) + len(v.LastName) + len(v.Email) + len(v.Phone) + len(v.UserID)
}

func sizeOfWebhooks(w CompanyWebhooks) int {
	size := recordBytes
	for _, e := range w.Endpoints {
		size += sizeOfEndpoint(e)
	}
	return size
}

func sizeOfEndpoint(e webhook.Endpoint) int {
	size := recordBytes + len(e.URL)
	for name, value := range e.Headers {
		size += len(name) + len(value)
	}
	return size
}

func sizeOfBot(b bots.Bot) int {
	s := b.InForce().Settings
	size := 2*recordBytes + len(s.Webhook.URL) + len(s.Model.Prompt) + len(s.FailureText)
	for _, phrase := range s.Handover.Phrases {
		size += len(phrase)
	}
	return size
}

func sizeOfKnowledge(s knowledge.Settings) int {
	return recordBytes + len(s.ConnectionID) + len(s.Model) + len(s.Work.Failure)
}

func sizeOfConnection(c bots.Connection) int { return recordBytes + len(c.BaseURL) + len(c.APIKey) }
