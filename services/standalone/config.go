package main

import (
	"fmt"
	"log/slog"
	"net"

	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/services/processor"
	widgetapi "github.com/parley-chat/parley/services/widget-api"
)

// Config is read from the environment. Every address may have the port 0: the chosen one is printed and
// written to demo.json.
type Config struct {
	ClientAddr string     `env:"PARLEY_CLIENT_ADDR" envDefault:"127.0.0.1:8081" doc:"where the Client API listens"`
	WidgetAddr string     `env:"PARLEY_WIDGET_ADDR" envDefault:"127.0.0.1:8082" doc:"where the Widget API, /socket.io/ and /demo listen"`
	OpsAddr    string     `env:"PARLEY_OPS_ADDR" envDefault:"127.0.0.1:8083" doc:"where /healthz, /readyz and /metrics listen"`
	PanelAddr  string     `env:"PARLEY_PANEL_ADDR" envDefault:"127.0.0.1:8084" doc:"where the panel listens"`
	SiteAddr   string     `env:"PARLEY_SITE_ADDR" envDefault:"127.0.0.1:8085" doc:"where a page of another origin with the widget listens"`
	NATSAddr   string     `env:"PARLEY_NATS_ADDR" envDefault:"127.0.0.1:4222" doc:"where the embedded NATS listens"`
	DataDir    string     `env:"PARLEY_DATA_DIR" envDefault:".parley" doc:"where everything is kept"`
	PanelURL   string     `env:"PANEL_URL" doc:"https address under which browsers reach the panel; required unless PARLEY_PANEL_ADDR is a loopback address"`
	LogLevel   slog.Level `env:"LOG_LEVEL" envDefault:"WARN" doc:"DEBUG, INFO, WARN or ERROR"`

	config.Chats
	config.Streams
	Limits
	config.Tracing
	processor.BotConfig
	processor.WebhookConfig
	widgetapi.FileConfig
}

// Validate returns the errors of the addresses, one line each.
func (c Config) Validate() []string {
	var wrong []string
	for _, a := range []struct{ name, value string }{
		{"PARLEY_CLIENT_ADDR", c.ClientAddr}, {"PARLEY_WIDGET_ADDR", c.WidgetAddr}, {"PARLEY_OPS_ADDR", c.OpsAddr},
		{"PARLEY_PANEL_ADDR", c.PanelAddr}, {"PARLEY_SITE_ADDR", c.SiteAddr}, {"PARLEY_NATS_ADDR", c.NATSAddr},
	} {
		if _, _, err := net.SplitHostPort(a.value); err != nil {
			wrong = append(wrong, fmt.Sprintf("%s=%q is not host:port", a.name, a.value))
		}
	}
	if c.PublicURL == "" && !config.LoopbackAddr(c.WidgetAddr) {
		wrong = append(wrong, "PUBLIC_URL is required unless PARLEY_WIDGET_ADDR is a loopback address")
	}
	if c.PanelURL == "" && !config.LoopbackAddr(c.PanelAddr) {
		wrong = append(wrong, "PANEL_URL is required unless PARLEY_PANEL_ADDR is a loopback address")
	}
	return wrong
}
