package parleyctl

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/admin/view"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/store"
)

// bot finds bots by their application.
func (a *app) bot() resource[bots.Bot, view.Bot] {
	find := func(s store.Store, ctx context.Context, appID string) (bots.Bot, error) {
		return admin.New(s, nil, a.Now).Bot(ctx, appID)
	}
	return resource[bots.Bot, view.Bot]{
		app:      a,
		argument: "APPLICATION",
		find:     find,
		complete: a.completeApplications,
		open:     a.cached,
		view:     view.BotOf,
		id:       func(v view.Bot) string { return v.AppID },
		columns: []column[view.Bot]{
			{"application", func(v view.Bot) string { return v.AppID }},
			{"in force", describeInForce},
			{"versions", func(v view.Bot) string { return strconv.Itoa(len(v.Versions)) }},
			{"secrets", func(v view.Bot) string { return strconv.Itoa(len(v.Secrets)) }},
			{"draft", func(v view.Bot) string { return describeSettings(v.Draft) }},
		},
	}
}

func describeInForce(v view.Bot) string {
	if len(v.Versions) == 0 {
		return string(bots.Default)
	}
	current := v.Versions[0]
	return fmt.Sprintf("version %d (%s) of %s by %s: %s", current.Number, current.Settings.Kind,
		current.PublishedAt, current.PublishedBy, describeSettings(current.Settings))
}

// describeSettings returns the settings as JSON.
func describeSettings(s bots.Settings) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic("parleyctl: settings of texts and numbers do not encode: " + err.Error())
	}
	return string(text)
}

func (a *app) bots() *cobra.Command {
	return commandGroup(
		"bots", "Show, draft and publish the bots of applications", []string{"bot"},
		a.botsShow(), a.botsDraft(), a.botsPublish(), a.botsRotate(),
	)
}

func (a *app) botsShow() *cobra.Command {
	c := &cobra.Command{
		Use: "show APPLICATION", Short: "Show the bot of an application, with all its versions (-o json)",
	}
	return a.bot().show(c)
}

func (a *app) botsDraft() *cobra.Command {
	var draft bots.Settings
	c := &cobra.Command{
		Use:   "draft APPLICATION",
		Short: "Set the draft of an application's bot",
		Long: `Set the draft of an application's bot, from a JSON file that replaces all settings (docs/bots.md):

  {
    "kind": "model",
    "model": {"connectionId": "CONNECTION", "model": "small", "prompt": "You are Polly.", "temperature": 0.3},
    "failureText": "Sorry, I cannot answer right now.",
    "handover": {"onFailure": true, "phrases": ["human"]}
  }

It answers nobody before "bots publish".`,
		Example: `  parleyctl bots draft APPLICATION --set bot.json`,
	}
	addSettingsFlag(a, c, &draft)
	return a.bot().change(c, func(ctx context.Context, o operations, b bots.Bot) (bots.Bot, error) {
		return o.SetBotDraft(ctx, self(), b.AppID, admin.AnyRevision, draft)
	})
}

// addSettingsFlag adds the required flag for a file of settings.
func addSettingsFlag[S any](a *app, c *cobra.Command, into *S) {
	var file string
	c.Flags().StringVar(&file, "set", "", "file with the settings; - is standard input")
	require(c, "set")
	checkFirst(c, func() error {
		text, err := a.readFile("--set", file)
		if err != nil {
			return err
		}
		*into, err = decodeSettings[S](text)
		return err
	})
}

// decodeSettings decodes a file of settings. A misspelt name is an error: without it the setting would be removed
// silently.
func decodeSettings[S any](text []byte) (s S, err error) {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return s, apperr.MalformedJSON.WithMessage("The file is not a JSON object of these settings: " + err.Error())
	}
	if d.More() {
		return s, apperr.MalformedJSON.WithMessage("The file has data after the JSON object")
	}
	return s, nil
}

// publishedBot is a bot with its new secret, which is shown once.
type publishedBot struct {
	view.Bot
	Secret string `json:"secret,omitempty"`
}

func (a *app) printBot(b bots.Bot, secret string) error {
	v := publishedBot{view.BotOf(b), secret}
	rows := a.bot().rowsOf(v.Bot)
	if secret != "" {
		a.note("Keep the secret: it is not shown again.")
		rows = append(rows, row{"secret", secret})
	}
	return printOne(a, v, rows...)
}

func (a *app) botsPublish() *cobra.Command {
	p := admin.Publication{Revision: admin.AnyRevision}
	c := &cobra.Command{
		Use:   "publish APPLICATION",
		Short: "Put the draft, or an earlier version, in force",
		Long: `Put the draft of an application's bot in force, or an earlier version, within a second and without a restart.
Questions that are being answered end with the version that they began with. A bot that calls the company's server for
the first time gets a secret. A processor first asks the server whether it answers.`,
		Example: "  parleyctl bots publish APPLICATION\n  parleyctl bots publish APPLICATION --version 3",
	}
	c.Flags().IntVar(&p.Number, "version", 0, "an earlier version; 0: the draft")
	c.Flags().BoolVar(&p.Unchecked, "unchecked", false, "do not ask the server whether it answers")
	checkFirst(c, func() error { return notNegative("--version", p.Number) })
	return a.bot().on(c, a.cached, func(ctx context.Context, o operations, b bots.Bot) error {
		published, fresh, err := o.PublishBot(ctx, self(), b.AppID, p)
		if err != nil {
			return err
		}
		secret := ""
		if fresh != nil {
			secret = fresh.Verifier()
		}
		return a.printBot(published, secret)
	})
}

func (a *app) botsRotate() *cobra.Command {
	var overlap time.Duration
	c := &cobra.Command{
		Use:     "rotate APPLICATION",
		Short:   "Create a new secret, and show it once; the earlier ones also sign during the overlap",
		Example: "  parleyctl bots rotate APPLICATION --overlap 24h",
	}
	addOverlapFlag(c, &overlap)
	return a.bot().on(c, a.cached, func(ctx context.Context, o operations, b bots.Bot) error {
		fresh, changed, err := o.RotateBotSecret(ctx, self(), b.AppID, overlap)
		if err != nil {
			return err
		}
		return a.printBot(changed, fresh.Verifier())
	})
}

func (a *app) modelConnection() resource[bots.Connection, view.Connection] {
	return resource[bots.Connection, view.Connection]{
		app:      a,
		argument: "CONNECTION",
		find:     store.Store.ModelConnection,
		open:     a.cached,
		view:     view.ConnectionOf,
		id:       func(v view.Connection) string { return v.ID },
		columns: []column[view.Connection]{
			{"id", func(v view.Connection) string { return v.ID }},
			{"company", func(v view.Connection) string { return v.CompanyID }},
			{"name", func(v view.Connection) string { return v.Name }},
			{"address", func(v view.Connection) string { return v.BaseURL }},
			{"key", func(v view.Connection) string { return yesNo(v.HasAPIKey) }},
		},
	}
}

func (a *app) modelConnections() *cobra.Command {
	return commandGroup(
		"connections", "Create, list and change the connections of companies to language models and tools", []string{"connection"},
		a.connectionsCreate(), a.connectionsList(), a.connectionsTools(), a.connectionsUpdate(), a.connectionsDelete(),
	)
}

// connectionFlags are the settings of a connection on the command line. The key is a secret, which must not be an
// argument.
type connectionFlags struct{ name, url, keyFile string }

func (f *connectionFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.name, "name", "", "its name")
	c.Flags().StringVar(&f.url, "url", "",
		"address of a server that speaks OpenAI's chat completions, without /chat/completions; or the endpoint of tools")
	c.Flags().StringVar(&f.keyFile, "key-file", "", "file with the API key; - is standard input, an empty file: none")
}

// change returns the change of the given flags.
func (f *connectionFlags) change(a *app, given func(string) bool) (c admin.ConnectionChange, err error) {
	if given("name") {
		c.Name = &f.name
	}
	if given("url") {
		c.BaseURL = &f.url
	}
	if given("key-file") {
		text, err := a.readFile("--key-file", f.keyFile)
		if err != nil {
			return c, err
		}
		key := strings.TrimSpace(string(text))
		c.APIKey = &key
	}
	return c, nil
}

func (a *app) connectionsCreate() *cobra.Command {
	var f connectionFlags
	made := bots.Connection{}
	c := &cobra.Command{
		Use: "create", Short: "Create a connection to language models or tools", Args: exactArgs(),
		Example: "  parleyctl connections create --company COMPANY --name Models " +
			"--url https://models.example.com/v1 --key-file key.txt",
	}
	require(c, "company", "name", "url")
	a.addCompanyFlag(c, &made.CompanyID, "the company that it is for")
	f.add(c)
	checkFirst(c, func() error {
		change, err := f.change(a, c.Flags().Changed)
		made.Name, made.BaseURL = f.name, f.url
		if change.APIKey != nil {
			made.APIKey = *change.APIKey
		}
		return err
	})
	return withOperations(c, a.cached, func(ctx context.Context, o operations) error {
		stored, err := o.CreateModelConnection(ctx, self(), made)
		if err != nil {
			return err
		}
		return a.modelConnection().print(stored)
	})
}

func (a *app) connectionsList() *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "List a company's connections"}
	return a.modelConnection().listOfCompany(c, store.Store.ModelConnections)
}

func (a *app) connectionsTools() *cobra.Command {
	c := &cobra.Command{Use: "tools CONNECTION", Short: "Ask a connection's server for the tools that it has"}
	return a.modelConnection().on(c, a.cached, func(ctx context.Context, o operations, v bots.Connection) error {
		list, err := o.ListTools(ctx, v)
		if err != nil {
			return err
		}
		if list.Failure != "" {
			return apperr.New(apperr.Unavailable, "TOOLS_UNAVAILABLE", list.Failure)
		}
		return printList(a, list.Tools,
			column[bots.ListedTool]{"name", func(t bots.ListedTool) string { return t.Name }},
			column[bots.ListedTool]{"reads only", func(t bots.ListedTool) string { return yesNo(t.ReadOnly) }},
			column[bots.ListedTool]{"description", func(t bots.ListedTool) string { return t.Description }},
		)
	})
}

func (a *app) connectionsUpdate() *cobra.Command {
	var f connectionFlags
	var change admin.ConnectionChange
	c := &cobra.Command{
		Use: "update CONNECTION", Short: "Change the given settings of a connection",
		Example: "  parleyctl connections update CONNECTION --key-file key.txt",
	}
	f.add(c)
	checkFirst(c, func() (err error) {
		change, err = f.change(a, c.Flags().Changed)
		return err
	})
	return a.modelConnection().change(c, func(
		ctx context.Context, o operations, v bots.Connection,
	) (bots.Connection, error) {
		return o.UpdateModelConnection(ctx, self(), v.ID, change)
	})
}

func (a *app) connectionsDelete() *cobra.Command {
	c := &cobra.Command{Use: "delete CONNECTION", Short: "Remove a connection that no bot uses"}
	question := func(v bots.Connection) string {
		return fmt.Sprintf("Remove the connection %s of company %s?", v.Name, v.CompanyID)
	}
	return a.modelConnection().confirmed(c, question, func(
		ctx context.Context, o operations, v bots.Connection,
	) (bots.Connection, error) {
		return v, o.DeleteModelConnection(ctx, self(), v.ID)
	})
}
