package main

import (
	"github.com/parley-chat/parley/pkg/config"
	clientapi "github.com/parley-chat/parley/services/client-api"
	"github.com/parley-chat/parley/services/panel"
	socketgateway "github.com/parley-chat/parley/services/socket-gateway"
	widgetapi "github.com/parley-chat/parley/services/widget-api"
)

// Limits are those of the two APIs with the same names, but off by default: on one machine all clients share
// an address, and a trial must not hit a limit.
type Limits struct {
	TrustedProxies config.Prefixes `env:"TRUSTED_PROXIES" doc:"networks whose X-Forwarded-For is trusted"`
	RateToken      config.Rate     `env:"RATE_LIMIT_TOKEN" envDefault:"0" doc:"requests with one company access token"`
	RateVisitor    config.Rate     `env:"RATE_LIMIT_VISITOR" envDefault:"0" doc:"requests of one visitor"`
	RateAddress    config.Rate     `env:"RATE_LIMIT_ADDRESS" envDefault:"0" doc:"requests of one address to the Widget API"`
	RateRegister   config.Rate     `env:"RATE_LIMIT_REGISTER" envDefault:"0" doc:"registrations from one address"`
	RateAuth       config.Rate     `env:"RATE_LIMIT_AUTH_FAILURES" envDefault:"0" doc:"requests of one address with a wrong or without a token"`

	RateSignIn  config.Rate `env:"RATE_LIMIT_SIGN_IN" envDefault:"100/15m" doc:"attempts to sign in to the panel from one address"`
	RateAccount config.Rate `env:"RATE_LIMIT_ACCOUNT" envDefault:"100/1h" doc:"attempts to sign in to the panel as one user"`

	BytesCompany     config.Rate `env:"BYTE_BUDGET_COMPANY" envDefault:"0" doc:"bytes of the events of one company's systems, of its visitors, and of its agents and bots"`
	BytesVisitor     config.Rate `env:"BYTE_BUDGET_VISITOR" envDefault:"0" doc:"bytes of one visitor's events, and of the bot's answers to one visitor"`
	BytesAddress     config.Rate `env:"BYTE_BUDGET_ADDRESS" envDefault:"0" doc:"bytes of the visitors' events from one address, and of one agent's events"`
	BytesApplication config.Rate `env:"BYTE_BUDGET_APPLICATION" envDefault:"0" doc:"bytes of the events of one application's visitors, and of its bot"`
	RateKeys         config.Rate `env:"RATE_LIMIT_IDEMPOTENCY_KEYS" envDefault:"0" doc:"idempotency keys of one company, and of the visitors of one application"`
}

func (l Limits) callers() config.Callers {
	return config.Callers{TrustedProxies: l.TrustedProxies, RateAuth: l.RateAuth}
}

func (l Limits) budgets() config.Budgets {
	return config.Budgets{
		BytesCompany:     l.BytesCompany,
		BytesVisitor:     l.BytesVisitor,
		BytesAddress:     l.BytesAddress,
		BytesApplication: l.BytesApplication,
	}
}

func (l Limits) limitClient(cfg *clientapi.Config) {
	cfg.Callers, cfg.Budgets, cfg.RateToken, cfg.RateKeys = l.callers(), l.budgets(), l.RateToken, l.RateKeys
}

// limitGateway keeps the gateway's limits, except those that a few browsers on one machine could hit.
func (l Limits) limitGateway(cfg *socketgateway.Config) {
	cfg.TrustedProxies, cfg.RecoveryRate = l.TrustedProxies, config.Rate{}
}

func (l Limits) limitPanel(cfg *panel.Config) {
	cfg.RateSignIn, cfg.RateAccount, cfg.Budgets = l.RateSignIn, l.RateAccount, l.budgets()
}

func (l Limits) limitWidget(cfg *widgetapi.Config) {
	cfg.Callers, cfg.Budgets, cfg.RateKeys = l.callers(), l.budgets(), l.RateKeys
	cfg.RateVisitor, cfg.RateAddress, cfg.RateRegister = l.RateVisitor, l.RateAddress, l.RateRegister
}
