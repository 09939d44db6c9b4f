// Package guide prints the instructions of standalone, with commands that work as pasted.
package guide

import (
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"text/template"

	"github.com/parley-chat/parley/services/standalone/internal/seed"
)

// TokenCommand returns the shell command that sets $TOKEN to the company's access token. The token itself is
// never printed.
func TokenCommand(demoFile string) string {
	return `TOKEN=$(sed -n 's/.*"accessToken": "\([^"]*\)".*/\1/p' ` + quote(demoFile) + `)`
}

// quote quotes path for the shell.
func quote(path string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._:-"
	if path != "" && strings.Trim(path, plain) == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// The template's blank lines are part of its layout in a terminal.
var howTo = template.Must(template.New("how-to").Parse(`
Parley is ready.

  Panel                     {{.PanelURL}}/ (sign in as {{.PanelEmail}}, password {{.PanelPassword}})
  Chat widget               {{.WidgetBaseURL}}/demo
  Answers come from         {{.Answers}}
  Widget on another site    {{.SiteURL}}/ (another origin with a strict Content-Security-Policy)
  API documentation         {{.ClientBaseURL}}/docs   {{.WidgetBaseURL}}/docs
  Watch events              make parleyctl && bin/parleyctl watch
                            nats --server {{.NATSURL}} sub 'chat.>' (needs the nats CLI, see README)
  Inspect the data          sqlite3 -readonly {{.SQLitePath}}
  Readiness and metrics     {{.OpsURL}}/readyz   {{.OpsURL}}/metrics

Act as the company (its access token is stored only in {{.DemoFile}}):

  {{.TokenCommand}}

  # send a template to a phone number{{if .Phone}}: it arrives at {{.Phone}}{{end}}
  curl -sS {{.ClientBaseURL}}/push-message -H "x-access-token: $TOKEN" -H 'Content-Type: application/json' \
    -d '{"templateId":"{{.TemplateID}}","source":"491701234567","username":"Ada"}'

  # send a message to a chat: after the bot's first answer, the demo page shows this command with the chat's id
  curl -sS {{.ClientBaseURL}}/message/send -H "x-access-token: $TOKEN" -H 'Content-Type: application/json' \
    -d '{"type":"TEXT","chatId":"'"$CHAT_ID"'","data":{"text":"Hello from the company"}}'

Act as a visitor without a browser:

  VISITOR=$(curl -sS {{.WidgetBaseURL}}/register -H 'Content-Type: application/json' \
    -d '{"appId":"{{.AppID}}","firstName":"Ada","email":"ada@example.com"}' | sed 's/.*"accessToken":"\([^"]*\)".*/\1/')
  curl -sS {{.WidgetBaseURL}}/message -H "Authorization: Bearer $VISITOR" -H 'Content-Type: application/json' \
    -d '{"type":"TEXT","data":{"text":"menu"}}'
  curl -sS {{.WidgetBaseURL}}/message -H "Authorization: Bearer $VISITOR"

Ctrl-C or kill {{.PID}} stops Parley. All data is kept.
`))

// Bot is the bot that answers visitors.
type Bot struct {
	Name     string // BOT
	Webhook  string // BOT_WEBHOOK_URL
	Model    string // LLM_MODEL
	ModelURL string // LLM_BASE_URL
}

func (b Bot) String() string {
	switch b.Name {
	case "webhook":
		return "your webhook, " + withoutSecrets(b.Webhook) + " (BOT=webhook)"
	case "llm":
		return "the language model " + b.Model + " at " + withoutSecrets(b.ModelURL) + " (BOT=llm)"
	case "none":
		return "agents in the panel: every chat waits for them (BOT=none)"
	case "external":
		return "your own processing layer (BOT=external)"
	}
	return "the demo bot (BOT=demo; BOT=webhook calls your own bot, BOT=none uses no bot)"
}

// withoutSecrets removes the user, the password and the query from a URL.
func withoutSecrets(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an address that cannot be read"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// HowTo prints the instructions after standalone has started. phoneURL is the page of the demo's phone; empty: none.
func HowTo(w io.Writer, d seed.Demo, bot Bot, demoFile, opsURL, siteURL, phoneURL string) error {
	err := howTo.Execute(w, struct {
		seed.Demo
		Answers                                 Bot
		DemoFile, TokenCommand, OpsURL, SiteURL string
		Phone                                   string
		PID                                     int
	}{d, bot, demoFile, TokenCommand(demoFile), opsURL, siteURL, phoneURL, os.Getpid()})
	if err != nil {
		return fmt.Errorf("printing the instructions: %w", err)
	}
	return nil
}

// Setting is one line of an environment file.
type Setting struct{ Name, Value string }

// Engines prints the settings that connect services to the engines, one NAME=value per line.
func Engines(w io.Writer, settings []Setting) error {
	for _, s := range settings {
		if _, err := fmt.Fprintf(w, "%s=%s\n", s.Name, quote(s.Value)); err != nil {
			return fmt.Errorf("printing the settings: %w", err)
		}
	}
	return nil
}
