package parleyctl

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/webhook"
)

type webhookView struct {
	ID             string    `json:"id"`
	CompanyID      string    `json:"companyId"`
	URL            string    `json:"url"`
	Description    string    `json:"description,omitempty"`
	Events         []string  `json:"events"`  // empty: all
	Headers        []string  `json:"headers"` // names only
	Ordered        bool      `json:"ordered"`
	Status         string    `json:"status"`
	DisabledReason string    `json:"disabledReason,omitempty"`
	Signatures     []string  `json:"signatures"`
	PublicKeys     []string  `json:"publicKeys,omitempty"`
	CreatedAt      timestamp `json:"createdAt"`
	FailingSince   timestamp `json:"failingSince,omitzero"`
	Warnings       int       `json:"warnings"`
	Secrets        []string  `json:"secrets,omitempty"` // only at creation: whsec_, or whpk_ of a new key pair
}

func (a *app) viewOfWebhook(e webhook.Endpoint, fresh ...webhook.Secret) webhookView {
	v := webhookView{
		ID:             e.ID,
		CompanyID:      e.CompanyID,
		URL:            e.URL,
		Description:    e.Description,
		Events:         append([]string{}, e.Events...),
		Ordered:        e.Ordered,
		Headers:        append([]string{}, slices.Sorted(maps.Keys(e.Headers))...),
		Status:         e.Status(),
		DisabledReason: e.DisabledReason,
		Signatures:     []string{},
		CreatedAt:      timestamp(e.CreatedAt),
		FailingSince:   timestamp(e.FailingSince),
		Warnings:       e.Warnings,
	}
	for _, kind := range e.Kinds(a.Now()) {
		v.Signatures = append(v.Signatures, string(kind))
	}
	v.PublicKeys = append(v.PublicKeys, e.PublicKeys(a.Now())...)
	for _, s := range fresh {
		v.Secrets = append(v.Secrets, s.Verifier())
	}
	return v
}

func webhookColumns() []column[webhookView] {
	return []column[webhookView]{
		{"id", func(v webhookView) string { return v.ID }},
		{"url", func(v webhookView) string { return v.URL }},
		{"events", func(v webhookView) string {
			if len(v.Events) == 0 {
				return "all"
			}
			return strings.Join(v.Events, ",")
		}},
		{"status", func(v webhookView) string {
			if v.DisabledReason != "" {
				return v.Status + " (" + v.DisabledReason + ")"
			}
			return v.Status
		}},
		{"ordered", func(v webhookView) string { return yesNo(v.Ordered) }},
		{"signatures", func(v webhookView) string { return strings.Join(v.Signatures, ",") }},
		{"warnings", func(v webhookView) string { return strconv.Itoa(v.Warnings) }},
		{"description", func(v webhookView) string { return v.Description }},
	}
}

func secretColumn() column[webhookView] {
	return column[webhookView]{"secret", func(v webhookView) string { return strings.Join(v.Secrets, " ") }}
}

type deliveryView struct {
	ID         string        `json:"id"`
	EndpointID string        `json:"endpointId"`
	EventType  string        `json:"eventType"`
	Status     string        `json:"status"`
	Reason     string        `json:"reason,omitempty"`
	CreatedAt  timestamp     `json:"createdAt"`
	NextAt     timestamp     `json:"nextAttemptAt,omitzero"`
	Body       string        `json:"body"`
	Attempts   []attemptView `json:"attempts"`
}

type attemptView struct {
	At         timestamp `json:"at"`
	URL        string    `json:"url"`
	DurationMS int64     `json:"durationMs"`
	StatusCode int       `json:"statusCode,omitempty"`
	Answer     string    `json:"answer,omitempty"`
	Error      string    `json:"error,omitempty"`
	NextAt     timestamp `json:"nextAttemptAt,omitzero"`
}

func viewOfDelivery(d webhook.Delivery) deliveryView {
	v := deliveryView{
		ID:         d.ID,
		EndpointID: d.EndpointID,
		EventType:  d.EventType,
		Status:     d.Status,
		Reason:     d.Reason,
		CreatedAt:  timestamp(d.CreatedAt),
		NextAt:     timestamp(d.DueAt), Body: d.Body, Attempts: []attemptView{},
	}
	for _, at := range d.Attempts {
		v.Attempts = append(v.Attempts, attemptView{
			At:         timestamp(at.At),
			URL:        at.URL,
			DurationMS: at.Duration.Milliseconds(),
			StatusCode: at.StatusCode,
			Answer:     at.Answer,
			Error:      at.Error,
			NextAt:     timestamp(at.NextAt),
		})
	}
	return v
}

// last describes the last attempt.
func (v deliveryView) last() string {
	if len(v.Attempts) == 0 {
		return ""
	}
	at := v.Attempts[len(v.Attempts)-1]
	if at.StatusCode == 0 {
		return at.Error
	}
	return strings.TrimSpace(strconv.Itoa(at.StatusCode) + " " + shorten(at.Answer, 60))
}

func deliveryColumns() []column[deliveryView] {
	return []column[deliveryView]{
		{"id", func(v deliveryView) string { return v.ID }},
		{"time", func(v deliveryView) string { return v.CreatedAt.String() }},
		{"event", func(v deliveryView) string { return v.EventType }},
		{"status", func(v deliveryView) string { return v.Status }},
		{"reason", func(v deliveryView) string { return v.Reason }},
		{"attempts", func(v deliveryView) string { return strconv.Itoa(len(v.Attempts)) }},
		{"next", func(v deliveryView) string { return v.NextAt.String() }},
		{"last answer", deliveryView.last},
	}
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
	c.Flags().StringVar(&f.urlFile, "url-file", "", "file with the URL, whose query may be a secret; - is standard input")
	c.MarkFlagsMutuallyExclusive("url", "url-file")
	c.Flags().StringVar(&f.description, "description", "", "what it is for")
	c.Flags().StringSliceVar(&f.events, "events", nil, "types of events, separated by commas; default: all")
	c.Flags().
		StringVar(&f.headersFile, "headers", "", "file with headers that are sent with each request, a line such as 'X-Api-Key: abc' for each; - is standard input, an empty file: none")
	c.Flags().BoolVar(&f.ordered, "ordered", false, "send the events of a chat one after the other")
	_ = c.RegisterFlagCompletionFunc("events", fixed(webhook.Types()...)) // the flag exists
}

// webhookURL returns the URL of the command line or of its file. One with a user or a query is refused on the
// command line, where other users of the machine can read it.
func (a *app) webhookURL(f *webhookFlags) (string, error) {
	if f.urlFile == "" {
		if strings.Contains(f.url, "?") || hasPassword(f.url) {
			return "", usage("--url must not contain a query or a password, which other users can read there: use --url-file")
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
	var company string
	var signatures []string
	c := &cobra.Command{
		Use: "create", Short: "Create a webhook endpoint, and show its secret once", Args: exactArgs(),
		Example: "  parleyctl webhooks create --company COMPANY --url https://crm.example/parley --events message.received,chat.closed\n" +
			"  parleyctl webhooks create --company COMPANY --url-file url.txt",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := required(c, "company"); err != nil {
				return err
			}
			address, err := a.webhookURL(&f)
			if err != nil {
				return err
			}
			if address == "" {
				return usage("--url or --url-file is required")
			}
			headers, err := a.webhookHeaders(&f)
			if err != nil {
				return err
			}
			owner, err := parseID("--company", company)
			if err != nil {
				return err
			}
			s, b, err := a.openBoth(c.Context())
			if err != nil {
				return err
			}
			kinds := make([]webhook.Kind, len(signatures))
			for n, name := range signatures {
				kinds[n] = webhook.Kind(name)
			}
			e, err := admin.New(s, b, a.Now).CreateWebhookEndpoint(c.Context(), self(), webhook.Endpoint{
				CompanyID: owner, URL: address, Description: f.description, Events: f.events, Headers: headers, Ordered: f.ordered,
			}, kinds...)
			if err != nil {
				return err
			}
			a.note("Keep the secret: it is not shown again.")
			return printOne(a, a.viewOfWebhook(e, e.Secrets...), append(webhookColumns(), secretColumn())...)
		},
	}
	a.addCompanyFlag(c, &company, "the company that it is for")
	c.Flags().
		StringSliceVar(&signatures, "signatures", []string{string(webhook.HMAC)}, "v1 (HMAC), v1a (ed25519), or both")
	f.add(c)
	_ = c.RegisterFlagCompletionFunc("signatures", fixed(string(webhook.HMAC), string(webhook.Ed25519))) // the flag exists
	return c
}

func (a *app) webhooksList() *cobra.Command {
	var company string
	c := &cobra.Command{
		Use: "list", Short: "List a company's webhook endpoints", Aliases: []string{"ls"}, Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := required(c, "company"); err != nil {
				return err
			}
			owner, err := a.company(c.Context(), company)
			if err != nil {
				return err
			}
			found, err := a.connections.store.WebhookEndpoints(c.Context(), owner.ID, store.Page{})
			if err != nil {
				return err
			}
			return printViews(a, found, func(e webhook.Endpoint) webhookView { return a.viewOfWebhook(e) }, webhookColumns())
		},
	}
	a.addCompanyFlag(c, &company, "the company")
	return c
}

func (a *app) webhooksUpdate() *cobra.Command {
	var f webhookFlags
	c := &cobra.Command{
		Use: "update ENDPOINT", Short: "Change the given settings of a webhook endpoint", Args: exactArgs("ENDPOINT"),
		Example: "  parleyctl webhooks update ENDPOINT --events chat.opened,chat.closed --ordered",
		RunE: func(c *cobra.Command, args []string) error {
			var change admin.WebhookChange
			given := c.Flags().Changed
			if given("url") || given("url-file") {
				address, err := a.webhookURL(&f)
				if err != nil {
					return err
				}
				change.URL = &address
			}
			if given("description") {
				change.Description = &f.description
			}
			if given("events") {
				change.Events = &f.events
			}
			if given("headers") {
				headers, err := a.webhookHeaders(&f)
				if err != nil {
					return err
				}
				change.Headers = &headers
			}
			if given("ordered") {
				change.Ordered = &f.ordered
			}
			return a.changeWebhook(c.Context(), args[0], func(s *admin.Service, id string) (webhook.Endpoint, error) {
				return s.UpdateWebhookEndpoint(c.Context(), self(), id, change)
			})
		},
	}
	f.add(c)
	return c
}

// changeWebhook changes an endpoint and prints it.
func (a *app) changeWebhook(
	ctx context.Context,
	arg string,
	change func(*admin.Service, string) (webhook.Endpoint, error),
) error {
	id, err := parseID("ENDPOINT", arg)
	if err != nil {
		return err
	}
	s, b, err := a.openBoth(ctx)
	if err != nil {
		return err
	}
	e, err := change(admin.New(s, b, a.Now), id)
	if err != nil {
		return err
	}
	return printOne(a, a.viewOfWebhook(e), webhookColumns()...)
}

func (a *app) webhooksRotate() *cobra.Command {
	var overlap string
	c := &cobra.Command{
		Use:     "rotate ENDPOINT",
		Short:   "Create new secrets, and show them once; the earlier ones also sign during the overlap",
		Args:    exactArgs("ENDPOINT"),
		Example: "  parleyctl webhooks rotate ENDPOINT --overlap 24h",
		RunE: func(c *cobra.Command, args []string) error {
			id, err := parseID("ENDPOINT", args[0])
			if err != nil {
				return err
			}
			d, err := parseDuration(overlap)
			if err != nil {
				return usage("--overlap must be a duration such as 24h or 7d")
			}
			s, b, err := a.openBoth(c.Context())
			if err != nil {
				return err
			}
			fresh, e, err := admin.New(s, b, a.Now).RotateWebhookSecrets(c.Context(), self(), id, d)
			if err != nil {
				return err
			}
			a.note("Keep the secret: it is not shown again.")
			return printOne(a, a.viewOfWebhook(e, fresh...), append(webhookColumns(), secretColumn())...)
		},
	}
	c.Flags().StringVar(&overlap, "overlap", "24h", "how long the earlier secrets also sign")
	return c
}

func (a *app) webhooksEnable() *cobra.Command {
	return &cobra.Command{
		Use: "enable ENDPOINT", Short: "Resume the deliveries to an endpoint", Args: exactArgs("ENDPOINT"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.changeWebhook(c.Context(), args[0], func(s *admin.Service, id string) (webhook.Endpoint, error) {
				return s.EnableWebhookEndpoint(c.Context(), self(), id)
			})
		},
	}
}

func (a *app) webhooksDisable() *cobra.Command {
	return &cobra.Command{
		Use:   "disable ENDPOINT",
		Short: "Stop the deliveries to an endpoint; later events can be replayed",
		Args:  exactArgs("ENDPOINT"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.changeWebhook(c.Context(), args[0], func(s *admin.Service, id string) (webhook.Endpoint, error) {
				return s.DisableWebhookEndpoint(c.Context(), self(), id)
			})
		},
	}
}

func (a *app) webhooksDelete() *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use: "delete ENDPOINT", Short: "Remove an endpoint and its log", Args: exactArgs("ENDPOINT"),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := parseID("ENDPOINT", args[0])
			if err != nil {
				return err
			}
			s, b, err := a.openBoth(c.Context())
			if err != nil {
				return err
			}
			e, err := s.WebhookEndpoint(c.Context(), id)
			if err != nil {
				return err
			}
			if err := a.confirm(yes, "Remove the endpoint %s of company %s, with its log?", e.URL, e.CompanyID); err != nil {
				return err
			}
			if err := admin.New(s, b, a.Now).DeleteWebhookEndpoint(c.Context(), self(), id); err != nil {
				return err
			}
			return printOne(a, a.viewOfWebhook(e), webhookColumns()...)
		},
	}
	addYesFlag(c, &yes)
	return c
}

// testPollInterval is the interval of the polls for the result of a test delivery.
const testPollInterval = 200 * time.Millisecond

func (a *app) webhooksTest() *cobra.Command {
	var wait time.Duration
	c := &cobra.Command{
		Use:   "test ENDPOINT",
		Short: "Send webhook.test to an endpoint, and show what it answers",
		Args:  exactArgs("ENDPOINT"),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := parseID("ENDPOINT", args[0])
			if err != nil {
				return err
			}
			s, err := a.openStore(c.Context())
			if err != nil {
				return err
			}
			d, err := admin.New(s, nil, a.Now).TestWebhookEndpoint(c.Context(), self(), id)
			if err != nil {
				return err
			}
			for end := time.Now().Add(wait); len(d.Attempts) == 0 && d.Status == webhook.Pending && time.Now().Before(end); {
				time.Sleep(testPollInterval)
				if d, err = s.WebhookDelivery(c.Context(), d.ID); err != nil {
					return err
				}
			}
			return printOne(a, viewOfDelivery(d), deliveryColumns()...)
		},
	}
	c.Flags().DurationVar(&wait, "wait", 20*time.Second, "how long to wait for the first attempt")
	return c
}

// deliveryFlags filter deliveries.
type deliveryFlags struct {
	status, reason, event, from, to string
}

func (f *deliveryFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.status, "status", "", "only those that are pending, delivered or failed")
	c.Flags().StringVar(&f.reason, "reason", "", "only those that failed for this reason: exhausted, gone or disabled")
	c.Flags().StringVar(&f.event, "event", "", "only events of this type")
	c.Flags().StringVar(&f.from, "from", "", "only those created since (10m, 2d, 2026-11-21T12:00:00Z)")
	c.Flags().StringVar(&f.to, "to", "", "only those created before (10m, 2d, 2026-11-21T12:00:00Z)")
	_ = c.RegisterFlagCompletionFunc(
		"status",
		fixed(webhook.Pending, webhook.Delivered, webhook.Failed),
	) // the flag exists
	_ = c.RegisterFlagCompletionFunc(
		"reason",
		fixed(webhook.ReasonExhausted, webhook.ReasonGone, webhook.ReasonDisabled),
	) // the flag exists
	_ = c.RegisterFlagCompletionFunc(
		"event",
		fixed(webhook.Types()...),
	) // the flag exists
}

func (f *deliveryFlags) filter(a *app, endpoint string) (filter store.WebhookFilter, err error) {
	filter = store.WebhookFilter{Status: f.status, Reason: f.reason, EventType: f.event}
	if filter.EndpointID, err = parseID("ENDPOINT", endpoint); err != nil {
		return filter, err
	}
	if f.status != "" && !slices.Contains([]string{webhook.Pending, webhook.Delivered, webhook.Failed}, f.status) {
		return filter, usage("--status must be pending, delivered or failed")
	}
	for _, end := range []struct {
		flag, value string
		into        *time.Time
	}{{"--from", f.from, &filter.From}, {"--to", f.to, &filter.To}} {
		if *end.into, err = parseSince(a.Now(), end.value); err != nil {
			return filter, usage(end.flag + " must be a duration such as 10m or 2d, or a time such as 2026-11-21T12:00:00Z")
		}
	}
	return filter, nil
}

func (a *app) webhooksAttempts() *cobra.Command {
	var f deliveryFlags
	var filter store.WebhookFilter
	c := pagedList(a, &cobra.Command{
		Use:     "attempts ENDPOINT",
		Short:   "List the deliveries of an endpoint with their attempts, newest first",
		Aliases: []string{"log"},
		Args:    exactArgs("ENDPOINT"),
		Example: "  parleyctl webhooks attempts ENDPOINT --status failed --from 1d",
		PreRunE: func(_ *cobra.Command, args []string) (err error) {
			filter, err = f.filter(a, args[0])
			return err
		},
	}, func(ctx context.Context, s store.Store, page store.Page) ([]webhook.Delivery, error) {
		if _, err := s.WebhookEndpoint(ctx, filter.EndpointID); err != nil {
			return nil, err
		}
		return s.WebhookDeliveries(ctx, filter, page)
	}, viewOfDelivery, deliveryColumns())
	f.add(c)
	return c
}

func (a *app) webhooksReplay() *cobra.Command {
	var f deliveryFlags
	var id string
	var dryRun bool
	c := &cobra.Command{
		Use:   "replay ENDPOINT",
		Short: "Send deliveries again: one, or all that failed in a time or for a reason",
		Args:  exactArgs("ENDPOINT"),
		Long: `Send deliveries of an endpoint again, with the same webhook-id and all their attempts. Without --id, those that failed; --from, --to, --reason,
--event and --status select others. --dry-run only lists them.`,
		Example: "  parleyctl webhooks replay ENDPOINT --reason disabled --from 2d --dry-run",
		RunE: func(c *cobra.Command, args []string) error {
			filter, err := f.filter(a, args[0])
			if err != nil {
				return err
			}
			if id != "" {
				if id, err = parseID("--id", id); err != nil {
					return err
				}
			}
			s, err := a.openStore(c.Context())
			if err != nil {
				return err
			}
			e, err := s.WebhookEndpoint(c.Context(), filter.EndpointID)
			if err != nil {
				return err
			}
			if !e.Enabled() {
				a.note("The endpoint is disabled: replayed deliveries fail until it is enabled.")
			}
			replayed, err := replayAll(
				c.Context(),
				admin.New(s, nil, a.Now),
				admin.WebhookReplay{ID: id, Filter: filter, DryRun: dryRun},
			)
			if err != nil {
				return err
			}
			if dryRun {
				a.note("%d would be sent again.", len(replayed))
			} else {
				a.note("%d are sent again.", len(replayed))
			}
			return printList(a, replayed, deliveryColumns()...)
		},
	}
	f.add(c)
	c.Flags().StringVar(&id, "id", "", "only this delivery")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "change nothing, list what would be sent again")
	return c
}

// replayAll replays page by page and returns what it has replayed.
func replayAll(
	ctx context.Context,
	operations *admin.Service,
	r admin.WebhookReplay,
) (replayed []deliveryView, err error) {
	for {
		page, next, err := operations.ReplayWebhooks(ctx, self(), r)
		for _, d := range page {
			replayed = append(replayed, viewOfDelivery(d))
		}
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
	var days int
	c := &cobra.Command{
		Use: "retention", Short: "Set how long the log of a company's deliveries is kept", Args: exactArgs(),
		Example: "  parleyctl webhooks retention --company COMPANY --days 90",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := required(c, "company"); err != nil {
				return err
			}
			owner, err := parseID("--company", company)
			if err != nil {
				return err
			}
			s, b, err := a.openBoth(c.Context())
			if err != nil {
				return err
			}
			changed, err := admin.New(s, b, a.Now).
				SetWebhookRetention(c.Context(), self(), owner, time.Duration(max(-1, min(days, 1000)))*24*time.Hour)
			if err != nil {
				return err
			}
			return printOne(a, retentionView{CompanyID: changed.ID, Days: int(changed.WebhookRetention / (24 * time.Hour))},
				column[retentionView]{"company", func(v retentionView) string { return v.CompanyID }},
				column[retentionView]{"days", func(v retentionView) string { return strconv.Itoa(v.Days) }})
		},
	}
	a.addCompanyFlag(c, &company, "the company")
	c.Flags().IntVar(&days, "days", 0, "1 to 365; 0: the default, 30")
	return c
}
