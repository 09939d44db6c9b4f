package manifests

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
)

// dashboard has the fields we use of Grafana's type.
type dashboard struct {
	UID    string `json:"uid"`
	Title  string `json:"title"`
	Panels []struct {
		ID         int    `json:"id"`
		Type       string `json:"type"`
		Title      string `json:"title"`
		Datasource struct {
			UID string `json:"uid"`
		} `json:"datasource"`
		GridPos struct {
			X, Y, W, H int
		} `json:"gridPos"`
		Targets []struct {
			Expr string `json:"expr"`
		} `json:"targets"`
	} `json:"panels"`
}

// Every panel has a valid query for the provisioned data source, and panels do not overlap. TestEdge in
// services/standalone/e2e checks that the metrics exist.
func TestDashboards(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(filepath.Join(root, "deploy/grafana/dashboards/*.json"))
	if err != nil || len(paths) != 4 {
		t.Fatalf("got %v and %v, want four dashboards", paths, err)
	}
	source := string(read(t, "deploy/grafana/provisioning/datasources/prometheus.yml"))
	uids := make(map[string]bool)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if d.UID == "" || uids[d.UID] {
			t.Errorf("%s: got uid %q, want one of its own", path, d.UID)
		}
		uids[d.UID] = true
		ids, places := make(map[int]bool), make(map[[2]int]bool)
		for _, p := range d.Panels {
			place := [2]int{p.GridPos.X, p.GridPos.Y}
			if ids[p.ID] || places[place] || p.GridPos.X+p.GridPos.W > 24 {
				t.Errorf("%s: %s has another panel's id or place", d.Title, p.Title)
			}
			ids[p.ID], places[place] = true, true
			if p.Type == "row" {
				continue
			}
			if len(p.Targets) == 0 || !strings.Contains(source, "uid: "+p.Datasource.UID+"\n") {
				t.Errorf("%s: %s has no query", d.Title, p.Title)
			}
			for _, target := range p.Targets {
				if _, err := parser.ParseExpr(strings.ReplaceAll(target.Expr, "$__rate_interval", "1m")); err != nil {
					t.Errorf("%s: %s: %v", d.Title, p.Title, err)
				}
			}
		}
	}
}
