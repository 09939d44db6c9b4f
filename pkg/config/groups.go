package config

import "strings"

// Group is a group of settings that the same role maintains.
type Group struct {
	Title string
	Who   string   // the role that sets them, and when; one sentence or two
	Names []string // variables; a trailing * matches any suffix
}

// Groups lists the groups in the order in which a deployment needs them. A variable belongs to the first group that
// names it.
func Groups() []Group {
	return []Group{
		{
			"To set in every deployment",
			"The operator, before the first start: addresses of NATS, the database and Redis, and the public addresses of the services.",
			[]string{
				"NATS_*", "MONGODB_*", "SQLITE_PATH", "REDIS_URL", "VISITOR_KEYS_FILE", "SECRETS_KEY_FILE", "JWKS_URL", "PUBLIC_URL", "PANEL_URL", "WIDGET_URL",
				"CLIENT_URL", "TRUSTED_PROXIES",
			},
		},
		{
			"The bot",
			"The bot's developer: which bot answers visitors.",
			[]string{"BOT", "BOT_*", "LLM_*", "ASSETS_URL"},
		},
		{
			"Outgoing webhooks",
			"The operator: which networks webhooks may reach ([guide](webhooks.md)). The rest suits most deployments.",
			[]string{"WEBHOOKS", "WEBHOOK_*"},
		},
		{
			"Phone numbers",
			"The operator: whether a [channel connector](channel-connector.md) of your own runs.",
			[]string{"PHONE_CONNECTOR"},
		},
		{
			"Files, retention and sessions",
			"The owner of the data: where files are stored, how long chats, files and events are kept, and how long visitors stay signed in.",
			[]string{
				"FILE_STORE",
				"FILE_MAX_BYTES",
				"FILE_RETENTION",
				"S3_*",
				"CHAT_IDLE_CLOSE",
				"VISITOR_TOKEN_TTL",
				"STREAM_MAX_AGE",
			},
		},
		{
			"Sign-in of the panel's users",
			"The administrator of the company's identity provider; not needed for passwords.",
			[]string{"OIDC_*"},
		},
		{
			"Capacity and limits",
			"The operator, from the expected load ([sizing](runbook.md), [bounds](security.md#bounds)). The defaults suit one company of medium size; `LIMITS` and the sizes of the streams go together.",
			[]string{
				"LIMITS", "STREAM_*", "FILE_STORE_MAX_BYTES", "MAX_CONNECTIONS", "CONNECT_RATE",
			},
		},
		{
			"Addresses, logs and traces",
			"The platform team: the manifests in `k8s`, `deploy/helm` and `docker-compose.yml` set them already. Traces are configured by " +
				"the [standard variables of OpenTelemetry](https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/): " +
				"`OTEL_EXPORTER_OTLP_ENDPOINT` turns them on, `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG` choose the share that is kept.",
			[]string{"HTTP_ADDR", "OPS_ADDR", "PPROF_ADDR", "LOG_LEVEL"},
		},
		{
			"Rarely changed",
			"The defaults suit all deployments; the descriptions name the exceptions.",
			[]string{
				"DRAIN_TIMEOUT", "REDIS_SHARDED", "GATEWAY_ADVERTISE_ADDR", "SOCKETIO_LEGACY", "RECORDER", "DISPATCHER",
			},
		},
	}
}

// GroupOf returns the index in [Groups] of a variable's group, or -1 if no group names it.
func GroupOf(name string) int {
	for i, g := range Groups() {
		for _, n := range g.Names {
			if prefix, all := strings.CutSuffix(n, "*"); n == name || all && strings.HasPrefix(name, prefix) {
				return i
			}
		}
	}
	return -1
}
