package manifests

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/services/parleyctl"
)

// scaledObject is what we use of KEDA's; its own types would bring all of KEDA.
type scaledObject struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string            `json:"name"`
		Namespace string            `json:"namespace"`
		Labels    map[string]string `json:"labels,omitempty"`

		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		ScaleTargetRef struct {
			Name string `json:"name"`
		} `json:"scaleTargetRef"`
		MinReplicaCount int `json:"minReplicaCount"`
		MaxReplicaCount int `json:"maxReplicaCount"`
		CooldownPeriod  int `json:"cooldownPeriod"`
		Advanced        struct {
			Autoscaler struct {
				Name     string         `json:"name"`
				Behavior map[string]any `json:"behavior,omitempty"`
			} `json:"horizontalPodAutoscalerConfig"`
		} `json:"advanced"`
		Triggers []struct {
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

// withComponents renders the production overlay with components, and returns its objects by kind and name.
func withComponents(t *testing.T, components ...string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "k8s"))); err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlays/production/kustomization.yaml")
	text, err := os.ReadFile(overlay)
	if err != nil {
		t.Fatal(err)
	}
	var list strings.Builder
	for _, c := range components {
		if !strings.Contains(string(text), "../../components/"+c) {
			t.Errorf("the production overlay does not name the component %s", c)
		}
		list.WriteString("\n  - ../../components/" + c)
	}
	if err := os.WriteFile(overlay, []byte(string(text)+"\ncomponents:"+list.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Dir(overlay))
	if err != nil {
		t.Fatal(err)
	}
	kinds := make(map[string]string)
	for _, r := range made.Resources() {
		kinds[r.GetKind()+" "+r.GetName()] = r.MustYaml()
	}
	return kinds
}

// takesOver tells whether KEDA admits a ScaledObject where the Deployment's own autoscaler still runs, and is then its only one.
func takesOver(t *testing.T, kinds map[string]string, name string) (scaled scaledObject) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(kinds["ScaledObject "+name]), &scaled); err != nil {
		t.Fatal(err)
	}
	if _, there := kinds["HorizontalPodAutoscaler "+name]; there {
		t.Errorf("got two autoscalers for %s, want KEDA's alone", name)
	}
	if scaled.Metadata.Annotations["scaledobject.keda.sh/transfer-hpa-ownership"] != "true" || scaled.Spec.Advanced.Autoscaler.Name != name ||
		scaled.Spec.ScaleTargetRef.Name != name {
		t.Errorf("got %+v, want it to take over the autoscaler %s", scaled, name)
	}
	return scaled
}

// The components take their place in the production overlay: KEDA's scaler instead of the processor's own, on consumers that there are.
func TestComponents(t *testing.T) {
	t.Parallel()
	kinds := withComponents(t, "keda", "webhook")
	if _, there := kinds["NetworkPolicy processor-webhook"]; !there {
		t.Error("got no way out for the webhook")
	}
	scaled := takesOver(t, kinds, "processor")
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
	if len(scaled.Spec.Triggers) == 0 {
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
	for _, file := range []string{"nats-server.conf", "accounts.conf"} {
		if string(read(t, "k8s/overlays/dev/"+file)) != string(read(t, "deploy/nats/"+file)) {
			t.Errorf("k8s/overlays/dev/%s is stale: copy deploy/nats/%s", file, file)
		}
	}
}

// An autoscaler with one metric missing scales up and never down: what is there without a component measures what every cluster does.
func TestAutoscalersNeedNoAdapter(t *testing.T) {
	each(t, func(t *testing.T, c *cluster) {
		for name, h := range all[*autoscalingv2.HorizontalPodAutoscaler](c) {
			for _, m := range h.Spec.Metrics {
				if m.Type != autoscalingv2.ResourceMetricSourceType {
					t.Errorf("%s needs a metric of %s, which a cluster may not have", name, m.Type)
				}
			}
		}
	})
}

// The gateways scale on a metric that they have, in either way.
func TestGatewaysScaleOnConnections(t *testing.T) {
	t.Parallel()
	const metric = "parley_gateway_connections"
	var h autoscalingv2.HorizontalPodAutoscaler
	if err := yaml.UnmarshalStrict([]byte(withComponents(t, "connections")["HorizontalPodAutoscaler socket-gateway"]), &h); err != nil {
		t.Fatal(err)
	}
	if m := h.Spec.Metrics; len(m) != 2 || m[0].Pods == nil || m[0].Pods.Metric.Name != metric || m[1].Resource == nil {
		t.Errorf("got %+v, want connections and CPU", m)
	}
	scaled := takesOver(t, withComponents(t, "keda-connections"), "socket-gateway")
	if len(scaled.Spec.Triggers) != 1 || !strings.Contains(scaled.Spec.Triggers[0].Metadata.Query, metric+`{namespace="parley"}`) {
		t.Errorf("got %+v, want connections of the namespace", scaled.Spec.Triggers)
	}
	if !strings.Contains(string(read(t, "services/socket-gateway/internal/realtime/metrics.go")), "connections") {
		t.Error("the gateway has no such metric")
	}
}

// The component parleyctl runs no pod by itself, and its lines are commands that there are.
func TestParleyctlInTheCluster(t *testing.T) {
	t.Parallel()
	kinds := withComponents(t, "parleyctl")
	var d appsv1.Deployment
	if err := yaml.UnmarshalStrict([]byte(kinds["Deployment parleyctl"]), &d); err != nil {
		t.Fatal(err)
	}
	if d.Spec.Replicas == nil || *d.Spec.Replicas != 0 {
		t.Errorf("got %v replicas, want none until they are needed", d.Spec.Replicas)
	}
	lines := regexp.MustCompile(`(?m)-- /service (.*)$`).FindAllStringSubmatch(string(read(t, "k8s/components/parleyctl/kustomization.yaml")), -1)
	for _, args := range append(lines, []string{"", strings.Join(d.Spec.Template.Spec.Containers[0].Args, " ")}) {
		var said strings.Builder
		code := parleyctl.Run(t.Context(), append(strings.Fields(args[1]), "--help"), parleyctl.Terminal{
			In: strings.NewReader(""), Out: &said, Err: &said, Getenv: func(string) string { return "" }, Now: time.Now,
		})
		if code != parleyctl.ExitOK {
			t.Errorf("%s: %s", args[1], said.String())
		}
		for _, flag := range regexp.MustCompile(`--[a-z-]+`).FindAllString(args[1], -1) {
			if !strings.Contains(said.String(), flag+" ") {
				t.Errorf("%s: there is no %s", args[1], flag)
			}
		}
	}
	if len(lines) != 3 {
		t.Errorf("got %d lines, want a company, an application and a token", len(lines))
	}
}
