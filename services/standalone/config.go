package main

import (
	"log/slog"

	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/services/processor"
	widgetapi "github.com/parley-chat/parley/services/widget-api"
)

// Config is read from the environment. Every address may have the port 0: the chosen one is printed and
// written to demo.json.
type Config struct {
	ClientAddr string `env:"PARLEY_CLIENT_ADDR" envDefault:"127.0.0.1:8081" valid:"addr" doc:"where the Client API listens"`
	WidgetAddr string `env:"PARLEY_WIDGET_ADDR" envDefault:"127.0.0.1:8082" valid:"addr" doc:"where the Widget API, /socket.io/ and /demo listen"`
	OpsAddr    string `env:"PARLEY_OPS_ADDR" envDefault:"127.0.0.1:8083" valid:"addr" doc:"where /healthz, /readyz and /metrics listen"`
	PanelAddr  string `env:"PARLEY_PANEL_ADDR" envDefault:"127.0.0.1:8084" valid:"addr" doc:"where the panel listens"`
	SiteAddr   string `env:"PARLEY_SITE_ADDR" envDefault:"127.0.0.1:8085" valid:"addr" doc:"where a page of another origin with the widget listens"`
	NATSAddr   string `env:"PARLEY_NATS_ADDR" envDefault:"127.0.0.1:4222" valid:"addr" doc:"where the embedded NATS listens"`
	DataDir    string `env:"PARLEY_DATA_DIR" envDefault:".parley" doc:"where everything is kept"`
	PanelURL   string `env:"PANEL_URL" valid:"baseurl" doc:"https address under which browsers reach the panel; required unless PARLEY_PANEL_ADDR is a loopback address"`
	// Limits is off by default: on one machine all clients share an address, and a trial must not hit a limit.
	Limits         string          `env:"LIMITS" envDefault:"none" valid:"oneof none small medium large" doc:"bounds of tenants"`
	TrustedProxies config.Prefixes `env:"TRUSTED_PROXIES" doc:"networks whose X-Forwarded-For is trusted"`
	LogLevel       slog.Level      `env:"LOG_LEVEL" envDefault:"WARN" doc:"DEBUG, INFO, WARN or ERROR"`

	config.Chats
	config.Phones
	config.Streams
	processor.BotConfig
	processor.WebhookConfig
	widgetapi.FileConfig
}

// showsPhone reports whether the demo has a phone. Its page asks nobody for a password, so only this machine may reach
// it; and a connector of the user's own takes all messages.
func (c Config) showsPhone() bool {
	return !c.PhoneConnector && c.PublicURL == "" && config.LoopbackAddr(c.WidgetAddr)
}

// Validate returns the errors of the public addresses.
func (c Config) Validate() []string {
	var wrong []string
	if c.PublicURL == "" && !config.LoopbackAddr(c.WidgetAddr) {
		wrong = append(wrong, "PUBLIC_URL is required unless PARLEY_WIDGET_ADDR is a loopback address")
	}
	if c.PanelURL == "" && !config.LoopbackAddr(c.PanelAddr) {
		wrong = append(wrong, "PANEL_URL is required unless PARLEY_PANEL_ADDR is a loopback address")
	}
	return wrong
}
