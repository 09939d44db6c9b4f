package e2e

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	metricName  = regexp.MustCompile(`\bparley_[a-z_]+`)
	metricUse   = regexp.MustCompile(`\b(parley_[a-z_]+)\{([^}]*)\}`)
	metricLabel = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)\s*\\?"`)
	grouping    = regexp.MustCompile(`\b(?:by|on)\s*\(([^)]*)\)`)
	sample      = regexp.MustCompile(`^(\w+)(?:\{(.*)\})? `)
)

// exported returns the metrics of all services with the names of their labels.
func (f *deployment) exported(t *testing.T) map[string]map[string]bool {
	t.Helper()
	found := make(map[string]map[string]bool)
	for _, name := range f.services {
		answer, err := http.Get("http://" + f.ops[name] + "/metrics")
		check(t, err)
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		check(t, err)
		for line := range strings.Lines(string(text)) {
			// A vector without samples still declares its type.
			if declared, ok := strings.CutPrefix(line, "# TYPE "); ok {
				found[strings.Fields(declared)[0]] = map[string]bool{}
			}
			if m := sample.FindStringSubmatch(line); m != nil {
				base := histogramBase(m[1], found)
				for _, label := range metricLabel.FindAllStringSubmatch(m[2], -1) {
					found[base][label[1]] = true
				}
			}
		}
	}
	return found
}

// histogramBase returns the declared name of a sample's metric.
func histogramBase(name string, declared map[string]map[string]bool) string {
	for _, suffix := range []string{"_bucket", "_count", "_sum"} {
		if base := strings.TrimSuffix(name, suffix); base != name && declared[base] != nil {
			return base
		}
	}
	return name
}

// metricsAreExported: a service exports every metric that the dashboards and the alerts use.
func (f *deployment) metricsAreExported(t *testing.T) {
	found := f.exported(t)
	known := map[string]bool{"job": true, "instance": true, "le": true} // Prometheus' own
	for _, labels := range found {
		for label := range labels {
			known[label] = true
		}
	}
	paths, err := filepath.Glob(filepath.Join(root(), "deploy/grafana/dashboards/*.json"))
	check(t, err)
	for _, path := range append(paths, filepath.Join(root(), "deploy/prometheus/alerts.yml")) {
		raw, err := os.ReadFile(path)
		check(t, err)
		text, file := string(raw), filepath.Base(path)
		for _, name := range metricName.FindAllString(text, -1) {
			if found[histogramBase(name, found)] == nil {
				t.Errorf("%s: no service exports %s", file, name)
			}
		}
		for _, use := range metricUse.FindAllStringSubmatch(text, -1) {
			labels := found[histogramBase(use[1], found)]
			for _, label := range metricLabel.FindAllStringSubmatch(use[2], -1) {
				if len(labels) > 0 && !labels[label[1]] && !known[label[1]] {
					t.Errorf("%s: %s has no label %s", file, use[1], label[1])
				}
			}
		}
		for _, by := range grouping.FindAllStringSubmatch(text, -1) {
			for _, label := range strings.Split(by[1], ",") {
				if !known[strings.TrimSpace(label)] {
					t.Errorf("%s: no metric has the label %q", file, label)
				}
			}
		}
	}
}
