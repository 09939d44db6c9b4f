//go:build kubernetes

package manifests

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// apiserver is a kube-apiserver with its etcd, and kubectl for it. `make test-kubernetes` builds them and sets
// KUBERNETES_BIN.
type apiserver struct {
	t          *testing.T
	bin        string
	kubeconfig string
}

// serverTimeout bounds the start of a server on a busy machine.
const serverTimeout = 3 * time.Minute

func startAPIServer(t *testing.T, serviceRange, advertise string) *apiserver {
	t.Helper()
	bin := os.Getenv("KUBERNETES_BIN")
	if bin == "" {
		t.Fatal("KUBERNETES_BIN is not set: run make test-kubernetes")
	}
	dir := t.TempDir()
	a := &apiserver{t: t, bin: bin, kubeconfig: filepath.Join(dir, "kubeconfig")}
	client, peer := freeURL(t), freeURL(t)
	a.run(dir, "etcd", "--data-dir", filepath.Join(dir, "etcd"), "--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer, "--unsafe-no-fsync", "--log-level", "warn")
	key := filepath.Join(dir, "service-account.key")
	writeKey(t, key)
	tokens := filepath.Join(dir, "tokens.csv")
	a.write(tokens, "secret,admin,admin,system:masters\n")
	port := strings.TrimPrefix(freeURL(t), "http://127.0.0.1:")
	a.run(dir, "kube-apiserver", "--etcd-servers", client, "--secure-port", port, "--bind-address", "127.0.0.1", "--advertise-address", advertise,
		"--service-cluster-ip-range", serviceRange, "--cert-dir", filepath.Join(dir, "certificates"), "--token-auth-file", tokens,
		"--authorization-mode", "AlwaysAllow", "--endpoint-reconciler-type", "none", "--disable-admission-plugins", "ServiceAccount",
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", key, "--service-account-signing-key-file", key)
	a.write(a.kubeconfig, fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: "https://127.0.0.1:%s", insecure-skip-tls-verify: true}}]
users: [{name: admin, user: {token: secret}}]
contexts: [{name: test, context: {cluster: test, user: admin}}]
current-context: test
`, port))
	for deadline := time.Now().Add(serverTimeout); ; time.Sleep(200 * time.Millisecond) {
		out, err := a.kubectl("", "get", "--raw", "/readyz")
		if err == nil {
			return a
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(filepath.Join(dir, "kube-apiserver.log"))
			t.Fatalf("kube-apiserver did not become ready: %s\n%s", out, log[max(0, len(log)-4000):])
		}
	}
}

func (a *apiserver) write(path, text string) {
	a.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// run starts a server that stops at the end of the test.
func (a *apiserver) run(dir, name string, args ...string) {
	a.t.Helper()
	log, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		a.t.Fatal(err)
	}
	c := exec.Command(filepath.Join(a.bin, name), args...)
	c.Stdout, c.Stderr, c.Dir = log, log, dir
	if err := c.Start(); err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() {
		_ = c.Process.Kill() // its data is discarded
		_ = c.Wait()
		_ = log.Close()
	})
}

func (a *apiserver) kubectl(stdin string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(a.t.Context(), 2*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, filepath.Join(a.bin, "kubectl"), append([]string{"--kubeconfig", a.kubeconfig}, args...)...)
	c.Stdin = strings.NewReader(stdin)
	c.Env = append(os.Environ(), "HOME="+filepath.Dir(a.kubeconfig))
	out, err := c.CombinedOutput()
	return string(out), err
}

// accepts requires every object to be accepted unchanged and without a warning.
func (a *apiserver) accepts(t *testing.T, what, stdin string, args ...string) {
	t.Helper()
	out, err := a.kubectl(stdin, append(args, "--validate=strict", "--warnings-as-errors")...)
	if err != nil {
		t.Errorf("%s: %v\n%s", what, err, out)
	}
}

func (a *apiserver) refuses(what, why, stdin string, args ...string) {
	a.t.Helper()
	if out, err := a.kubectl(stdin, append(args, "--validate=strict")...); err == nil || !strings.Contains(out, why) {
		a.t.Errorf("%s: got %v, %s, want it rejected: %s", what, err, out, why)
	}
}

func freeURL(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

func writeKey(t *testing.T, path string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: text}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// definitions creates the custom resource definitions that components use, from the modules that define them.
func (a *apiserver) definitions() {
	a.t.Helper()
	for module, files := range map[string][]string{
		"github.com/kedacore/keda/v2@v2.18.1": {"config/crd/bases/keda.sh_scaledobjects.yaml"},
		"sigs.k8s.io/gateway-api@v1.4.0":      {"config/crd/standard/gateway.networking.k8s.io_httproutes.yaml"},
		"github.com/prometheus-operator/prometheus-operator@v0.85.0": {
			"example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml", "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
		},
	} {
		c := exec.CommandContext(a.t.Context(), "go", "mod", "download", "-json", module)
		c.Dir = filepath.Dir(a.kubeconfig) // outside any module
		out, err := c.Output()
		var found struct{ Dir string }
		if err == nil {
			err = json.Unmarshal(out, &found)
		}
		if err != nil {
			a.t.Fatalf("%s: %v %s", module, err, out)
		}
		for _, file := range files {
			path := filepath.Join(found.Dir, file)
			if out, err := a.kubectl("", "apply", "--server-side", "-f", path); err != nil {
				a.t.Fatalf("%v\n%s", err, out)
			}
		}
	}
	if out, err := a.kubectl("", "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"); err != nil {
		a.t.Fatalf("%v\n%s", err, out)
	}
}

// joined returns a set of objects as one stream of documents, namespaces first.
func joined(objects map[string]string) string {
	names := slices.SortedFunc(maps.Keys(objects), func(a, b string) int {
		if x, y := strings.HasPrefix(a, "Namespace "), strings.HasPrefix(b, "Namespace "); x != y {
			if x {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	var text strings.Builder
	for _, name := range names {
		text.WriteString("---\n" + strings.TrimPrefix(objects[name], "---\n") + "\n")
	}
	return text.String()
}

// podsOf returns the pods of workloads: Pod Security checks pods, and no controller creates them here.
func podsOf(t *testing.T, objects map[string]string) string {
	t.Helper()
	var text strings.Builder
	c := decode(t, objects)
	sets := all[*appsv1.StatefulSet](c)
	for name, pod := range c.pods {
		if set := sets[name]; set != nil { // whose controller adds the volumes
			for _, claim := range set.Spec.VolumeClaimTemplates {
				source := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name}}
				pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim.Name, VolumeSource: source})
			}
		}
		spec, err := json.Marshal(pod.Spec)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(spec, &fields); err != nil {
			t.Fatal(err)
		}
		if fields["restartPolicy"] == nil {
			fields["restartPolicy"] = "Always"
		}
		document, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name, "labels": pod.Labels}, "spec": fields})
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString("---\n")
		text.Write(bytes.TrimSpace(document))
		text.WriteString("\n")
	}
	return text.String()
}

// A real kube-apiserver accepts every object with strict validation and restricted Pod Security, with services on IPv4
// and on IPv6.
func TestKubernetesAcceptsEverything(t *testing.T) {
	for network, r := range map[string]struct{ services, advertise string }{
		"IPv4": {"10.96.0.0/16", "192.0.2.1"}, "IPv6": {"fd00:10:96::/112", "fd00:10:97::1"},
	} {
		t.Run(network, func(t *testing.T) {
			a := startAPIServer(t, r.services, r.advertise)
			a.definitions()
			a.accepts(t, "the namespace of NATS", "", "apply", "-k", filepath.Join(root, "k8s/nats"))
			for _, overlay := range overlays() {
				a.accepts(t, overlay, "", "apply", "-k", filepath.Join(root, "k8s/overlays", overlay))
			}
			a.accepts(t, "dev's pods", podsOf(t, rendered(t, "dev")), "create", "--dry-run=server", "-n", "parley-dev", "-f", "-")
			a.refuses("an unknown field", "unknown field", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndate: {}\n", "create", "-n", "parley", "-f", "-")
			a.refuses("a pod of root's", "violates PodSecurity", "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: [{name: x, image: x}]}\n",
				"create", "-n", "parley", "-f", "-")
			if out, err := a.kubectl("", "get", "service", "client-api", "-n", "parley", "-o", "jsonpath={.spec.clusterIP}"); err != nil || strings.Contains(out, ":") != (network == "IPv6") {
				t.Errorf("got the address %s, %v, want one of %s", out, err, network)
			}
			a.accepts(t, "a namespace for the chart", "apiVersion: v1\nkind: Namespace\nmetadata: {name: chart, labels: {pod-security.kubernetes.io/enforce: restricted}}\n", "apply", "-f", "-")
			rendering := append(sets(t), nil)
			if network == "IPv6" {
				rendering = rendering[len(rendering)-2:] // all compatible components, and none
			}
			for _, set := range rendering {
				objects := rendered(t, "production", set...)
				jobs := slices.DeleteFunc(slices.Collect(maps.Keys(objects)), func(name string) bool { return !strings.HasPrefix(name, "Job ") })
				fresh := maps.Clone(objects)
				for _, job := range jobs { // the existing one is immutable
					delete(fresh, job)
				}
				what := fmt.Sprint("components ", set)
				a.accepts(t, what, joined(fresh), "apply", "--dry-run=server", "-f", "-")
				a.accepts(t, "pods of "+what, podsOf(t, objects), "create", "--dry-run=server", "-n", "parley", "-f", "-")
				chart, _, err := helmTemplate(chartValuesOf(set))
				if err != nil {
					t.Fatal(err)
				}
				a.accepts(t, "the chart with "+what, joined(chart), "apply", "--dry-run=server", "-n", "chart", "-f", "-")
			}
			chart, _, err := helmTemplate(nil)
			if err != nil {
				t.Fatal(err)
			}
			a.accepts(t, "the chart", joined(chart), "apply", "-n", "chart", "-f", "-")
		})
	}
}
