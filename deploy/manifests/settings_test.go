package manifests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-chat/parley/pkg/config"
	clientapi "github.com/parley-chat/parley/services/client-api"
	"github.com/parley-chat/parley/services/panel"
	"github.com/parley-chat/parley/services/processor"
	socketgateway "github.com/parley-chat/parley/services/socket-gateway"
	widgetapi "github.com/parley-chat/parley/services/widget-api"
)

const root = "../.."

// services returns the Configs of the long-running services, by name.
func services() map[string]any {
	return map[string]any{
		"client-api": clientapi.Config{}, "widget-api": widgetapi.Config{},
		"socket-gateway": socketgateway.Config{}, "processor": processor.Config{}, "panel": panel.Config{},
	}
}

// variables returns the settings that a service reads, by name.
func variables(service any) map[string]config.Variable {
	known := make(map[string]config.Variable)
	for _, v := range config.Reference(service) {
		known[v.Name] = v
	}
	return known
}

// checkSettings reports settings that the service does not read, and required ones that are missing.
func checkSettings(t *testing.T, where, service string, set map[string]string) {
	t.Helper()
	known := variables(services()[service])
	for name := range set {
		if _, ok := known[name]; !ok && !strings.HasPrefix(name, "OTEL_") { // the OpenTelemetry libraries read those
			t.Errorf("%s sets %s, which %s does not read", where, name, service)
		}
	}
	for name, v := range known {
		if _, ok := set[name]; v.Required && !ok {
			t.Errorf("%s does not set %s, which %s needs", where, name, service)
		}
	}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
