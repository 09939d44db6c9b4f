package manifests

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/parley-chat/parley/proto-events/subject"
)

// scaledObject is what we use of KEDA's; its own types would bring all of KEDA.
type scaledObject struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string            `json:"name"`
		Namespace string            `json:"namespace"`
		Labels    map[string]string `json:"labels,omitempty"`
	} `json:"metadata"`
	Spec struct {
		ScaleTargetRef struct {
			Name string `json:"name"`
		} `json:"scaleTargetRef"`
		MinReplicaCount int `json:"minReplicaCount"`
		MaxReplicaCount int `json:"maxReplicaCount"`
		CooldownPeriod  int `json:"cooldownPeriod"`
		Triggers        []struct {
			Type     string `json:"type"`
			Metadata struct {
				Endpoint   string `json:"natsServerMonitoringEndpoint"`
				Account    string `json:"account"`
				Stream     string `json:"stream"`
				Consumer   string `json:"consumer"`
				Lag        string `json:"lagThreshold"`
				Activation string `json:"activationLagThreshold"`

				Server           string `json:"serverAddress"`
				Query            string `json:"query"`
				Threshold        string `json:"threshold"`
				ActivationMetric string `json:"activationThreshold"`
			} `json:"metadata"`
		} `json:"triggers"`
	} `json:"spec"`
}

// The components take their place in the production overlay: KEDA's scaler instead of the processor's own, on consumers that there are.
func TestComponents(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "k8s"))); err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlays/production/kustomization.yaml")
	text, err := os.ReadFile(overlay)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, []byte(strings.Replace(string(text), "# components:", "components:", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Dir(overlay))
	if err != nil {
		t.Fatal(err)
	}
	kinds := make(map[string]string) // of what is the processor's or begins with its name
	for _, r := range made.Resources() {
		kinds[r.GetKind()+" "+r.GetName()] = r.MustYaml()
	}
	if _, there := kinds["HorizontalPodAutoscaler processor"]; there {
		t.Error("got two autoscalers for the processor, want KEDA's alone")
	}
	if _, there := kinds["NetworkPolicy processor-webhook"]; !there {
		t.Error("got no way out for the webhook")
	}
	var scaled scaledObject
	if err := yaml.UnmarshalStrict([]byte(kinds["ScaledObject processor"]), &scaled); err != nil {
		t.Fatal(err)
	}
	var streams []string
	for _, s := range subject.Streams() {
		streams = append(streams, s.Name)
	}
	durables := string(read(t, "services/processor/routes.go"))
	for _, trigger := range scaled.Spec.Triggers {
		m := trigger.Metadata
		if trigger.Type == "prometheus" {
			checkQuery(t, m.Query, durables)
			continue
		}
		if !slices.Contains(streams, m.Stream) || !strings.Contains(durables, `= "`+m.Consumer+`"`) {
			t.Errorf("got a trigger on %s of %s, which nobody has", m.Consumer, m.Stream)
		}
	}
	if len(scaled.Spec.Triggers) == 0 || scaled.Spec.ScaleTargetRef.Name != "processor" {
		t.Errorf("got %+v, want the processor scaled on its lag", scaled.Spec)
	}
}

// checkQuery fails where a query asks for a metric that the bus does not have, or for a consumer that nobody has.
func checkQuery(t *testing.T, query, durables string) {
	t.Helper()
	metric := regexp.MustCompile(`parley_bus_\w+`).FindString(query)
	if metric == "" || !strings.Contains(string(read(t, "pkg/bus/metrics.go")), `"`+metric+`"`) {
		t.Errorf("got a trigger on %s, which nobody measures", query)
	}
	names := regexp.MustCompile(`consumer=~?"([^"]+)"`).FindStringSubmatch(query)
	if names == nil {
		t.Fatalf("got a trigger on %s, want its consumers named", query)
	}
	for name := range strings.SplitSeq(names[1], "|") {
		if !strings.Contains(durables, `= "`+name+`"`) {
			t.Errorf("got a trigger on consumer %s, which nobody has", name)
		}
	}
}

// The dev overlay's NATS has the accounts that deploy/nats describes: kustomize does not read outside of its folder.
func TestDevOverlayHasTheAccounts(t *testing.T) {
	t.Parallel()
	if string(read(t, "k8s/overlays/dev/nats-server.conf")) != string(read(t, "deploy/nats/nats-server.conf")) {
		t.Error("k8s/overlays/dev/nats-server.conf is stale: copy deploy/nats/nats-server.conf")
	}
}
