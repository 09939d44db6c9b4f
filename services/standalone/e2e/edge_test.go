package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/testkit/needs"
	"github.com/parley-chat/parley/testkit/nettest"
	"github.com/parley-chat/parley/testkit/tlstest"
)

// startEdge starts the reverse proxy of docker-compose.yml with the same configuration, and routes all
// clients through it.
func (f *deployment) startEdge(t *testing.T) {
	t.Helper()
	var err error
	for _, name := range []string{"edge-client", "edge-panel", "edge-widget"} {
		f.addr[name], err = nettest.FreeAddr()
		check(t, err)
	}
	var gateways []string
	for _, name := range f.services {
		if strings.HasPrefix(name, "gateway") {
			gateways = append(gateways, f.addr[name])
		}
	}
	c, err := spawn("edge", []string{
		"XDG_DATA_HOME=" + f.dir, "XDG_CONFIG_HOME=" + f.dir, "EDGE_BIND=127.0.0.1",
		"EDGE_CLIENT_ADDR=http://" + f.addr["edge-client"], "EDGE_PANEL_ADDR=http://" + f.addr["edge-panel"],
		"EDGE_WIDGET_ADDR=http://" + f.addr["edge-widget"], "CLIENT_API=" + f.addr["client-api"], "WIDGET_API=" + f.addr["widget-api"], "SOCKET_GATEWAYS=" + strings.Join(gateways, " "),
	}, needs.Program(t, "caddy"), "run", "--adapter", "caddyfile", "--config", filepath.Join(root(), "deploy/edge/Caddyfile"))
	check(t, err)
	c.stopAtEnd(f.t)
	f.ClientBaseURL, f.WidgetBaseURL = "http://"+f.addr["edge-client"], "http://"+f.addr["edge-widget"]
	f.SocketURLs = []string{f.WidgetBaseURL, f.WidgetBaseURL, f.WidgetBaseURL}
	eventually(t, "the edge", func() error {
		for _, url := range []string{f.ClientBaseURL + "/openapi.json", f.WidgetBaseURL + "/openapi.json", f.WidgetBaseURL + "/socket.io/?EIO=4&transport=polling"} {
			answer, err := http.Get(url)
			if err != nil {
				return err
			}
			answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				return fmt.Errorf("%s: got %s, want 200", url, answer.Status)
			}
		}
		return nil
	})
}

// TestEdge is docker-compose.yml's topology in plain processes: a proxy that spreads requests over three
// gateways without sticky sessions. NATS authenticates users, and Redis uses TLS.
func TestEdge(t *testing.T) {
	f := newDeployment(t, 3)
	f.accounts = true
	f.tls = tlstest.New(t)
	f.tls.Server("redis")
	f.settings = append(f.settings, "SSL_CERT_FILE="+f.tls.Path("authority")) // Go's way to trust a private authority
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	for _, engine := range []string{"seed", "nats", "redis"} {
		f.start(t, engine)
	}
	for _, name := range f.services {
		f.start(t, name)
	}
	f.awaitReady(t, http.StatusOK, f.services...)
	f.startEdge(t)
	for name, transports := range map[string][]string{
		"websocket": {"websocket"},
		"polling":   {"polling"},
		"upgrade":   {"polling", "websocket"},
	} {
		t.Run(name, func(t *testing.T) { session(t, f.place, transports...) })
	}
	t.Run("a file", f.fileThroughTheEdge)
	t.Run("a gateway goes", f.gatewaysRestartBehindTheEdge)
	t.Run("dead letters", func(t *testing.T) { deadLetters(t, f.operator(t), f.natsURL("operator")) })
	t.Run("a trace of an operator", f.operatorTraces)
	t.Run("revocation", f.revocation)
	t.Run("metrics", f.metricsAreExported)
	t.Run("permissions", f.permissions)
}

// TestEdgeWithTLS sends a request to each host of deploy/edge/tls.Caddyfile, which trusts the test's
// certificate: it must reach its service with the caller's address, and HTTP must lead to HTTPS.
func TestEdgeWithTLS(t *testing.T) {
	path := needs.Program(t, "caddy")
	settings := []string{"EDGE_BIND=127.0.0.1", "XDG_DATA_HOME=" + t.TempDir(), "XDG_CONFIG_HOME=" + t.TempDir()}
	for _, variable := range []string{"CLIENT_API", "WIDGET_API", "PANEL", "SOCKET_GATEWAYS"} {
		upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, variable, " for ", r.Header.Get("X-Forwarded-For"), " over ", r.Header.Get("X-Forwarded-Proto"))
		}))
		t.Cleanup(upstream.Close)
		settings = append(settings, variable+"="+strings.TrimPrefix(upstream.URL, "http://"))
	}
	hosts := map[string]string{"CLIENT": "api.parley.test", "WIDGET": "chat.parley.test", "PANEL": "panel.parley.test"}
	for name, host := range hosts {
		settings = append(settings, "EDGE_"+name+"_HOST="+host)
	}
	authority := tlstest.New(t)
	authority.Server("edge", slices.Collect(maps.Values(hosts))...)
	secure, err := nettest.FreeAddr()
	check(t, err)
	plain, err := nettest.FreeAddr()
	check(t, err)
	_, securePort, _ := strings.Cut(secure, ":")
	_, plainPort, _ := strings.Cut(plain, ":")
	settings = append(settings, "EDGE_HTTPS_PORT="+securePort, "EDGE_HTTP_PORT="+plainPort, "EDGE_TLS="+authority.Path("edge")+" "+authority.Path("edge-key"))
	c, err := spawn("edge", settings, path, "run", "--adapter", "caddyfile", "--config", filepath.Join(root(), "deploy/edge/tls.Caddyfile"))
	check(t, err)
	c.stopAtEnd(t)

	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: authority.Pool()},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			_, port, _ := net.SplitHostPort(addr)
			return (&net.Dialer{}).DialContext(ctx, network, "127.0.0.1:"+port)
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	read := func(url string) (answer *http.Response, body string, err error) {
		if answer, err = client.Get(url); err != nil {
			return nil, "", err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		return answer, string(text), err
	}
	eventually(t, "the edge", func() error {
		_, _, err := read("https://" + hosts["CLIENT"] + ":" + securePort + "/edge-health")
		return err
	})
	for path, upstream := range map[string]string{
		hosts["CLIENT"]: "CLIENT_API", hosts["WIDGET"]: "WIDGET_API", hosts["PANEL"]: "PANEL", hosts["WIDGET"] + "/socket.io/": "SOCKET_GATEWAYS",
	} {
		host, rest, _ := strings.Cut(path, "/")
		_, got, err := read("https://" + host + ":" + securePort + "/" + rest)
		if want := upstream + " for 127.0.0.1 over https"; err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", path, got, err, want)
		}
	}
	answer, _, err := read("http://" + hosts["PANEL"] + ":" + plainPort + "/")
	if err != nil || !strings.HasPrefix(answer.Header.Get("Location"), "https://"+hosts["PANEL"]) {
		t.Errorf("HTTP: got %v, %v, want a redirect to HTTPS", answer, err)
	}
}

// fileThroughTheEdge sends the largest file, and reads its end.
func (f *deployment) fileThroughTheEdge(t *testing.T) {
	v := register(t, f.place, f.widgetAPI(t))
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport}
	path, err := sendZeros(client, f.WidgetBaseURL, v.token)
	check(t, err)
	r, err := http.NewRequest(http.MethodGet, f.WidgetBaseURL+path, nil)
	check(t, err)
	r.Header.Set("Range", "bytes=-10")
	answer, err := client.Do(r)
	check(t, err)
	defer answer.Body.Close()
	if body, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusPartialContent || len(body) != 10 {
		t.Errorf("got %s with %d bytes and %v, want the last ten", answer.Status, len(body), err)
	}
}

// gatewaysRestartBehindTheEdge stops one gateway after the other: its clients reconnect to another one, and
// miss nothing.
func (f *deployment) gatewaysRestartBehindTheEdge(t *testing.T) {
	v := register(t, f.place, f.widgetAPI(t))
	sockets := []*socket{}
	for range 3 {
		sockets = append(sockets, connected(t, f.WidgetBaseURL, v.token, "polling", "websocket"))
	}
	for n := range 3 {
		name := gatewayName(n)
		if code, err := f.run[name].stop(); err != nil || code != 0 {
			t.Fatalf("stopping %s: got code %d, %v, want 0", name, code, err)
		}
		text := "while " + name + " is away"
		v.write(t, text)
		for _, s := range sockets {
			if d := s.next(t); !strings.Contains(d.member(t, "text"), text) {
				t.Errorf("got %s, want the answer to %q", d.Data, text)
			}
		}
		f.start(t, name)
		f.awaitReady(t, http.StatusOK, name)
	}
}

// The edge logs a failed request without the name of the visitor's file, the query and the headers.
func TestEdgeLogsNoNames(t *testing.T) {
	t.Parallel()
	widget, err := nettest.FreeAddr()
	check(t, err)
	nobody, err := nettest.FreeAddr()
	check(t, err)
	c := exec.CommandContext(t.Context(), needs.Program(t, "caddy"), "run", "--adapter", "caddyfile", "--config", filepath.Join(root(), "deploy/edge/Caddyfile"))
	c.Env = append(os.Environ(), "XDG_DATA_HOME="+t.TempDir(), "XDG_CONFIG_HOME="+t.TempDir(), "EDGE_BIND=127.0.0.1",
		"EDGE_WIDGET_ADDR=http://"+widget, "EDGE_CLIENT_ADDR=http://127.0.0.1:0", "EDGE_PANEL_ADDR=http://localhost:0", "WIDGET_API="+nobody)
	log, err := c.StderrPipe()
	check(t, err)
	check(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	go func() {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+widget+"/files/f1/my-illness.pdf?token=eyJ", nil)
		r.Header.Set("Authorization", "Bearer eyJ")
		for t.Context().Err() == nil {
			if answer, err := http.DefaultClient.Do(r); err == nil {
				answer.Body.Close()
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	for lines := bufio.NewScanner(log); lines.Scan(); {
		line := lines.Text()
		for _, secret := range []string{"my-illness", "eyJ"} {
			if strings.Contains(line, secret) {
				t.Errorf("got %s, want no %q", line, secret)
			}
		}
		if strings.Contains(line, "/files/f1") && strings.Contains(line, "error") {
			return
		}
	}
	t.Error("got no line of the failed request")
}
