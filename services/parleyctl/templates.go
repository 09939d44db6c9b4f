package parleyctl

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/admin/view"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

func (a *app) template() resource[chat.MessageTemplate, view.Template] {
	return resource[chat.MessageTemplate, view.Template]{
		app:      a,
		argument: "TEMPLATE",
		find:     store.Store.Template,
		complete: a.completeTemplates,
		open:     a.cached,
		view:     view.TemplateOf,
		id:       func(v view.Template) string { return v.ID },
		columns:  templateColumns(60),
		rows:     func(v view.Template) []row { return rowsOf(v, templateColumns(chat.MaxTextLength)) },
	}
}

func templateColumns(textLimit int) []column[view.Template] {
	return []column[view.Template]{
		{"id", func(v view.Template) string { return v.ID }},
		{"company", func(v view.Template) string { return v.CompanyID }},
		{"name", func(v view.Template) string { return v.Name }},
		{"status", func(v view.Template) string { return v.Status }},
		{"parameters", func(v view.Template) string { return describeParameters(v.Parameters) }},
		{"text", func(v view.Template) string { return shorten(v.Text, textLimit) }},
	}
}

func describeParameters(parameters []view.Parameter) string {
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

func (a *app) templates() *cobra.Command {
	return commandGroup("templates", "Create, list, approve and reject message templates", []string{"template"},
		a.templatesCreate(), a.templatesList(), a.templatesShow(),
		a.templatesReview("approve", "Approve a template", chat.TemplateApproved),
		a.templatesReview("reject", "Reject a template", chat.TemplateRejected))
}

func (a *app) templatesCreate() *cobra.Command {
	var t chat.MessageTemplate
	var file string
	var parameters []string
	c := &cobra.Command{
		Use: "create", Short: "Create a message template", Args: exactArgs(),
		Long: `Create a message template. It is pending until it is approved. A parameter without a default must be given with every push;
"username" is the recipient's name.`,
		Example: `  parleyctl templates create --company COMPANY --name order_shipped \
    --text "Hello {{username}}, your order {{order}} is on its way." --param username=there --param order`,
	}
	require(c, "company", "name")
	a.addCompanyFlag(c, &t.CompanyID, "the company that it belongs to")
	c.Flags().StringVar(&t.Name, "name", "", "its name")
	c.Flags().StringVar(&t.Text, "text", "", "its text, with placeholders such as {{order}}")
	c.Flags().StringVar(&file, "text-file", "", "file with its text; - is standard input")
	c.Flags().StringArrayVar(&parameters, "param", nil, "a parameter, name or name=default; may be repeated")
	addIDFlag(c, &t.ID, "id", "its id, a UUID; default: a new one")
	checkFirst(c, func() (err error) {
		t.Status, t.Parameters = chat.TemplatePending, parseParameters(parameters)
		t.Text, err = a.templateText(t.Text, file)
		if err != nil {
			return err
		}
		return admin.CheckTemplate(t)
	})
	return a.template().create(c, func(ctx context.Context, o operations) (chat.MessageTemplate, error) {
		if _, err := o.store.Company(ctx, t.CompanyID); err != nil {
			return t, err
		}
		if err := unused(ctx, t.ID, o.store.Template); err != nil {
			return t, err
		}
		return o.PutTemplate(ctx, self(), t)
	})
}

// templateText returns the text of the command line or of the file.
func (a *app) templateText(text, file string) (string, error) {
	if (text == "") == (file == "") {
		return "", usage("set --text or --text-file")
	}
	if file == "" {
		return text, nil
	}
	data, err := a.readFile("--text-file", file)
	return strings.TrimRight(string(data), "\n"), err
}

func parseParameters(flags []string) (parameters []chat.TemplateParameter) {
	for _, flag := range flags {
		name, standIn, _ := strings.Cut(flag, "=")
		parameters = append(parameters, chat.TemplateParameter{Name: strings.TrimSpace(name), Default: standIn})
	}
	return parameters
}

func (a *app) templatesList() *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "List message templates"}
	return a.template().listAny(c, defaultLimit, store.Store.Templates)
}

func (a *app) templatesShow() *cobra.Command {
	return a.template().show(&cobra.Command{Use: "show TEMPLATE", Short: "Show a message template"})
}

func (a *app) templatesReview(verb, short, status string) *cobra.Command {
	c := &cobra.Command{Use: verb + " TEMPLATE", Short: short, Long: short + ". It takes effect within a second."}
	return a.template().change(c, func(
		ctx context.Context, o operations, t chat.MessageTemplate,
	) (chat.MessageTemplate, error) {
		return o.SetTemplateStatus(ctx, self(), t.ID, status, "")
	})
}
