package main

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// ports are the listeners of this process, bound before anything else starts.
type ports struct{ client, widget, ops, panel, site net.Listener }

func listen(cfg Config) (*ports, error) {
	p := new(ports)
	for _, l := range []struct {
		name, addr string
		into       *net.Listener
	}{
		{"PARLEY_CLIENT_ADDR", cfg.ClientAddr, &p.client},
		{"PARLEY_WIDGET_ADDR", cfg.WidgetAddr, &p.widget},
		{"PARLEY_OPS_ADDR", cfg.OpsAddr, &p.ops},
		{"PARLEY_PANEL_ADDR", cfg.PanelAddr, &p.panel},
		{"PARLEY_SITE_ADDR", cfg.SiteAddr, &p.site},
	} {
		ln, err := take(l.name, l.addr)
		if err != nil {
			p.Close()
			return nil, err
		}
		*l.into = ln
	}
	return p, nil
}

func take(name, addr string) (net.Listener, error) {
	ln, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is in use; stop what listens there or set %s", addr, name)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return ln, nil
}

// probe fails if an engine could not listen on addr. The engine itself binds the port a moment later; probe
// gives a clear error before anything has started.
func probe(name, addr string) error {
	ln, err := take(name, addr)
	if err != nil {
		return err
	}
	return ln.Close()
}

// Close closes all listeners; closing one that its server has closed already is harmless.
func (p *ports) Close() {
	for _, l := range []net.Listener{p.client, p.widget, p.ops, p.panel, p.site} {
		if l != nil {
			l.Close()
		}
	}
}

// baseURL returns the URL of l for a browser on this machine.
func baseURL(l net.Listener) string {
	addr := l.Addr().(*net.TCPAddr)
	host := addr.IP.String()
	if addr.IP.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, fmt.Sprint(addr.Port))
}
