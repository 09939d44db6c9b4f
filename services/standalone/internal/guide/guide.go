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

// TokenCommand returns the shell command that puts the company's secret token into $TOKEN. The secret itself is never printed.
func TokenCommand(demoFile string) string {
	return `TOKEN=$(sed -n 's/.*"accessToken": "\([^"]*\)".*/\1/p' ` + quote(demoFile) + `)`
}

// quote quotes path as one word of a shell.
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

  The panel                 {{.PanelURL}}/ as {{.PanelEmail}}, password {{.PanelPassword}}
  Chat in the widget        {{.WidgetBaseURL}}/demo
  Who answers there         {{.Answers}}
  The widget elsewhere      {{.SiteURL}}/ (another origin, a strict policy)
  Read the APIs             {{.ClientBaseURL}}/docs   {{.WidgetBaseURL}}/docs
  Watch the events pass by  make parleyctl && bin/parleyctl watch
                            nats --server {{.NATSURL}} sub 'chat.>' (the nats CLI; the README says how to get it)
  Look into the data        sqlite3 -readonly {{.SQLitePath}}
  State and metrics         {{.OpsURL}}/readyz   {{.OpsURL}}/metrics

Be the company (its token stands in {{.DemoFile}}, and only there):

  {{.TokenCommand}}

  # a template to a phone number
  curl -sS {{.ClientBaseURL}}/push-message -H "x-access-token: $TOKEN" -H 'Content-Type: application/json' \
    -d '{"templateId":"{{.TemplateID}}","source":"491701234567","username":"Ada"}'

  # a message into a chat: the demo page shows this line with the chat's id once the bot has answered
  curl -sS {{.ClientBaseURL}}/message/send -H "x-access-token: $TOKEN" -H 'Content-Type: application/json' \
    -d '{"type":"TEXT","chatId":"'"$CHAT_ID"'","data":{"text":"Hello from the company"}}'

Be a visitor without a page:

  VISITOR=$(curl -sS {{.WidgetBaseURL}}/register -H 'Content-Type: application/json' \
    -d '{"appId":"{{.AppID}}","firstName":"Ada","email":"ada@example.com"}' | sed 's/.*"accessToken":"\([^"]*\)".*/\1/')
  curl -sS {{.WidgetBaseURL}}/message -H "Authorization: Bearer $VISITOR" -H 'Content-Type: application/json' \
    -d '{"type":"TEXT","data":{"text":"menu"}}'
  curl -sS {{.WidgetBaseURL}}/message -H "Authorization: Bearer $VISITOR"

Ctrl-C stops it, or kill {{.PID}}; everything is kept.
`))

// Bot is the bot that answers visitors.
type Bot struct {
	Name    string // BOT: demo, webhook or none
	Webhook string // BOT_WEBHOOK_URL
}

func (b Bot) String() string {
	switch b.Name {
	case "webhook":
		return "your webhook, " + withoutSecrets(b.Webhook) + " (BOT=webhook)"
	case "none":
		return "no bot (BOT=none): agents in the panel, or a processing layer of your own"
	}
	return "the demo bot (BOT=demo; webhook asks a bot of yours, none leaves it to agents)"
}

// withoutSecrets returns a URL without user, password and query.
func withoutSecrets(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "BOT_WEBHOOK_URL"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// HowTo prints the instructions for a standalone that is ready.
func HowTo(w io.Writer, d seed.Demo, bot Bot, demoFile, opsURL, siteURL string) error {
	err := howTo.Execute(w, struct {
		seed.Demo
		Answers                                 Bot
		DemoFile, TokenCommand, OpsURL, SiteURL string
		PID                                     int
	}{d, bot, demoFile, TokenCommand(demoFile), opsURL, siteURL, os.Getpid()})
	if err != nil {
		return fmt.Errorf("printing the how-to: %w", err)
	}
	return nil
}

// Setting is one line of an environment file.
type Setting struct{ Name, Value string }

// Engines prints the settings for services on these engines, one NAME=value a line.
func Engines(w io.Writer, settings []Setting) error {
	for _, s := range settings {
		if _, err := fmt.Fprintf(w, "%s=%s\n", s.Name, quote(s.Value)); err != nil {
			return fmt.Errorf("printing the settings: %w", err)
		}
	}
	return nil
}
