package parleyctl_test

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/webhook"
	"github.com/parley-chat/parley/services/parleyctl"
	"github.com/parley-chat/parley/testkit/timetest"
)

func TestWebhooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seed()
	ctx := t.Context()
	if hooks, err := w.cache.Webhooks(ctx, companyID); err != nil || len(hooks.Endpoints) != 0 {
		t.Fatalf("got %+v, %v, want none", hooks, err)
	}
	made := decoded[object](w.ctl("webhooks", "create", "--company", companyID, "--url-file", w.file("https://crm.example/hook?key=abc\n"), "--events", "message.received,chat.closed",
		"--headers", w.file("X-Api-Key: abc\n"), "--signatures", "v1,v1a", "--ordered", "-o", "json"))
	id := made["id"].(string)
	secrets := made["secrets"].([]any)
	if len(secrets) != 2 || !strings.HasPrefix(secrets[0].(string), "whsec_") || !strings.HasPrefix(secrets[1].(string), "whpk_") || made["ordered"] != true {
		t.Fatalf("got %v, want a secret and a public key", made)
	}
	timetest.Until(t, "the processor knows the endpoint", func() bool {
		hooks, err := w.cache.Webhooks(ctx, companyID)
		return err == nil && len(hooks.Endpoints) == 1 && hooks.Endpoints[0].Headers["X-Api-Key"] == "abc"
	})
	list := w.ctl("webhooks", "list", "--company", companyID).done()
	if !strings.Contains(list, "message.received,chat.closed") || !strings.Contains(list, "v1,v1a") || strings.Contains(list, secrets[0].(string)) {
		t.Errorf("got\n%s, want the endpoint without its secret", list)
	}
	rotated := decoded[object](w.ctl("webhooks", "rotate", id, "--overlap", "1h", "-o", "json"))
	e, err := w.store.WebhookEndpoint(ctx, id)
	if err != nil || len(e.Secrets) != 4 || e.Secrets[0].Value != rotated["secrets"].([]any)[0] || e.Secrets[2].Value != secrets[0] || !e.Secrets[2].ExpiresAt.Equal(noon.Add(time.Hour)) {
		t.Errorf("got %+v, %v, want the new secrets first and the old ones for an hour", e, err)
	}
	w.ctl("webhooks", "update", id, "--events", "", "--ordered=false", "--description", "CRM").done()
	if e, err := w.store.WebhookEndpoint(ctx, id); err != nil || len(e.Events) != 0 || e.Ordered || e.Description != "CRM" || len(e.Headers) != 1 {
		t.Errorf("got %+v, %v, want what was given changed", e, err)
	}

	tested := decoded[object](w.ctl("webhooks", "test", id, "--wait", "0s", "-o", "json"))
	d, err := w.store.WebhookDelivery(ctx, tested["id"].(string))
	if err != nil || d.EventType != webhook.TypeTest || d.Status != webhook.Pending || !d.DueAt.Equal(noon) {
		t.Errorf("got %+v, %v, want a test that is due", d, err)
	}
	w.must(w.store.EndWebhookAttempt(ctx, d.ID, &webhook.Attempt{At: noon, URL: e.URL, StatusCode: 500, Answer: "no\x1b[2J", Duration: time.Second},
		webhook.Outcome{Status: webhook.Failed, Reason: webhook.ReasonExhausted, ExpiresAt: time.Now().Add(time.Hour)}))
	log := w.ctl("webhooks", "attempts", id, "--status", "failed", "--from", "1h").done()
	if !strings.Contains(log, d.ID) || !strings.Contains(log, "exhausted") || !strings.Contains(log, "500 no [2J") {
		t.Errorf("got\n%s, want the failed attempt", log)
	}
	for args, count := range map[string]int{
		"--dry-run": 1, "--dry-run --reason disabled": 0, "--dry-run --to 1h": 0, "--dry-run --from 1h --event message.received": 0, "--dry-run --id " + d.ID: 1,
	} {
		if found := decoded[[]object](w.ctl(append([]string{"webhooks", "replay", id, "-o", "json"}, strings.Fields(args)...)...)); len(found) != count {
			t.Errorf("%s: got %d, want %d", args, len(found), count)
		}
	}
	if still, err := w.store.WebhookDelivery(ctx, d.ID); err != nil || still.Status != webhook.Failed {
		t.Errorf("after a dry run: got %+v, %v, want it failed still", still, err)
	}
	w.ctl("webhooks", "replay", id, "--reason", "exhausted").done()
	if again, err := w.store.WebhookDelivery(ctx, d.ID); err != nil || again.Status != webhook.Pending || again.Tries != 0 {
		t.Errorf("after the replay: got %+v, %v, want it pending", again, err)
	}

	if out := w.ctl("webhooks", "disable", id).done(); !strings.Contains(out, "disabled (manual)") {
		t.Errorf("got %s, want it disabled", out)
	}
	w.ctl("webhooks", "test", id).fails(parleyctl.ExitRefused, "disabled")
	if out := w.ctl("webhooks", "enable", id).done(); !strings.Contains(out, "enabled") {
		t.Errorf("got %s, want it enabled", out)
	}
	w.ctl("webhooks", "retention", "--company", companyID, "--days", "90").done()
	timetest.Until(t, "the processor knows the retention", func() bool {
		hooks, err := w.cache.Webhooks(ctx, companyID)
		return err == nil && hooks.Retention == 90*24*time.Hour
	})
	if entries, err := w.store.AuditEntries(ctx, store.AuditFilter{TargetID: id}, store.Page{}); err != nil || len(entries) < 7 || strings.Contains(string(entries[0].After), "abc") {
		t.Errorf("got %d entries, %v, want one of each change, without secrets", len(entries), err)
	}

	for _, secret := range []string{"https://x.example/hook?key=abc", "https://ada:abc@x.example"} {
		w.ctl("webhooks", "create", "--company", companyID, "--url", secret).fails(parleyctl.ExitUsage, "--url-file")
		w.ctl("webhooks", "update", id, "--url", secret).fails(parleyctl.ExitUsage, "--url-file")
	}
	w.ctl("webhooks", "create", "--company", companyID).fails(parleyctl.ExitUsage, "--url or --url-file is required")
	w.ctl("webhooks", "update", id, "--url-file", w.file("https://crm.example/other?key=new")).done()
	if e, err := w.store.WebhookEndpoint(ctx, id); err != nil || e.URL != "https://crm.example/other?key=new" {
		t.Errorf("got %q, %v, want the URL of the file", e.URL, err)
	}
	w.ctl("webhooks", "delete", id).fails(parleyctl.ExitUsage, "--yes")
	w.ctl("webhooks", "delete", id, "--yes").done()
	w.ctl("webhooks", "rotate", id).fails(parleyctl.ExitNotFound, "Webhook endpoint not found")
	w.ctl("webhooks", "create", "--company", companyID, "--url", "ftp://x").fails(parleyctl.ExitRefused, "url must be")
	w.ctl("webhooks", "create", "--company", companyID, "--url", "https://x.example", "--events", "nothing").fails(parleyctl.ExitRefused, "events must be")
	w.ctl("webhooks", "create", "--company", companyID, "--url", "https://x.example", "--headers", w.file("Webhook-Id: 1")).fails(parleyctl.ExitRefused, "headers must not set")
	w.ctl("webhooks", "create", "--company", appID, "--url", "https://x.example").fails(parleyctl.ExitNotFound, "Company not found")
	w.ctl("webhooks", "retention", "--company", companyID, "--days", "400").fails(parleyctl.ExitRefused, "retentionDays")
	w.ctl("webhooks", "attempts", id, "--from", "soon").fails(parleyctl.ExitUsage, "--from")
}
