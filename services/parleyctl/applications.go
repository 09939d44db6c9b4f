package parleyctl

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

type applicationView struct {
	ID             string              `json:"id"`
	CompanyID      string              `json:"companyId"`
	Name           string              `json:"name"`
	BotName        string              `json:"botName"`
	Provider       string              `json:"provider"`
	AllowedOrigins []string            `json:"allowedOrigins"`
	FileRetention  string              `json:"fileRetention,omitempty"` // such as 720h0m0s
	Verification   string              `json:"verification"`
	Secrets        []identitySecretRow `json:"identitySecrets"`
	Support        chat.Support        `json:"support"`
	WidgetConfigs  json.RawMessage     `json:"widgetConfigs,omitempty"`
}

// identitySecretRow is the part of a secret that can be shown again.
type identitySecretRow struct {
	CreatedAt timestamp `json:"createdAt"`
	ExpiresAt timestamp `json:"expiresAt,omitzero"`
}

func viewOfApplication(app chat.Application) applicationView {
	v := applicationView{
		ID: app.ID, CompanyID: app.CompanyID, Name: app.Name, BotName: app.BotName, Provider: app.Provider,
		AllowedOrigins: append([]string{}, app.AllowedOrigins...), WidgetConfigs: app.WidgetConfigs,
		Verification: cmp.Or(string(app.Identity.Mode), string(chat.VerificationOff)), Secrets: []identitySecretRow{},
		Support: app.Support,
	}
	if app.FileRetention > 0 {
		v.FileRetention = app.FileRetention.String()
	}
	for _, s := range app.Identity.Secrets {
		v.Secrets = append(v.Secrets, identitySecretRow{timestamp(s.CreatedAt), timestamp(s.ExpiresAt)})
	}
	return v
}

func applicationColumns() []column[applicationView] {
	return []column[applicationView]{
		{"id", func(v applicationView) string { return v.ID }},
		{"company", func(v applicationView) string { return v.CompanyID }},
		{"name", func(v applicationView) string { return v.Name }},
		{"bot", func(v applicationView) string { return v.BotName }},
		{"verification", func(v applicationView) string { return v.Verification }},
		{"origins", func(v applicationView) string { return cmp.Or(strings.Join(v.AllowedOrigins, ","), "any") }},
	}
}

func (a *app) printApplication(app chat.Application) error {
	return printOne(a, viewOfApplication(app), append(
		applicationColumns(),
		column[applicationView]{"provider", func(v applicationView) string { return v.Provider }},
		column[applicationView]{
			"files kept",
			func(v applicationView) string { return cmp.Or(v.FileRetention, "FILE_RETENTION") },
		},
		column[applicationView]{"secrets", func(v applicationView) string { return describeSecrets(v.Secrets) }},
		column[applicationView]{"support", func(v applicationView) string { return describeSupport(v.Support) }},
		column[applicationView]{"widgetConfigs", func(v applicationView) string { return string(v.WidgetConfigs) }},
	)...)
}

func describeSecrets(secrets []identitySecretRow) string {
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
	name, botName, provider, widgetConfigs string
	origins                                []string
	fileRetention                          time.Duration
}

func (f *applicationFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.name, "name", "", "its title")
	c.Flags().StringVar(&f.botName, "bot-name", "", "the sender name of the bot's messages")
	c.Flags().
		StringVar(&f.widgetConfigs, "widget-configs", "", "file with the widgetConfigs, a JSON object; - is standard input")
	c.Flags().
		StringSliceVar(&f.origins, "origin", nil, "origin that may embed the widget, such as https://www.example.com or https://*.example.com; may be repeated")
	c.Flags().
		DurationVar(&f.fileRetention, "file-retention", 0, "how long files that visitors send from now on are kept, such as 720h; 0: FILE_RETENTION")
}

// apply changes the fields of the flags that are set.
func (f *applicationFlags) apply(a *app, c *cobra.Command, app *chat.Application) error {
	for flag, member := range map[string]*string{"name": &app.Name, "bot-name": &app.BotName, "provider": &app.Provider} {
		if given := c.Flags().Lookup(flag); given != nil && given.Changed {
			*member = given.Value.String()
		}
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
	app.WidgetConfigs = configs
	return checkWidgetConfigs(configs)
}

// checkWidgetConfigs reports errors now that a visitor would see otherwise.
func checkWidgetConfigs(configs []byte) error {
	var f apperr.Fields
	if len(strings.TrimSpace(string(configs))) == 0 {
		f.Add("widgetConfigs", "must not be empty")
	}
	for _, fault := range chat.CheckWidgetConfigs(configs) {
		f.Add(fault.Field, fault.Message)
	}
	return f.Err()
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
	var company, id string
	c := &cobra.Command{
		Use: "create", Short: "Create a chat application", Args: exactArgs(),
		Long: `Create a chat application. Its identity verification is "session": a registration with a known identity continues that chat only
with the visitor's token or a proof; see "identity set".`,
		Example: `  parleyctl applications create --company COMPANY --name "Shop" --bot-name Polly --widget-configs widget.json`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := required(c, "company", "name"); err != nil {
				return err
			}
			owner, err := a.company(c.Context(), company)
			if err != nil {
				return err
			}
			s := a.connections.store
			if id, err = newID(c.Context(), id, s.Application); err != nil {
				return err
			}
			app := chat.Application{
				ID:            id,
				CompanyID:     owner.ID,
				Provider:      f.provider,
				BotName:       "Bot",
				WidgetConfigs: []byte(`{}`),
			}
			if err := f.apply(a, c, &app); err != nil {
				return err
			}
			if app, err = admin.New(s, nil, a.Now).CreateApplication(c.Context(), self(), app); err != nil {
				return err
			}
			return a.printApplication(app)
		},
	}
	f.add(c)
	c.Flags().
		StringVar(&f.provider, "provider", chat.ProviderWidget, "the channel that serves it; the Widget API serves widget")
	a.addCompanyFlag(c, &company, "the company that it belongs to")
	c.Flags().StringVar(&id, "id", "", "its id, a UUID; default: a new one")
	return c
}

// changeApplication reads an application, changes it and stores it.
func (a *app) changeApplication(
	ctx context.Context,
	arg string,
	change func(*admin.Service, *chat.Application) error,
) error {
	id, err := parseID("APPLICATION", arg)
	if err != nil {
		return err
	}
	s, b, err := a.openBoth(ctx)
	if err != nil {
		return err
	}
	app, err := s.Application(ctx, id)
	if err != nil {
		return err
	}
	return change(admin.New(s, b, a.Now), &app)
}

func (a *app) applicationsUpdate() *cobra.Command {
	var f applicationFlags
	c := &cobra.Command{
		Use:               "update APPLICATION",
		Short:             "Change a chat application",
		Args:              exactArgs("APPLICATION"),
		Aliases:           []string{"put"},
		Long:              "Change a chat application. Flags that are not set change nothing. The change takes effect within a second.",
		Example:           `  parleyctl applications update APPLICATION --widget-configs widget.json`,
		ValidArgsFunction: a.completeApplications,
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().NFlag() == 0 {
				return usage("nothing to change; see " + c.CommandPath() + " --help")
			}
			err := a.changeApplication(c.Context(), args[0], func(operations *admin.Service, app *chat.Application) error {
				if err := f.apply(a, c, app); err != nil {
					return err
				}
				_, err := operations.UpdateApplication(c.Context(), self(), *app)
				return err
			})
			if err != nil {
				return err
			}
			return a.showApplication(c.Context(), args[0])
		},
	}
	f.add(c)
	return c
}

func (a *app) showApplication(ctx context.Context, arg string) error {
	id, err := parseID("APPLICATION", arg)
	if err != nil {
		return err
	}
	s, err := a.openStore(ctx)
	if err != nil {
		return err
	}
	app, err := s.Application(ctx, id)
	if err != nil {
		return err
	}
	return a.printApplication(app)
}

func (a *app) applicationsList() *cobra.Command {
	var company string
	c := pagedList(a, &cobra.Command{
		Use: "list", Short: "List chat applications", Aliases: []string{"ls"}, Args: exactArgs(),
		PreRunE: func(*cobra.Command, []string) error { return optionalID("--company", &company) },
	}, func(ctx context.Context, s store.Store, page store.Page) ([]chat.Application, error) {
		return s.Applications(ctx, company, page)
	}, viewOfApplication, applicationColumns())
	a.addCompanyFlag(c, &company, "only this company's")
	return c
}

func (a *app) applicationsShow() *cobra.Command {
	return &cobra.Command{
		Use:               "show APPLICATION",
		Short:             "Show a chat application",
		Args:              exactArgs("APPLICATION"),
		ValidArgsFunction: a.completeApplications,
		RunE:              func(c *cobra.Command, args []string) error { return a.showApplication(c.Context(), args[0]) },
	}
}

func (a *app) applicationsOrigins() *cobra.Command {
	var set []string
	var everybody bool
	c := &cobra.Command{
		Use:   "origins APPLICATION",
		Short: "Show or set the origins that may embed the widget",
		Args:  exactArgs("APPLICATION"),
		Long: `Show or set the origins that may embed the widget: for CORS and the Origin of sockets. A rule is an origin as browsers send it,
whose host may begin with "*.", or null. It takes effect within a second.`,
		Example: `  parleyctl applications origins APPLICATION --set https://www.example.com,https://*.example.com
  parleyctl applications origins APPLICATION --any`,
		ValidArgsFunction: a.completeApplications,
		RunE: func(c *cobra.Command, args []string) error {
			if everybody == c.Flags().Changed("set") {
				return usage("set --set with origins, or --any")
			}
			err := a.changeApplication(c.Context(), args[0], func(operations *admin.Service, app *chat.Application) error {
				app.AllowedOrigins = set
				_, err := operations.UpdateApplication(c.Context(), self(), *app)
				return err
			})
			if err != nil {
				return err
			}
			return a.showApplication(c.Context(), args[0])
		},
	}
	c.Flags().StringSliceVar(&set, "set", nil, "only these origins")
	c.Flags().BoolVar(&everybody, "any", false, "every origin")
	return c
}
