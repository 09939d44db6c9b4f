package manifests

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/services/parleyctl"
	widgetapi "github.com/parley-chat/parley/services/widget-api"
)

// update rewrites the generated files.
var update = flag.Bool("update", false, "rewrite the generated files")

// scaledObject has the fields we use of KEDA's type, which would pull in all of KEDA.
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

// takesOver reports whether KEDA admits a ScaledObject while the Deployment's own autoscaler exists, and then replaces
// it.
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

// Each component renders alone and with the others: pods are restricted, settings known, secrets named, network
// policies open on both sides.
func TestComponentsAloneAndCombined(t *testing.T) {
	t.Parallel()
	said := string(read(t, "k8s/overlays/production/kustomization.yaml"))
	for _, name := range components(t) {
		if !strings.Contains(said, "../../components/"+name) {
			t.Errorf("the production overlay does not name the component %s", name)
		}
	}
	for _, set := range sets(t) {
		t.Run(setName(set), func(t *testing.T) {
			t.Parallel()
			c := build(t, "production", set...)
			checkRestricted(t, c)
			checkSecrets(t, c, false)
			for name := range services() {
				for _, k := range c.pods[name].Spec.Containers {
					settings := c.settings(name, k)
					delete(settings, "SSL_CERT_DIR") // Go's own
					checkSettings(t, "components", name, settings)
				}
			}
			for name := range c.pods {
				if len(c.policiesOf(name, networkingv1.PolicyTypeEgress)) < 2 {
					t.Errorf("%s has no policy besides the default deny", name)
				}
			}
		})
	}
}

// policiesOf returns the policies of one direction that apply to a workload.
func (c *cluster) policiesOf(workload string, direction networkingv1.PolicyType) (found []*networkingv1.NetworkPolicy) {
	for _, p := range all[*networkingv1.NetworkPolicy](c) {
		if slices.Contains(p.Spec.PolicyTypes, direction) && slices.Contains(c.selected(&p.Spec.PodSelector), workload) {
			found = append(found, p)
		}
	}
	return found
}

// opens reports whether a workload's policy allows traffic to, or from, an address on a port.
func (c *cluster) opens(workload string, direction networkingv1.PolicyType, cidr string, port intstr.IntOrString) bool {
	for _, p := range c.policiesOf(workload, direction) {
		ways := make([]networkingv1.NetworkPolicyEgressRule, 0, len(p.Spec.Egress)+len(p.Spec.Ingress))
		ways = append(ways, p.Spec.Egress...)
		for _, in := range p.Spec.Ingress {
			ways = append(ways, networkingv1.NetworkPolicyEgressRule{To: in.From, Ports: in.Ports})
		}
		for _, way := range ways {
			if slices.ContainsFunc(way.To, func(to networkingv1.NetworkPolicyPeer) bool { return to.IPBlock != nil && to.IPBlock.CIDR == cidr }) &&
				slices.ContainsFunc(way.Ports, func(p networkingv1.NetworkPolicyPort) bool { return *p.Port == port }) {
				return true
			}
		}
	}
	return false
}

// The alerts match the jobs created by the monitor, and equal those of deploy/prometheus; the dashboards equal those of
// deploy/grafana.
func TestMonitoringComponent(t *testing.T) {
	t.Parallel()
	c := build(t, "production", "monitoring")
	monitor := all[*monitoringv1.PodMonitor](c)["parley"]
	down := regexp.MustCompile(`job=~"([^"]+)"`).FindStringSubmatch(string(read(t, "deploy/prometheus/alerts.yml")))
	if monitor == nil || down == nil {
		t.Fatal("want a PodMonitor, and an alert on the job")
	}
	selected := c.selected(&monitor.Spec.Selector)
	for name := range services() {
		pod := c.pods[name]
		job := pod.Labels[monitor.Spec.JobLabel]
		if !slices.Contains(selected, name) || !regexp.MustCompile("^(?:"+down[1]+")$").MatchString(job) {
			t.Errorf("%s has the job %q, for which ParleyDown cannot fire", name, job)
		}
		port := *monitor.Spec.PodMetricsEndpoints[0].Port
		if !slices.ContainsFunc(pod.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool { return p.Name == port }) {
			t.Errorf("%s has no port %s", name, port)
		}
	}
	var rules struct {
		Groups any `json:"groups"`
	}
	if err := yaml.Unmarshal(read(t, "deploy/prometheus/alerts.yml"), &rules); err != nil {
		t.Fatal(err)
	}
	rule := "k8s/components/monitoring/prometheusrule.yaml"
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule",
		"metadata": map[string]any{"name": "parley", "labels": map[string]any{"app.kubernetes.io/part-of": "parley"}}, "spec": rules,
	})
	if err != nil {
		t.Fatal(err)
	}
	text = append([]byte("# Generated from deploy/prometheus/alerts.yml: go test ./deploy/manifests -run TestMonitoringComponent -update\n"), text...)
	if *update {
		if err := os.WriteFile(filepath.Join(root, rule), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(t, rule); string(got) != string(text) {
		t.Errorf("%s is stale: run the test with -update", rule)
	}
	boards := all[*corev1.ConfigMap](c)["parley-dashboards"]
	paths, err := filepath.Glob(filepath.Join(root, "deploy/grafana/dashboards/*.json"))
	if err != nil || boards.Labels["grafana_dashboard"] == "" || len(boards.Data) != len(paths) {
		t.Errorf("got %d dashboards with the labels %v, want %d", len(boards.Data), boards.Labels, len(paths))
	}
}

// The routes of the Gateway API equal those of the Ingress, which they replace.
func TestGatewayAPIComponent(t *testing.T) {
	t.Parallel()
	c, before := build(t, "production", "gateway-api"), build(t, "production")
	if n := len(all[*networkingv1.Ingress](c)); n != 0 {
		t.Errorf("got %d ingresses next to the routes, want none", n)
	}
	routes := all[*gatewayv1.HTTPRoute](c)
	for name, ingress := range all[*networkingv1.Ingress](before) {
		route := routes[name]
		if route == nil || string(route.Spec.Hostnames[0]) != ingress.Spec.Rules[0].Host {
			t.Errorf("got no route for %s", ingress.Spec.Rules[0].Host)
			continue
		}
		for i, path := range ingress.Spec.Rules[0].HTTP.Paths {
			rule := route.Spec.Rules[i]
			backend := rule.BackendRefs[0]
			if strings.TrimSuffix(*rule.Matches[0].Path.Value, "/") != strings.TrimSuffix(path.Path, "/") || string(backend.Name) != path.Backend.Service.Name {
				t.Errorf("%s: got %+v, want %s at %s", name, rule, path.Backend.Service.Name, path.Path)
			}
			if service := all[*corev1.Service](c)[string(backend.Name)]; service.Spec.Ports[0].Port != *backend.Port {
				t.Errorf("%s: got port %d of %s, which it does not have", name, *backend.Port, backend.Name)
			}
		}
	}
}

// Each network component opens its traffic for the services that need it.
func TestNetworkComponents(t *testing.T) {
	t.Parallel()
	in, out := networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress
	edge := build(t, "production", "edge-cidr")
	dns := build(t, "production", "node-local-dns", "parleyctl", "backup")
	for _, name := range []string{"client-api", "widget-api", "socket-gateway", "panel"} {
		cidr := edge.settings(name, edge.pods[name].Spec.Containers[0])["TRUSTED_PROXIES"]
		if !edge.opens(name, in, cidr, intstr.FromString("http")) {
			t.Errorf("%s trusts %s but does not admit it", name, cidr)
		}
	}
	for name := range dns.pods {
		if !dns.opens(name, out, "169.254.20.10/32", intstr.FromInt(53)) {
			t.Errorf("%s does not reach the node's DNS", name)
		}
	}
	tls := build(t, "production", "parleyctl", "backup", "tls")
	for name, pod := range tls.pods {
		if !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Secret != nil && v.Secret.SecretName == "parley-engines-ca" }) {
			t.Errorf("%s does not have the CA", name)
		}
		for _, k := range containers(pod) {
			if !slices.ContainsFunc(k.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "engines-ca" }) {
				t.Errorf("%s/%s does not mount the CA", name, k.Name)
			}
		}
	}
	if p := all[*networkingv1.NetworkPolicy](tls)["redis-tls"]; p.Spec.Egress[0].Ports[0].Port.IntValue() != 6380 {
		t.Errorf("got %+v, want Redis's port for TLS", p.Spec)
	}
	for _, component := range []string{"webhook", "s3"} {
		c := build(t, "production", component)
		for name, p := range all[*networkingv1.NetworkPolicy](c) {
			for _, way := range p.Spec.Egress {
				for _, to := range way.To {
					if to.IPBlock != nil && to.IPBlock.CIDR == "0.0.0.0/0" && !slices.Contains(to.IPBlock.Except, "100.64.0.0/10") {
						t.Errorf("%s allows access to the cloud's metadata addresses", name)
					}
				}
			}
		}
	}
}

// With files in S3, NATS stores none.
func TestS3Component(t *testing.T) {
	t.Parallel()
	c := build(t, "production", "s3")
	if got := c.streams().FileStoreMaxBytes; got != 0 {
		t.Errorf("got %d bytes for files in NATS, want none", got)
	}
	set := c.settings("widget-api", c.pods["widget-api"].Spec.Containers[0])
	set["NATS_URL"], set["MONGODB_URI"], set["REDIS_URL"] = "nats://nats", "mongodb://mongodb", "redis://redis"
	set["S3_ACCESS_KEY_ID"], set["S3_SECRET_ACCESS_KEY"] = "id", "secret"
	config, err := config.LoadFrom[widgetapi.Config](func(name string) string { return set[name] })
	if err != nil || config.FileStore != "s3" || config.S3Bucket == "" {
		t.Errorf("got %+v, %v, want a bucket", config.FileConfig, err)
	}
}

// NATS's namespace admits Parley's pods, and metrics scrapers.
func TestNATSNamespace(t *testing.T) {
	t.Parallel()
	objects, err := kustomize(filepath.Join(root, "k8s/nats"))
	if err != nil {
		t.Fatal(err)
	}
	c := decode(t, objects)
	production := build(t, "production")
	policy := all[*networkingv1.NetworkPolicy](c)["nats"]
	clients := policy.Spec.Ingress[0]
	namespace := all[*corev1.Namespace](production)["parley"]
	if clients.From[0].NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"] != namespace.Name || clients.Ports[0].Port.IntValue() != 4222 {
		t.Errorf("got %+v, want the namespace of the production overlay", clients)
	}
	for name := range services() {
		if !slices.Contains(production.selected(clients.From[0].PodSelector), name) {
			t.Errorf("%s does not reach NATS", name)
		}
	}
}

// kubectl apply -k -l, used for an ordered upgrade, finds all objects of a service.
func TestObjectsOfAServiceHaveItsName(t *testing.T) {
	each(t, func(t *testing.T, c *cluster) {
		for name := range services() {
			pod := c.pods[name]
			for _, from := range pod.Spec.Containers[0].EnvFrom {
				if m := all[*corev1.ConfigMap](c)[from.ConfigMapRef.Name]; m.Labels["app.kubernetes.io/name"] != name {
					t.Errorf("%s reads %s, which has the labels %v", name, m.Name, m.Labels)
				}
			}
		}
	})
}

// The components apply to the production overlay: KEDA's scaler replaces the processor's own, and uses existing
// consumers.
func TestComponents(t *testing.T) {
	t.Parallel()
	kinds := rendered(t, "production", "keda", "webhook")
	if _, there := kinds["NetworkPolicy processor-webhook"]; !there {
		t.Error("got no egress for the webhook")
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
			t.Errorf("got a trigger on %s of %s, which does not exist", m.Consumer, m.Stream)
		}
	}
	if len(scaled.Spec.Triggers) == 0 {
		t.Errorf("got %+v, want the processor scaled on its lag", scaled.Spec)
	}
}

// checkQuery fails if a query uses a metric that the bus does not have, or an unknown consumer.
func checkQuery(t *testing.T, query, durables string) {
	t.Helper()
	metric := regexp.MustCompile(`parley_bus_\w+`).FindString(query)
	if metric == "" || !strings.Contains(string(read(t, "pkg/bus/metrics.go")), `"`+metric+`"`) {
		t.Errorf("got a trigger on the unknown metric %s", query)
	}
	names := regexp.MustCompile(`consumer=~?"([^"]+)"`).FindStringSubmatch(query)
	if names == nil {
		t.Fatalf("got a trigger on %s, want its consumers named", query)
	}
	for name := range strings.SplitSeq(names[1], "|") {
		if !strings.Contains(durables, `= "`+name+`"`) {
			t.Errorf("got a trigger on the unknown consumer %s", name)
		}
	}
}

// The dev overlay's NATS has the accounts of deploy/nats: kustomize does not read files outside its directory.
func TestDevOverlayHasTheAccounts(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"nats-server.conf", "accounts.conf"} {
		if string(read(t, "k8s/overlays/dev/"+file)) != string(read(t, "deploy/nats/"+file)) {
			t.Errorf("k8s/overlays/dev/%s is stale: run make generate", file)
		}
	}
}

// An autoscaler with a missing metric scales up but never down: without a component, only metrics available in every
// cluster are used.
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

// The gateways scale on an existing metric, with both components.
func TestGatewaysScaleOnConnections(t *testing.T) {
	t.Parallel()
	const metric = "parley_gateway_connections"
	var h autoscalingv2.HorizontalPodAutoscaler
	if err := yaml.UnmarshalStrict([]byte(rendered(t, "production", "connections")["HorizontalPodAutoscaler socket-gateway"]), &h); err != nil {
		t.Fatal(err)
	}
	if m := h.Spec.Metrics; len(m) != 2 || m[0].Pods == nil || m[0].Pods.Metric.Name != metric || m[1].Resource == nil {
		t.Errorf("got %+v, want connections and CPU", m)
	}
	scaled := takesOver(t, rendered(t, "production", "keda-connections"), "socket-gateway")
	if len(scaled.Spec.Triggers) != 1 || !strings.Contains(scaled.Spec.Triggers[0].Metadata.Query, metric+`{namespace="parley"}`) {
		t.Errorf("got %+v, want connections of the namespace", scaled.Spec.Triggers)
	}
	if !strings.Contains(string(read(t, "services/socket-gateway/internal/realtime/metrics.go")), "connections") {
		t.Error("the gateway has no such metric")
	}
}

// The component parleyctl runs no pod by default, and its commands exist.
func TestParleyctlInTheCluster(t *testing.T) {
	t.Parallel()
	kinds := rendered(t, "production", "parleyctl")
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
				t.Errorf("%s: unknown flag %s", args[1], flag)
			}
		}
	}
	if len(lines) != 3 {
		t.Errorf("got %d lines, want a company, an application and a token", len(lines))
	}
}
