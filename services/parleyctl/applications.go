package parleyctl

import (
	"cmp"
	"context"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/admin/view"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

// applicationDetail is an application with the channel that serves it.
type applicationDetail struct {
	view.Application
	Provider string `json:"provider"`
}

func (a *app) application() resource[chat.Application, applicationDetail] {
	columns := applicationColumns()
	return resource[chat.Application, applicationDetail]{
		app:      a,
		argument: "APPLICATION",
		find:     store.Store.Application,
		complete: a.completeApplications,
		open:     a.cached,
		view: func(app chat.Application) applicationDetail {
			return applicationDetail{view.ApplicationOf(app), app.Provider}
		},
		id:      func(v applicationDetail) string { return v.ID },
		columns: columns,
		rows: func(v applicationDetail) []row {
			return append(
				rowsOf(v, columns),
				row{"provider", v.Provider},
				row{"files kept", describeRetention(v.FileRetention)},
				row{"secrets", describeSecrets(v.Secrets)},
				row{"support", describeSupport(v.Support)},
				row{"widgetConfigs", string(v.WidgetConfigs)},
			)
		},
	}
}

func applicationColumns() []column[applicationDetail] {
	return []column[applicationDetail]{
		{"id", func(v applicationDetail) string { return v.ID }},
		{"company", func(v applicationDetail) string { return v.CompanyID }},
		{"name", func(v applicationDetail) string { return v.Name }},
		{"bot", func(v applicationDetail) string { return v.BotName }},
		{"verification", func(v applicationDetail) string { return string(v.Verification) }},
		{"origins", func(v applicationDetail) string { return cmp.Or(strings.Join(v.AllowedOrigins, ","), "any") }},
	}
}

// describeRetention describes how long files are kept: for a time, or as the setting says.
func describeRetention(seconds int64) string {
	if seconds == 0 {
		return "FILE_RETENTION"
	}
	return (time.Duration(seconds) * time.Second).String()
}

func describeSecrets(secrets []view.IdentitySecret) string {
	var parts []string
	for _, s := range secrets {
		part := "made " + s.CreatedAt.String()
		if !s.ExpiresAt.IsZero() {
			part += " until " + s.ExpiresAt.String()
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

func (a *app) applications() *cobra.Command {
	return commandGroup(
		"applications", "Create, list and change chat applications", []string{"application", "apps", "app"},
		a.applicationsCreate(), a.applicationsUpdate(), a.applicationsList(), a.applicationsShow(),
		a.applicationsOrigins(), a.applicationsSupport(), a.identity(),
	)
}

// applicationFlags are the settings of an application on the command line.
type applicationFlags struct {
	name, botName, widgetConfigs string
	origins                      []string
	fileRetention                time.Duration
}

func (f *applicationFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.name, "name", "", "its title")
	c.Flags().StringVar(&f.botName, "bot-name", "", "the sender name of the bot's messages")
	c.Flags().StringVar(&f.widgetConfigs, "widget-configs", "",
		"file with the widgetConfigs, a JSON object; - is standard input")
	c.Flags().StringSliceVar(&f.origins, "origin", nil,
		"origin that may embed the widget, such as https://www.example.com or https://*.example.com; may be repeated")
	c.Flags().DurationVar(&f.fileRetention, "file-retention", 0,
		"how long files that visitors send from now on are kept, such as 720h; 0: FILE_RETENTION")
}

// apply changes the fields of the flags that are set.
func (f *applicationFlags) apply(a *app, c *cobra.Command, app *chat.Application) error {
	if c.Flags().Changed("name") {
		app.Name = f.name
	}
	if c.Flags().Changed("bot-name") {
		app.BotName = f.botName
	}
	if c.Flags().Changed("origin") {
		app.AllowedOrigins = f.origins
	}
	if c.Flags().Changed("file-retention") {
		app.FileRetention = f.fileRetention
	}
	if f.widgetConfigs == "" {
		return nil
	}
	configs, err := a.readFile("--widget-configs", f.widgetConfigs)
	if err != nil {
		return err
	}
	if len(strings.TrimSpace(string(configs))) == 0 { // admin takes it for {}
		return apperr.Fields{{Name: "widgetConfigs", Message: "must not be empty"}}.Err()
	}
	app.WidgetConfigs = configs
	return nil
}

// readFile reads a file or standard input.
func (a *app) readFile(what, path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if path == "-" {
		data, err = io.ReadAll(a.In)
	}
	if err != nil {
		return nil, usage(what + ": " + err.Error())
	}
	return data, nil
}

func (a *app) applicationsCreate() *cobra.Command {
	var f applicationFlags
	app := chat.Application{BotName: "Bot", WidgetConfigs: []byte(`{}`)}
	c := &cobra.Command{
		Use: "create", Short: "Create a chat application", Args: exactArgs(),
		Long: `Create a chat application. Its identity verification is "session": a registration with a known identity continues that chat only
with the visitor's token or a proof; see "identity set".`,
		Example: `  parleyctl applications create --company COMPANY --name "Shop" --bot-name Polly --widget-configs widget.json`,
	}
	require(c, "company", "name")
	f.add(c)
	c.Flags().StringVar(&app.Provider, "provider", chat.ProviderWidget,
		"the channel that serves it; the Widget API serves widget")
	a.addCompanyFlag(c, &app.CompanyID, "the company that it belongs to")
	addIDFlag(c, &app.ID, "id", "its id, a UUID; default: a new one")
	return a.application().create(c, func(ctx context.Context, o operations) (chat.Application, error) {
		if _, err := o.store.Company(ctx, app.CompanyID); err != nil {
			return app, err
		}
		if err := unused(ctx, app.ID, o.store.Application); err != nil {
			return app, err
		}
		if err := f.apply(a, c, &app); err != nil {
			return app, err
		}
		return o.CreateApplication(ctx, self(), app)
	})
}

func (a *app) applicationsUpdate() *cobra.Command {
	var f applicationFlags
	c := &cobra.Command{
		Use:     "update APPLICATION",
		Short:   "Change a chat application",
		Aliases: []string{"put"},
		Long: "Change a chat application. Flags that are not set change nothing. The change takes effect within a " +
			"second.",
		Example: `  parleyctl applications update APPLICATION --widget-configs widget.json`,
	}
	f.add(c)
	checkFirst(c, func() error {
		if c.Flags().NFlag() == 0 {
			return usage("nothing to change; see " + c.CommandPath() + " --help")
		}
		return nil
	})
	return a.application().change(c, func(
		ctx context.Context, o operations, app chat.Application,
	) (chat.Application, error) {
		if err := f.apply(a, c, &app); err != nil {
			return app, err
		}
		return o.UpdateApplication(ctx, self(), app)
	})
}

func (a *app) applicationsList() *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "List chat applications"}
	return a.application().listAny(c, defaultLimit, store.Store.Applications)
}

func (a *app) applicationsShow() *cobra.Command {
	return a.application().show(&cobra.Command{Use: "show APPLICATION", Short: "Show a chat application"})
}

func (a *app) applicationsOrigins() *cobra.Command {
	var origins []string
	var everybody bool
	c := &cobra.Command{
		Use:   "origins APPLICATION",
		Short: "Show or set the origins that may embed the widget",
		Long: `Show or set the origins that may embed the widget: for CORS and the Origin of sockets. A rule is an origin as browsers send it,
whose host may begin with "*.", or null. It takes effect within a second.`,
		Example: `  parleyctl applications origins APPLICATION --set https://www.example.com,https://*.example.com
  parleyctl applications origins APPLICATION --any`,
	}
	c.Flags().StringSliceVar(&origins, "set", nil, "only these origins")
	c.Flags().BoolVar(&everybody, "any", false, "every origin")
	checkFirst(c, func() error {
		if everybody == c.Flags().Changed("set") {
			return usage("set --set with origins, or --any")
		}
		return nil
	})
	return a.application().change(c, func(
		ctx context.Context, o operations, app chat.Application,
	) (chat.Application, error) {
		app.AllowedOrigins = origins
		return o.UpdateApplication(ctx, self(), app)
	})
}
