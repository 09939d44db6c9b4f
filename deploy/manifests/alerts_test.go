package manifests

import (
	"log/slog"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
)

func alerts(t *testing.T) []rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile(filepath.Join(root, "deploy/prometheus/alerts.yml"), false, model.UTF8Validation)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var found []rulefmt.Rule
	for _, g := range groups.Groups {
		found = append(found, g.Rules...)
	}
	return found
}

// firing reports whether an alert fires after evaluating series, in the notation of promtool's tests with a sample per
// minute.
func firing(t *testing.T, rule rulefmt.Rule, series string, after time.Duration) bool {
	t.Helper()
	storage := promqltest.LoadedStorage(t, "load 1m\n  "+strings.ReplaceAll(strings.TrimSpace(series), "\n", "\n  ")+"\n")
	defer storage.Close()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute})
	defer engine.Close()
	expr, err := parser.ParseExpr(rule.Expr)
	if err != nil {
		t.Fatal(err)
	}
	alerting := rules.NewAlertingRule(rule.Alert, expr, time.Duration(rule.For), 0, labels.FromMap(rule.Labels), labels.FromMap(rule.Annotations), labels.EmptyLabels(), "", false, slog.New(slog.DiscardHandler))
	for at := time.Duration(0); at <= after; at += time.Minute {
		if _, err := alerting.Eval(t.Context(), 0, time.Unix(0, 0).Add(at), rules.EngineQueryFunc(engine, storage), nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	return slices.ContainsFunc(alerting.ActiveAlerts(), func(a *rules.Alert) bool { return a.State == rules.StateFiring })
}

// TestAlerts checks for each alert a case in which it fires and one in which it does not.
func TestAlerts(t *testing.T) {
	t.Parallel()
	type state struct{ bad, good string }
	states := map[string]state{
		"ParleyDown": {`up{job="client-api",instance="a"} 1 0x30`, `up{job="client-api",instance="a"} 1x30
up{job="other",instance="b"} 0x30`},
		"ParleyDependencyDown": {
			`parley_dependency_up{service="client-api",dependency="nats",instance="a"} 1 0x30
parley_dependency_up{service="client-api",dependency="nats",instance="b"} 1x30`,
			`parley_dependency_up{service="client-api",dependency="nats",instance="a"} 1 1 0 1x30`,
		},
		"ParleyServerErrors": {
			`parley_http_request_seconds_count{service="client-api",status="503"} 0+6x30
parley_http_request_seconds_count{service="client-api",status="200"} 0+60x30`,
			`parley_http_request_seconds_count{service="client-api",status="503"} 0+1x30
parley_http_request_seconds_count{service="client-api",status="404"} 0+60x30
parley_http_request_seconds_count{service="client-api",status="200"} 0+600x30`,
		},
		"ParleyPublishSlow": {
			`parley_bus_publish_seconds_bucket{job="client-api",result="ok",le="0.5"} 0+1x30
parley_bus_publish_seconds_bucket{job="client-api",result="ok",le="1"} 0+60x30
parley_bus_publish_seconds_bucket{job="client-api",result="ok",le="+Inf"} 0+60x30`,
			`parley_bus_publish_seconds_bucket{job="client-api",result="ok",le="0.5"} 0+60x30
parley_bus_publish_seconds_bucket{job="client-api",result="ok",le="1"} 0+60x30
parley_bus_publish_seconds_bucket{job="client-api",result="ok",le="+Inf"} 0+60x30`,
		},
		"ParleyPublishRefused": {
			`parley_bus_publish_seconds_count{job="client-api",result="full"} 0+1x30`,
			`parley_bus_publish_seconds_count{job="client-api",result="ok"} 0+60x30
parley_bus_publish_seconds_count{job="client-api",result="full"} 7x30
parley_bus_publish_seconds_count{job="client-api",result="invalid"} 0+1x30`,
		},
		"ParleyStreamNotWritable": {
			`parley_bus_stream_writable{job="client-api",stream="SENDS",instance="a"} 1 0x30
parley_bus_stream_writable{job="client-api",stream="SENDS",instance="b"} 1x30`,
			`parley_bus_stream_writable{job="client-api",stream="SENDS",instance="a"} 1 0 1x30`,
		},
		"ParleyStreamLostMessages": {
			`parley_bus_stream_lost_messages{stream="SENDS",instance="a"} 0x5 20x25`,
			`parley_bus_stream_lost_messages{stream="SENDS",instance="a"} 0x30`,
		},
		"ParleyStreamFilling": {
			`parley_bus_stream_bytes{stream="INBOUND",instance="a"} 90x30
parley_bus_stream_limit_bytes{stream="INBOUND",instance="a"} 100x30`,
			`parley_bus_stream_bytes{stream="INBOUND",instance="a"} 50x30
parley_bus_stream_limit_bytes{stream="INBOUND",instance="a"} 100x30`,
		},
		"ParleyConsumerLag": {`parley_bus_consumer_lag{stream="INBOUND",consumer="bot"} 2000x30`, `parley_bus_consumer_lag{stream="INBOUND",consumer="bot"} 0 2000 2000 500x30`},
		"ParleyConsumerStuck": {
			`parley_bus_consumer_lag{stream="INBOUND",consumer="bot"} 3x30
parley_bus_handled_total{stream="INBOUND",consumer="bot",result="ok"} 5x30
parley_bus_handled_total{stream="REPLIES",consumer="bot",result="ok"} 0+60x30
parley_bus_handled_total{stream="INBOUND",consumer="bot",result="unavailable"} 0+60x30`,
			`parley_bus_consumer_lag{stream="INBOUND",consumer="bot"} 3x30
parley_bus_handled_total{stream="INBOUND",consumer="bot",result="ok"} 0+60x30
parley_bus_consumer_lag{stream="REPLIES",consumer="recorder"} 0x30`,
		},
		"ParleyRedeliveries":  {`parley_bus_redeliveries_total{stream="INBOUND",consumer="bot"} 0+120x30`, `parley_bus_redeliveries_total{stream="INBOUND",consumer="bot"} 0+6x30`},
		"ParleyDeadLetters":   {`parley_bus_dead_letters_total{stream="INBOUND",consumer="bot"} 0x20 1x10`, `parley_bus_dead_letters_total{stream="INBOUND",consumer="bot"} 3x30`},
		"ParleyRepliesWait":   {`parley_bus_consumer_lag{stream="REPLIES",consumer="socket-gateway"} 0 900x30`, `parley_bus_consumer_lag{stream="REPLIES",consumer="socket-gateway"} 0 900 0x30`},
		"ParleyOutboundWaits": {`parley_outbound_waiting_seconds{channel="phone"} 3000+60x30`, `parley_outbound_waiting_seconds{channel="phone"} 0+60x30`},
		"ParleyClientsDropped": {
			`parley_gateway_drops_total{reason="slow"} 0+120x30`,
			`parley_gateway_drops_total{reason="repeated"} 0+120x30
parley_gateway_drops_total{reason="slow"} 0+6x30`,
		},
		"ParleyConnectionsRefused": {`parley_gateway_connect_errors_total{reason="full"} 0+600x30`, `parley_gateway_connect_errors_total{reason="unauthorized"} 0+60x30`},
		"ParleyRecoveryMisses": {
			`parley_gateway_recoveries_total{result="miss"} 0+60x60
parley_gateway_recoveries_total{result="hit"} 0+60x60`,
			`parley_gateway_recoveries_total{result="miss"} 0+6x60
parley_gateway_recoveries_total{result="hit"} 0+60x60
parley_gateway_recoveries_total{result="none"} 0+600x60`,
		},
	}
	runbook := strings.ToLower(string(read(t, "docs/runbook.md")))
	for _, rule := range alerts(t) {
		s, tested := states[rule.Alert]
		if !tested {
			t.Errorf("%s has no test", rule.Alert)
			continue
		}
		if !firing(t, rule, s.bad, 30*time.Minute) {
			t.Errorf("%s does not fire", rule.Alert)
		}
		if firing(t, rule, s.good, 30*time.Minute) {
			t.Errorf("%s fires without a reason", rule.Alert)
		}
		if rule.Labels["severity"] == "" || rule.Annotations["summary"] == "" || rule.Annotations["runbook_url"] != "docs/runbook.md#"+strings.ToLower(rule.Alert) {
			t.Errorf("%s: got %v %v, want a severity, a summary and its part of the runbook", rule.Alert, rule.Labels, rule.Annotations)
		}
		if !regexp.MustCompile(`(?m)^#+ ` + strings.ToLower(rule.Alert) + `$`).MatchString(runbook) {
			t.Errorf("docs/runbook.md does not describe %s", rule.Alert)
		}
		delete(states, rule.Alert)
	}
	for name := range states {
		t.Errorf("there is a test of %s, which does not exist", name)
	}
}
