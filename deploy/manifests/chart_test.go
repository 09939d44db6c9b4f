package manifests

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"
)

// chartSwitches maps each component of an overlay to the chart value that enables it.
var chartSwitches = map[string]string{
	"backup": "backup.enabled", "connections": "connections.enabled", "edge-cidr": "edge.cidrs", "gateway-api": "gatewayAPI.enabled",
	"keda": "keda.enabled", "keda-connections": "kedaConnections.enabled", "monitoring": "monitoring.enabled", "node-local-dns": "nodeLocalDNS.enabled",
	"otlp": "otlp.enabled", "parleyctl": "parleyctl.enabled", "s3": "s3.enabled", "tls": "tls.enabled", "webhook": "webhook.enabled",
}

// helmTemplate renders the chart with values on top of its own, like `helm template parley --namespace parley`. It
// returns the objects by kind and name, and the notes.
func helmTemplate(values map[string]any) (objects map[string]string, notes string, err error) {
	log.SetOutput(io.Discard) // helm logs a line per symlink
	chart, err := loader.LoadDir(filepath.Join(root, "deploy/helm/parley"))
	if err != nil {
		return nil, "", err
	}
	if err := chartutil.ProcessDependencies(chart, values); err != nil {
		return nil, "", err
	}
	release := chartutil.ReleaseOptions{Name: "parley", Namespace: "parley", Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(chart, values, release, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, "", err // the schema rejects the values
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return nil, "", err
	}
	objects = make(map[string]string)
	for name, text := range files {
		if strings.HasSuffix(name, "NOTES.txt") {
			notes = text
			continue
		}
		for document := range strings.SplitSeq("\n"+text, "\n---\n") {
			var object struct {
				Kind     string `json:"kind"`
				Metadata struct {
					Name string `json:"name"`
				} `json:"metadata"`
			}
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				return nil, "", fmt.Errorf("%s: %w in\n%s", name, err, document)
			}
			if object.Kind == "" {
				continue
			}
			key := object.Kind + " " + object.Metadata.Name
			if _, twice := objects[key]; twice {
				return nil, "", fmt.Errorf("duplicate object %s", key)
			}
			objects[key] = document
		}
	}
	return objects, notes, nil
}

func chartValuesOf(components []string) map[string]any {
	values := make(map[string]any)
	for _, c := range components {
		block, key, _ := strings.Cut(chartSwitches[c], ".")
		var value any = true
		if key == "cidrs" {
			value = []any{"192.0.2.0/24"}
		}
		values[block] = map[string]any{key: value}
	}
	return values
}

var (
	configHash = regexp.MustCompile(`^(client-api|widget-api|socket-gateway|processor|panel)-[0-9a-z]{10}$`)
	jobHash    = regexp.MustCompile(`^streams-[0-9a-f]{8}$`)
)

// comparable removes the intended differences: kustomize names a config map by its content, and the chart adds a
// checksum of the content to the pod; the chart leaves the namespace to helm, and names the job differently.
func comparable(t *testing.T, objects map[string]string) map[string]any {
	t.Helper()
	plain := make(map[string]any)
	for _, document := range objects {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		if object["kind"] == "Namespace" {
			continue
		}
		metadata := object["metadata"].(map[string]any)
		delete(metadata, "namespace")
		object = simplify(object).(map[string]any)
		metadata = object["metadata"].(map[string]any)
		plain[fmt.Sprint(object["kind"], " ", metadata["name"])] = object
	}
	text, err := json.Marshal(plain) // normalises numbers
	if err != nil {
		t.Fatal(err)
	}
	again := make(map[string]any)
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	return again
}

func simplify(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			v[key] = simplify(item)
		}
		if annotations, ok := v["annotations"].(map[string]any); ok {
			delete(annotations, "checksum/config")
		}
		delete(v, "creationTimestamp")
		return v
	case []any:
		for i, item := range v {
			v[i] = simplify(item)
		}
		return v
	case string:
		if m := configHash.FindStringSubmatch(v); m != nil {
			return m[1]
		}
		if jobHash.MatchString(v) {
			return "streams"
		}
	}
	return value
}

// The chart and kustomize produce the same objects, with each component and with all.
func TestChartEqualsKustomize(t *testing.T) {
	t.Parallel()
	for _, c := range components(t) {
		if chartSwitches[c] == "" {
			t.Errorf("the chart has no value for the component %s", c)
		}
	}
	for _, set := range append(sets(t), nil) {
		name := setName(set)
		if set == nil {
			name = "no component"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects, notes, err := helmTemplate(chartValuesOf(set))
			if err != nil {
				t.Fatal(err)
			}
			decode(t, objects)
			if diff := cmp.Diff(comparable(t, rendered(t, "production", set...)), comparable(t, objects)); diff != "" {
				t.Errorf("kustomize (-) and the chart (+) differ:\n%s", diff)
			}
			if !strings.Contains(notes, "readyz?verbose") {
				t.Errorf("got the notes %q, want the next steps", notes)
			}
		})
	}
}

// The schema rejects unknown values, and values are applied to the objects.
func TestChartValues(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]map[string]any{
		"an unknown value":    {"replicas": 3},
		"an unknown service":  {"services": map[string]any{"web": map[string]any{}}},
		"a setting in lower":  {"streams": map[string]any{"max_age": "1h"}},
		"no host":             {"hosts": map[string]any{"client": "https://x"}},
		"an address":          {"edge": map[string]any{"cidrs": []any{"192.0.2.1"}}},
		"both ways to scale":  {"connections": map[string]any{"enabled": true}, "kedaConnections": map[string]any{"enabled": true}},
		"a number for a word": {"image": map[string]any{"tag": 1}},
	} {
		if _, _, err := helmTemplate(values); err == nil {
			t.Errorf("%s: got no error, want it rejected", name)
		}
	}
	objects, _, err := helmTemplate(map[string]any{
		"image":        map[string]any{"tag": "v9.9.9", "pullPolicy": "Always", "pullSecrets": []any{"pull"}},
		"nodeSelector": map[string]any{"disk": "ssd"},
		"services": map[string]any{"client-api": map[string]any{"tag": "v9.9.8"}, "processor": map[string]any{
			"config": map[string]any{"BOT_CONCURRENCY": 500}, "autoscaling": map[string]any{"maxReplicas": 3},
			"resources": map[string]any{"limits": map[string]any{"memory": "1Gi"}},
		}},
		"nats": map[string]any{"enabled": true},
	})
	if err != nil {
		t.Fatal(err)
	}
	for object, want := range map[string][]string{
		"Deployment processor":              {"/processor:v9.9.9", "imagePullPolicy: Always", "name: pull", "disk: ssd", "memory: 1Gi"},
		"Deployment client-api":             {"/client-api:v9.9.8"},
		"ConfigMap processor":               {`BOT_CONCURRENCY: "500"`, "BOT: none"},
		"HorizontalPodAutoscaler processor": {"maxReplicas: 3", "minReplicas: 2"},
		"ConfigMap parley-nats-accounts":    {"jetstream"},
		"NetworkPolicy nats":                {"port: 6222"},
	} {
		for _, text := range want {
			if !strings.Contains(objects[object], text) {
				t.Errorf("%s: got\n%s\nwant %s", object, objects[object], text)
			}
		}
	}
	if strings.Contains(objects["NetworkPolicy nats"], "kubernetes.io/metadata.name") {
		t.Error("NATS in the release's namespace admits pods of another one")
	}
	before, _, err := helmTemplate(nil)
	if err != nil {
		t.Fatal(err)
	}
	job := func(objects map[string]string) (name string) {
		for object := range objects {
			if strings.HasPrefix(object, "Job ") {
				name = object
			}
		}
		return name
	}
	if job(before) == job(objects) {
		t.Errorf("got %s with another version, want a new job name: jobs are immutable", job(before))
	}
}

// The values for the NATS chart equal those of the production overlay.
func TestChartHasTheNATSValues(t *testing.T) {
	t.Parallel()
	var values struct {
		NATS map[string]any `json:"nats"`
	}
	var overlay map[string]any
	if err := yaml.Unmarshal(read(t, "deploy/helm/parley/values.yaml"), &values); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(read(t, "k8s/overlays/production/nats-values.yaml"), &overlay); err != nil {
		t.Fatal(err)
	}
	enabled := values.NATS["enabled"]
	delete(values.NATS, "enabled")
	if diff := cmp.Diff(overlay, values.NATS); diff != "" || enabled != false {
		t.Errorf("nats-values.yaml (-) and the chart's values (+) differ:\n%s", diff)
	}
}
