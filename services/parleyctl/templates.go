package parleyctl

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

type templateView struct {
	ID         string          `json:"id"`
	CompanyID  string          `json:"companyId"`
	Name       string          `json:"name"`
	Status     string          `json:"status"`
	Text       string          `json:"text"`
	Parameters []parameterView `json:"parameters"`
}

type parameterView struct {
	Name    string `json:"name"`
	Default string `json:"default"`
}

func viewOfTemplate(t chat.MessageTemplate) templateView {
	v := templateView{
		ID:         t.ID,
		CompanyID:  t.CompanyID,
		Name:       t.Name,
		Status:     t.Status,
		Text:       t.Text,
		Parameters: []parameterView{},
	}
	for _, p := range t.Parameters {
		v.Parameters = append(v.Parameters, parameterView(p))
	}
	return v
}

func templateColumns(textLimit int) []column[templateView] {
	return []column[templateView]{
		{"id", func(v templateView) string { return v.ID }},
		{"company", func(v templateView) string { return v.CompanyID }},
		{"name", func(v templateView) string { return v.Name }},
		{"status", func(v templateView) string { return v.Status }},
		{"parameters", func(v templateView) string { return describeParameters(v.Parameters) }},
		{"text", func(v templateView) string { return shorten(v.Text, textLimit) }},
	}
}

func describeParameters(parameters []parameterView) string {
	var parts []string
	for _, p := range parameters {
		part := p.Name
		if p.Default != "" {
			part += "=" + p.Default
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

func (a *app) printTemplate(t chat.MessageTemplate) error {
	return printOne(a, viewOfTemplate(t), templateColumns(chat.MaxTextLength)...)
}

func (a *app) templates() *cobra.Command {
	return commandGroup("templates", "Create, list, approve and reject message templates", []string{"template"},
		a.templatesCreate(), a.templatesList(), a.templatesShow(),
		a.templatesReview("approve", "Approve a template", chat.TemplateApproved),
		a.templatesReview("reject", "Reject a template", chat.TemplateRejected))
}

func (a *app) templatesCreate() *cobra.Command {
	var company, id, title, text, file string
	var parameters []string
	c := &cobra.Command{
		Use: "create", Short: "Create a message template", Args: exactArgs(),
		Long: `Create a message template. It is pending until it is approved. A parameter without a default must be given with every push;
"username" is the recipient's name.`,
		Example: `  parleyctl templates create --company COMPANY --name order_shipped \
    --text "Hello {{username}}, your order {{order}} is on its way." --param username=there --param order`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := required(c, "company", "name"); err != nil {
				return err
			}
			if (text == "") == (file == "") {
				return usage("set --text or --text-file")
			}
			if file != "" {
				data, err := a.readFile("--text-file", file)
				if err != nil {
					return err
				}
				text = strings.TrimRight(string(data), "\n")
			}
			t := chat.MessageTemplate{
				Name:       title,
				Status:     chat.TemplatePending,
				Text:       text,
				Parameters: parseParameters(parameters),
			}
			if err := admin.CheckTemplate(t); err != nil {
				return err
			}
			owner, err := a.company(c.Context(), company)
			if err != nil {
				return err
			}
			s := a.connections.store
			if t.ID, err = newID(c.Context(), id, s.Template); err != nil {
				return err
			}
			t.CompanyID = owner.ID
			if t, err = admin.New(s, nil, a.Now).PutTemplate(c.Context(), self(), t); err != nil {
				return err
			}
			return a.printTemplate(t)
		},
	}
	a.addCompanyFlag(c, &company, "the company that it belongs to")
	c.Flags().StringVar(&title, "name", "", "its name")
	c.Flags().StringVar(&text, "text", "", "its text, with placeholders such as {{order}}")
	c.Flags().StringVar(&file, "text-file", "", "file with its text; - is standard input")
	c.Flags().StringArrayVar(&parameters, "param", nil, "a parameter, name or name=default; may be repeated")
	c.Flags().StringVar(&id, "id", "", "its id, a UUID; default: a new one")
	return c
}

func parseParameters(flags []string) (parameters []chat.TemplateParameter) {
	for _, flag := range flags {
		name, standIn, _ := strings.Cut(flag, "=")
		parameters = append(parameters, chat.TemplateParameter{Name: strings.TrimSpace(name), Default: standIn})
	}
	return parameters
}

func (a *app) templatesList() *cobra.Command {
	var company string
	c := pagedList(a, &cobra.Command{
		Use: "list", Short: "List message templates", Aliases: []string{"ls"}, Args: exactArgs(),
		PreRunE: func(*cobra.Command, []string) error { return optionalID("--company", &company) },
	}, func(ctx context.Context, s store.Store, page store.Page) ([]chat.MessageTemplate, error) {
		return s.Templates(ctx, company, page)
	}, viewOfTemplate, templateColumns(60))
	a.addCompanyFlag(c, &company, "only this company's")
	return c
}

func (a *app) template(ctx context.Context, arg string) (chat.MessageTemplate, error) {
	id, err := parseID("TEMPLATE", arg)
	if err != nil {
		return chat.MessageTemplate{}, err
	}
	s, err := a.openStore(ctx)
	if err != nil {
		return chat.MessageTemplate{}, err
	}
	return s.Template(ctx, id)
}

func (a *app) templatesShow() *cobra.Command {
	return &cobra.Command{
		Use:               "show TEMPLATE",
		Short:             "Show a message template",
		Args:              exactArgs("TEMPLATE"),
		ValidArgsFunction: a.completeTemplates,
		RunE: func(c *cobra.Command, args []string) error {
			t, err := a.template(c.Context(), args[0])
			if err != nil {
				return err
			}
			return a.printTemplate(t)
		},
	}
}

func (a *app) templatesReview(verb, short, status string) *cobra.Command {
	return &cobra.Command{
		Use: verb + " TEMPLATE", Short: short, Long: short + ". It takes effect within a second.",
		Args: exactArgs("TEMPLATE"), ValidArgsFunction: a.completeTemplates,
		RunE: func(c *cobra.Command, args []string) error {
			b, err := a.openBus(c.Context())
			if err != nil {
				return err
			}
			t, err := a.template(c.Context(), args[0])
			if err != nil {
				return err
			}
			if t, err = admin.New(a.connections.store, b, a.Now).SetTemplateStatus(c.Context(), self(), t.ID, status, ""); err != nil {
				return err
			}
			return a.printTemplate(t)
		},
	}
}
