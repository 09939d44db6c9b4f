package ops

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

const healthcheckTimeout = 5 * time.Second

// healthcheck queries the health of the process that runs with the same settings, at url if it is not empty. It exists
// for images, which contain no other program for it.
func healthcheck(ctx context.Context, url string) error {
	if url == "" {
		url = healthURL(os.Getenv("OPS_ADDR"))
	}
	ctx, cancel := context.WithTimeout(ctx, healthcheckTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("healthcheck: %w", err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("healthcheck: %w", err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("healthcheck: %s answered %s", url, res.Status)
	}
	return nil
}

// healthURL returns the URL at which a process with that OPS_ADDR reports its health.
func healthURL(opsAddr string) string {
	if opsAddr == "" {
		opsAddr = ":9090" // the default of config.Ops
	}
	host, port, err := net.SplitHostPort(opsAddr)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		opsAddr = net.JoinHostPort("127.0.0.1", port)
	}
	return "http://" + opsAddr + "/healthz"
}
