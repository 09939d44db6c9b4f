// Package service is the common skeleton of all services: the shared part of their configuration, the order in which
// they open, serve and close, and the process around them.
//
// A service's New validates its Config and opens nothing. Its Run calls [Run] with a function that opens dependencies
// through the [Process] and returns the service's work. After any failure, everything opened is closed again.
package service

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/ops"
	"github.com/parley-chat/parley/pkg/tracing"
)

// Base is the configuration shared by all services, and the dependencies that a caller in the same process injects.
type Base struct {
	config.Ops
	config.NATS
	config.Limits

	Logger      *slog.Logger               `env:"-"` // required
	Registerer  prometheus.Registerer      `env:"-"` // nil: no metrics
	Tracer      *tracing.Tracer            `env:"-"` // nil: no traces
	OpsListener net.Listener               `env:"-"` // used instead of OpsAddr; the service closes it
	InProcess   nats.InProcessConnProvider `env:"-"` // connects to a NATS server in this process, without a socket
	Now         func() time.Time           `env:"-"` // the clock; nil: that of the machine, and [Process.Now]

	givenNow bool // Now was not nil
}

func (b *Base) base() *Base { return b }

// Check returns all problems of cfg, a pointer to a service's Config, as [config.Check] does, and sets the defaults of
// its Base.
func Check[C interface{ base() *Base }](cfg C, problems ...string) error {
	b := cfg.base()
	if b.Logger == nil {
		problems = append([]string{"Logger is missing"}, problems...)
	}
	b.givenNow = b.Now != nil
	if !b.givenNow {
		b.Now = machineTime
	}
	return config.Check(cfg, problems...)
}

// Process is a running service: its open resources and background tasks.
type Process struct {
	name       string
	base       Base
	bus        *bus.Bus // nil: the service has none
	checks     []ops.Check
	closers    []func() error
	background []func(context.Context) error
}

// Work is the main function of a service. It returns when ctx is done and everything it started has ended.
type Work func(ctx context.Context) error

// Run opens a service, runs its work until ctx is done, and closes everything in reverse order. The operations server
// responds, as not ready, until the work has ended, and so does the answer to [rpc.Conn.Dependencies].
func Run(ctx context.Context, name string, base Base, open func(*Process) (Work, error)) (err error) {
	p := &Process{name: name, base: base}
	defer func() { err = errors.Join(err, p.close()) }()
	work, err := open(p)
	if err != nil {
		return err
	}
	server := ops.New(ops.Config{
		Addr: base.OpsAddr, PprofAddr: base.PprofAddr, Listener: base.OpsListener, Service: name, Logger: base.Logger,
		Gatherer: gatherer(base.Registerer), Checks: p.checks, Warnings: p.warnings,
	})
	if p.bus != nil {
		stop, err := p.bus.RPC().HandleDependencies(p.name, server.Dependencies)
		if err != nil {
			return err
		}
		defer stop()
	}
	rest, stopRest := context.WithCancel(context.WithoutCancel(ctx))
	defer stopRest()
	group, running := errgroup.WithContext(ctx)
	defer context.AfterFunc(running, server.SetStopping)()
	if base.OpsAddr != "" || base.OpsListener != nil {
		group.Go(func() error { return server.Run(rest) })
	}
	for _, task := range p.background {
		group.Go(func() error { return task(rest) })
	}
	group.Go(func() error {
		defer stopRest()
		return work(running)
	})
	return group.Wait()
}

// warnings names the messages that the streams have lost in the last day.
func (p *Process) warnings() []string {
	if p.bus == nil {
		return nil
	}
	var lost []string
	for _, l := range p.bus.LostTails() {
		lost = append(lost, l.String())
	}
	return lost
}

// gatherer returns the gatherer of the registerer if it is one; nil is the default registry.
func gatherer(r prometheus.Registerer) prometheus.Gatherer {
	g, _ := r.(prometheus.Gatherer)
	return g
}

// Bus opens the connection to NATS, and adds the streams to the readiness checks. It connects in the background; if
// the bus is lost ([bus.Bus.Lost]), the service ends with an error. What is published is charged to meter, which is
// nil for services that publish only what follows from charged events ([event.Derived]).
func (p *Process) Bus(meter bus.Meter, streams ...string) (*bus.Bus, error) {
	b, err := bus.Open(bus.Config{
		URL: p.base.NATSURL, CredsFile: p.base.NATSCreds, Name: p.name, InProcess: p.base.InProcess,
		CAFile: p.base.NATSCA, CertFile: p.base.NATSCert, KeyFile: p.base.NATSKey,
		Streams: streams, Meter: meter, Logger: p.base.Logger, Registerer: p.base.Registerer, Tracer: p.base.Tracer,
	})
	if err != nil {
		return nil, err
	}
	p.bus = b
	p.OnClose(func() error { b.Close(); return nil })
	p.Check(ops.Check{Name: "nats", Check: b.Ready})
	p.Background(func(ctx context.Context) error {
		select {
		case <-b.Lost().Done():
			return context.Cause(b.Lost())
		case <-ctx.Done():
			return nil
		}
	})
	return b, nil
}

// Name returns the service's name.
func (p *Process) Name() string { return p.name }

// Now returns the clock by which chats are ordered, and their windows and changes timed: that of NATS ([bus.Bus.Now]),
// the same for all processes. It must be called after Bus.
func (p *Process) Now() func() time.Time {
	if p.base.givenNow || p.bus == nil {
		return p.base.Now
	}
	return p.bus.Now
}

// Logger returns the service's log.
func (p *Process) Logger() *slog.Logger { return p.base.Logger }

// Check adds a dependency to /readyz.
func (p *Process) Check(c ops.Check) { p.checks = append(p.checks, c) }

// OnClose registers a function to call when the service ends, in reverse order of registration.
func (p *Process) OnClose(closer func() error) { p.closers = append(p.closers, closer) }

// Background runs task concurrently with the work, until the work has ended. An error of task ends the service.
func (p *Process) Background(task func(ctx context.Context) error) {
	p.background = append(p.background, task)
}

func (p *Process) close() error {
	var failed error
	for i := len(p.closers) - 1; i >= 0; i-- {
		failed = errors.Join(failed, p.closers[i]())
	}
	p.closers = nil
	return failed
}
