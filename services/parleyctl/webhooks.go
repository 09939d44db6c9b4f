package parleyctl

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/admin/view"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/webhook"
)

func (a *app) endpoint() resource[webhook.Endpoint, view.Endpoint] {
	return resource[webhook.Endpoint, view.Endpoint]{
		app:      a,
		argument: "ENDPOINT",
		find:     store.Store.WebhookEndpoint,
		open:     a.cached,
		view:     func(e webhook.Endpoint) view.Endpoint { return view.EndpointOf(e, a.Now()) },
		id:       func(v view.Endpoint) string { return v.ID },
		columns: []column[view.Endpoint]{
			{"id", func(v view.Endpoint) string { return v.ID }},
			{"url", func(v view.Endpoint) string { return v.URL }},
			{"events", func(v view.Endpoint) string { return cmp.Or(strings.Join(v.Events, ","), "all") }},
			{"status", describeStatus},
			{"ordered", func(v view.Endpoint) string { return yesNo(v.Ordered) }},
			{"signatures", func(v view.Endpoint) string { return joined(v.Signatures) }},
			{"warnings", func(v view.Endpoint) string { return strconv.Itoa(v.Warnings) }},
			{"description", func(v view.Endpoint) string { return v.Description }},
		},
	}
}

func describeStatus(v view.Endpoint) string {
	if v.DisabledReason != "" {
		return v.Status + " (" + v.DisabledReason + ")"
	}
	return v.Status
}

func joined(kinds []webhook.Kind) string {
	return strings.Join(view.ListOf(kinds, func(k webhook.Kind) string { return string(k) }), ",")
}

// newEndpoint is an endpoint with its new secrets, which are shown once.
type newEndpoint struct {
	view.Endpoint
	Secrets []string `json:"secrets"`
}

func (a *app) printWithSecrets(e webhook.Endpoint, fresh []webhook.Secret) error {
	a.note("Keep the secret: it is not shown again.")
	v := newEndpoint{a.endpoint().view(e), view.Verifiers(fresh)}
	return printOne(a, v, append(a.endpoint().rowsOf(v.Endpoint), row{"secret", strings.Join(v.Secrets, " ")})...)
}

func (a *app) delivery() resource[webhook.Delivery, view.Delivery] {
	return resource[webhook.Delivery, view.Delivery]{
		app:      a,
		argument: "ENDPOINT",
		view:     view.DeliveryOf,
		id:       func(v view.Delivery) string { return v.ID },
		columns: []column[view.Delivery]{
			{"id", func(v view.Delivery) string { return v.ID }},
			{"time", func(v view.Delivery) string { return v.CreatedAt.String() }},
			{"event", func(v view.Delivery) string { return v.EventType }},
			{"status", func(v view.Delivery) string { return v.Status }},
			{"reason", func(v view.Delivery) string { return v.Reason }},
			{"attempts", func(v view.Delivery) string { return strconv.Itoa(len(v.Attempts)) }},
			{"next", func(v view.Delivery) string { return v.NextAttemptAt.String() }},
			{"last answer", describeLastAttempt},
		},
	}
}

func describeLastAttempt(v view.Delivery) string {
	if len(v.Attempts) == 0 {
		return ""
	}
	last := v.Attempts[len(v.Attempts)-1]
	if last.StatusCode == 0 {
		return last.Error
	}
	return strings.TrimSpace(strconv.Itoa(last.StatusCode) + " " + shorten(last.Answer, 60))
}

func (a *app) webhooks() *cobra.Command {
	return commandGroup(
		"webhooks", "Create, list, rotate, test and replay a company's webhooks", []string{"webhook"},
		a.webhooksCreate(), a.webhooksList(), a.webhooksUpdate(), a.webhooksRotate(), a.webhooksEnable(),
		a.webhooksDisable(), a.webhooksDelete(), a.webhooksTest(), a.webhooksAttempts(), a.webhooksReplay(),
		a.webhooksRetention(),
	)
}

// webhookFlags are the settings of an endpoint on the command line.
type webhookFlags struct {
	url, urlFile, description string
	events                    []string
	headersFile               string
	ordered                   bool
}

func (f *webhookFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.url, "url", "", "the URL that receives events; one with a query needs --url-file")
	c.Flags().StringVar(&f.urlFile, "url-file", "",
		"file with the URL, whose query may be a secret; - is standard input")
	c.MarkFlagsMutuallyExclusive("url", "url-file")
	c.Flags().StringVar(&f.description, "description", "", "what it is for")
	c.Flags().StringSliceVar(&f.events, "events", nil, "types of events, separated by commas; default: all")
	c.Flags().StringVar(&f.headersFile, "headers", "",
		"file with headers that are sent with each request, a line such as 'X-Api-Key: abc' for each; - is standard "+
			"input, an empty file: none")
	c.Flags().BoolVar(&f.ordered, "ordered", false, "send the events of a chat one after the other")
	_ = c.RegisterFlagCompletionFunc("events", fixed(webhook.Types()...)) // the flag exists
}

// webhookURL returns the URL of the command line or of its file. One with a user or a query is refused on the
// command line, where other users of the machine can read it.
func (a *app) webhookURL(f *webhookFlags) (string, error) {
	if f.urlFile == "" {
		if strings.Contains(f.url, "?") || hasPassword(f.url) {
			return "", usage(
				"--url must not contain a query or a password, which other users can read there: use --url-file",
			)
		}
		return f.url, nil
	}
	text, err := a.readFile("--url-file", f.urlFile)
	return strings.TrimSpace(string(text)), err
}

// webhookHeaders reads the headers from their file: their values are secrets, which must not be arguments.
func (a *app) webhookHeaders(f *webhookFlags) (map[string]string, error) {
	headers := map[string]string{}
	if f.headersFile == "" {
		return headers, nil
	}
	text, err := a.readFile("--headers", f.headersFile)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, usage("--headers: each line must be a name and a value, such as 'X-Api-Key: abc'")
		}
		headers[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return headers, nil
}

func (a *app) webhooksCreate() *cobra.Command {
	var f webhookFlags
	var e webhook.Endpoint
	var signatures []string
	c := &cobra.Command{
		Use: "create", Short: "Create a webhook endpoint, and show its secret once", Args: exactArgs(),
		Example: "  parleyctl webhooks create --company COMPANY --url https://crm.example/parley " +
			"--events message.received,chat.closed\n" +
			"  parleyctl webhooks create --company COMPANY --url-file url.txt",
	}
	require(c, "company")
	a.addCompanyFlag(c, &e.CompanyID, "the company that it is for")
	c.Flags().StringSliceVar(&signatures, "signatures", []string{string(webhook.HMAC)},
		"v1 (HMAC), v1a (ed25519), or both")
	f.add(c)
	kinds := fixed(string(webhook.HMAC), string(webhook.Ed25519))
	_ = c.RegisterFlagCompletionFunc("signatures", kinds) // the flag exists
	checkFirst(c, func() (err error) {
		e.Description = f.description
		e.Events = f.events
		e.Ordered = f.ordered
		e.URL, err = a.webhookURL(&f)
		if err != nil {
			return err
		}
		if e.URL == "" && f.urlFile == "" {
			return usage("--url or --url-file is required")
		}
		e.Headers, err = a.webhookHeaders(&f)
		return err
	})
	return withOperations(c, a.cached, func(ctx context.Context, o operations) error {
		kinds := view.ListOf(signatures, func(name string) webhook.Kind { return webhook.Kind(name) })
		made, err := o.CreateWebhookEndpoint(ctx, self(), e, kinds...)
		if err != nil {
			return err
		}
		return a.printWithSecrets(made, made.Secrets)
	})
}

func (a *app) webhooksList() *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "List a company's webhook endpoints"}
	return a.endpoint().listOfCompany(c, store.Store.WebhookEndpoints)
}

func (a *app) webhooksUpdate() *cobra.Command {
	var f webhookFlags
	var change admin.WebhookChange
	c := &cobra.Command{
		Use: "update ENDPOINT", Short: "Change the given settings of a webhook endpoint",
		Example: "  parleyctl webhooks update ENDPOINT --events chat.opened,chat.closed --ordered",
	}
	f.add(c)
	checkFirst(c, func() (err error) {
		change, err = a.webhookChange(&f, c.Flags().Changed)
		return err
	})
	return a.endpoint().change(c, func(
		ctx context.Context, o operations, e webhook.Endpoint,
	) (webhook.Endpoint, error) {
		return o.UpdateWebhookEndpoint(ctx, self(), e.ID, change)
	})
}

// webhookChange returns the change of the given flags.
func (a *app) webhookChange(f *webhookFlags, given func(string) bool) (change admin.WebhookChange, err error) {
	if given("url") || given("url-file") {
		address, err := a.webhookURL(f)
		if err != nil {
			return change, err
		}
		change.URL = &address
	}
	if given("headers") {
		headers, err := a.webhookHeaders(f)
		if err != nil {
			return change, err
		}
		change.Headers = &headers
	}
	if given("description") {
		change.Description = &f.description
	}
	if given("events") {
		change.Events = &f.events
	}
	if given("ordered") {
		change.Ordered = &f.ordered
	}
	return change, nil
}

func (a *app) webhooksRotate() *cobra.Command {
	var overlap time.Duration
	c := &cobra.Command{
		Use:     "rotate ENDPOINT",
		Short:   "Create new secrets, and show them once; the earlier ones also sign during the overlap",
		Example: "  parleyctl webhooks rotate ENDPOINT --overlap 24h",
	}
	addOverlapFlag(c, &overlap)
	return a.endpoint().on(c, a.cached, func(ctx context.Context, o operations, e webhook.Endpoint) error {
		fresh, changed, err := o.RotateWebhookSecrets(ctx, self(), e.ID, overlap)
		if err != nil {
			return err
		}
		return a.printWithSecrets(changed, fresh)
	})
}

// addOverlapFlag adds the flag for how long replaced secrets also sign.
func addOverlapFlag(c *cobra.Command, overlap *time.Duration) {
	var text string
	c.Flags().StringVar(&text, "overlap", "24h", "how long the earlier secrets also sign")
	checkFirst(c, func() (err error) {
		*overlap, err = parseDuration(text)
		if err != nil {
			return usage("--overlap must be a duration such as 24h or 7d")
		}
		return nil
	})
}

func (a *app) webhooksEnable() *cobra.Command {
	c := &cobra.Command{Use: "enable ENDPOINT", Short: "Resume the deliveries to an endpoint"}
	return a.endpoint().change(c, a.endpoint().byID((*admin.Service).EnableWebhookEndpoint))
}

func (a *app) webhooksDisable() *cobra.Command {
	c := &cobra.Command{
		Use: "disable ENDPOINT", Short: "Stop the deliveries to an endpoint; later events can be replayed",
	}
	return a.endpoint().change(c, a.endpoint().byID((*admin.Service).DisableWebhookEndpoint))
}

func (a *app) webhooksDelete() *cobra.Command {
	c := &cobra.Command{Use: "delete ENDPOINT", Short: "Remove an endpoint and its log"}
	question := func(e webhook.Endpoint) string {
		return fmt.Sprintf("Remove the endpoint %s of company %s, with its log?", e.URL, e.CompanyID)
	}
	return a.endpoint().confirmed(c, question, func(
		ctx context.Context, o operations, e webhook.Endpoint,
	) (webhook.Endpoint, error) {
		return e, o.DeleteWebhookEndpoint(ctx, self(), e.ID)
	})
}

// testPollInterval is the interval of the polls for the result of a test delivery.
const testPollInterval = 200 * time.Millisecond

func (a *app) webhooksTest() *cobra.Command {
	var wait time.Duration
	c := &cobra.Command{Use: "test ENDPOINT", Short: "Send webhook.test to an endpoint, and show what it answers"}
	c.Flags().DurationVar(&wait, "wait", 20*time.Second, "how long to wait for the first attempt")
	return a.endpoint().on(c, a.stored, func(ctx context.Context, o operations, e webhook.Endpoint) error {
		d, err := o.TestWebhookEndpoint(ctx, self(), e.ID)
		if err != nil {
			return err
		}
		end := time.Now().Add(wait)
		for len(d.Attempts) == 0 && d.Status == webhook.Pending && time.Now().Before(end) {
			time.Sleep(testPollInterval)
			d, err = o.store.WebhookDelivery(ctx, d.ID)
			if err != nil {
				return err
			}
		}
		return a.delivery().print(d)
	})
}

// deliveryFlags filter deliveries.
type deliveryFlags struct {
	status, reason, event, from, to string
}

func (f *deliveryFlags) add(c *cobra.Command) {
	addChoiceFlag(c, &f.status, "status", "", "only those that are pending, delivered or failed",
		webhook.Pending, webhook.Delivered, webhook.Failed)
	addChoiceFlag(c, &f.reason, "reason", "", "only those that failed for this reason: exhausted, gone or disabled",
		webhook.ReasonExhausted, webhook.ReasonGone, webhook.ReasonDisabled)
	addChoiceFlag(c, &f.event, "event", "", "only events of this type", webhook.Types()...)
	c.Flags().StringVar(&f.from, "from", "", "only those created since (10m, 2d, 2026-11-21T12:00:00Z)")
	c.Flags().StringVar(&f.to, "to", "", "only those created before (10m, 2d, 2026-11-21T12:00:00Z)")
}

// filter returns the filter of the flags, without an endpoint.
func (f *deliveryFlags) filter(a *app) (filter store.WebhookFilter, err error) {
	filter = store.WebhookFilter{Status: f.status, Reason: f.reason, EventType: f.event}
	if f.status != "" && !admin.IsDeliveryStatus(f.status) {
		return filter, usage("--status must be pending, delivered or failed")
	}
	for _, end := range []struct {
		flag, value string
		into        *time.Time
	}{{"--from", f.from, &filter.From}, {"--to", f.to, &filter.To}} {
		*end.into, err = parseSince(a.Now(), end.value)
		if err != nil {
			return filter, usage(
				end.flag + " must be a duration such as 10m or 2d, or a time such as 2026-11-21T12:00:00Z",
			)
		}
	}
	return filter, nil
}

func (a *app) webhooksAttempts() *cobra.Command {
	var f deliveryFlags
	var filter store.WebhookFilter
	c := &cobra.Command{
		Use:     "attempts ENDPOINT",
		Short:   "List the deliveries of an endpoint with their attempts, newest first",
		Aliases: []string{"log"},
		Args:    exactArgs("ENDPOINT"),
		Example: "  parleyctl webhooks attempts ENDPOINT --status failed --from 1d",
	}
	f.add(c)
	checkFirst(c, func() (err error) {
		filter, err = f.filter(a)
		if err != nil {
			return err
		}
		filter.EndpointID, err = parseID("ENDPOINT", c.Flags().Arg(0))
		return err
	})
	return a.delivery().listPages(c, defaultLimit, func(
		ctx context.Context, s store.Store, page store.Page,
	) ([]webhook.Delivery, string, error) {
		if _, err := s.WebhookEndpoint(ctx, filter.EndpointID); err != nil {
			return nil, "", err
		}
		return s.WebhookDeliveries(ctx, filter, page)
	})
}

func (a *app) webhooksReplay() *cobra.Command {
	var f deliveryFlags
	var r admin.WebhookReplay
	c := &cobra.Command{
		Use:   "replay ENDPOINT",
		Short: "Send deliveries again: one, or all that failed in a time or for a reason",
		Long: `Send deliveries of an endpoint again, with the same webhook-id and all their attempts. Without --id, those that failed; --from, --to, --reason,
--event and --status select others. --dry-run only lists them.`,
		Example: "  parleyctl webhooks replay ENDPOINT --reason disabled --from 2d --dry-run",
	}
	f.add(c)
	addIDFlag(c, &r.ID, "id", "only this delivery")
	c.Flags().BoolVar(&r.DryRun, "dry-run", false, "change nothing, list what would be sent again")
	checkFirst(c, func() (err error) {
		r.Filter, err = f.filter(a)
		return err
	})
	return a.endpoint().on(c, a.stored, func(ctx context.Context, o operations, e webhook.Endpoint) error {
		if !e.Enabled() {
			a.note("The endpoint is disabled: replayed deliveries fail until it is enabled.")
		}
		r.Filter.EndpointID = e.ID
		replayed, err := replayAll(ctx, o, r)
		if err != nil {
			return err
		}
		if r.DryRun {
			a.note("%d would be sent again.", len(replayed))
		} else {
			a.note("%d are sent again.", len(replayed))
		}
		return printList(a, replayed, a.delivery().columns...)
	})
}

// replayAll replays page by page and returns what it has replayed.
func replayAll(ctx context.Context, o operations, r admin.WebhookReplay) (replayed []view.Delivery, err error) {
	for {
		page, next, err := o.ReplayWebhooks(ctx, self(), r)
		replayed = append(replayed, view.ListOf(page, view.DeliveryOf)...)
		if err != nil || next == "" {
			return replayed, err
		}
		r.After = next
	}
}

type retentionView struct {
	CompanyID string `json:"companyId"`
	Days      int    `json:"retentionDays"` // 0: the default
}

func (a *app) webhooksRetention() *cobra.Command {
	var company string
	var days int64
	c := &cobra.Command{
		Use: "retention", Short: "Set how long the log of a company's deliveries is kept", Args: exactArgs(),
		Example: "  parleyctl webhooks retention --company COMPANY --days 90",
	}
	require(c, "company")
	a.addCompanyFlag(c, &company, "the company")
	c.Flags().Int64Var(&days, "days", 0, "1 to 365; 0: the default, 30")
	return withOperations(c, a.cached, func(ctx context.Context, o operations) error {
		changed, err := o.SetWebhookRetention(ctx, self(), company, days)
		if err != nil {
			return err
		}
		v := retentionView{CompanyID: changed.ID, Days: admin.RetentionDays(changed)}
		return printOne(a, v, row{"company", v.CompanyID}, row{"days", strconv.Itoa(v.Days)})
	})
}
