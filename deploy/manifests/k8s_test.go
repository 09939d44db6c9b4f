package manifests

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"
)

// overlays returns the overlays that are applied to a cluster.
func overlays() []string { return []string{"dev", "production"} }

// cluster is the content of an overlay, in Kubernetes' own types.
type cluster struct {
	t       *testing.T
	objects []runtime.Object
	pods    map[string]corev1.PodTemplateSpec // by the workload's name
}

// build renders an overlay with components and decodes it.
func build(t *testing.T, overlay string, components ...string) *cluster {
	t.Helper()
	return decode(t, rendered(t, overlay, components...))
}

// decode is strict: an unknown or duplicate field is an error.
func decode(t *testing.T, documents map[string]string) *cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, autoscalingv2.AddToScheme, networkingv1.AddToScheme, policyv1.AddToScheme,
		monitoringv1.AddToScheme, gatewayv1.Install,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	c := &cluster{t: t, pods: map[string]corev1.PodTemplateSpec{}}
	for _, name := range slices.Sorted(maps.Keys(documents)) {
		if strings.HasPrefix(name, "ScaledObject ") {
			if err := yaml.UnmarshalStrict([]byte(documents[name]), &scaledObject{}); err != nil {
				t.Fatalf("%v\n%s", err, documents[name])
			}
			continue
		}
		object, _, err := decoder.Decode([]byte(documents[name]), nil, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, documents[name])
		}
		c.add(object)
	}
	return c
}

func (c *cluster) add(object runtime.Object) {
	c.objects = append(c.objects, object)
	switch w := object.(type) {
	case *appsv1.Deployment:
		c.pods[w.Name] = w.Spec.Template
		c.selects("deployment "+w.Name, w.Spec.Selector, w.Name)
	case *batchv1.Job:
		c.pods[w.Name] = w.Spec.Template
	case *batchv1.CronJob:
		c.pods[w.Name] = w.Spec.JobTemplate.Spec.Template
	case *appsv1.StatefulSet:
		c.pods[w.Name] = w.Spec.Template
		c.selects("stateful set "+w.Name, w.Spec.Selector, w.Name)
	}
}

// all returns the objects of one type by name.
func all[T interface {
	runtime.Object
	metav1.Object
}](c *cluster) map[string]T {
	found := make(map[string]T)
	for _, o := range c.objects {
		if o, ok := o.(T); ok {
			found[o.GetName()] = o
		}
	}
	return found
}

// selected returns the workloads that match a selector.
func (c *cluster) selected(s *metav1.LabelSelector) []string {
	c.t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		c.t.Fatal(err)
	}
	var names []string
	for name, pod := range c.pods {
		if selector.Matches(labels.Set(pod.Labels)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (c *cluster) selects(what string, s *metav1.LabelSelector, want ...string) {
	c.t.Helper()
	if got := c.selected(s); !slices.Equal(got, want) {
		c.t.Errorf("%s selects %v, want %v", what, got, want)
	}
}

// each runs a test on every overlay.
func each(t *testing.T, test func(t *testing.T, c *cluster)) {
	t.Parallel()
	for _, overlay := range overlays() {
		t.Run(overlay, func(t *testing.T) {
			t.Parallel()
			test(t, build(t, overlay))
		})
	}
}

// containers returns the containers of a pod, including init containers.
func containers(pod corev1.PodTemplateSpec) []corev1.Container {
	return slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
}

func TestPodsAreRestricted(t *testing.T) { each(t, checkRestricted) }

func checkRestricted(t *testing.T, c *cluster) {
	t.Helper()
	for name, pod := range c.pods {
		s := pod.Spec.SecurityContext
		if s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%s: want a non-root pod with the RuntimeDefault seccomp profile", name)
		}
		if a := pod.Spec.AutomountServiceAccountToken; a == nil || *a {
			t.Errorf("%s mounts a service account token", name)
		}
		for _, k := range containers(pod) {
			s := k.SecurityContext
			if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem ||
				s.Capabilities == nil || !slices.Contains(s.Capabilities.Drop, "ALL") {
				t.Errorf("%s/%s: want no escalation, a read-only root, no capabilities", name, k.Name)
			}
			if ours := strings.Contains(k.Image, "parley/") && strings.HasSuffix(k.Image, ":dev"); !ours && !fullVersion.MatchString(k.Image) {
				t.Errorf("%s/%s: got image %q, want one with a full version", name, k.Name, k.Image)
			}
			requests, limits := k.Resources.Requests, k.Resources.Limits
			if requests.Cpu().IsZero() || requests.Memory().IsZero() || !requests.Memory().Equal(*limits.Memory()) ||
				requests.StorageEphemeral().IsZero() || limits.StorageEphemeral().IsZero() {
				t.Errorf("%s/%s: got %v and %v, want requests, as much memory as its limit, and bounds on ephemeral storage", name, k.Name, requests, limits)
			}
		}
	}
}

// The settings exist in the service, and all required ones are set.
func TestPodSettingsAreKnown(t *testing.T) {
	each(t, func(t *testing.T, c *cluster) {
		for name := range services() {
			set := make(map[string]string)
			for _, k := range c.pods[name].Spec.Containers {
				maps.Copy(set, c.settings(name, k))
			}
			checkSettings(t, "k8s", name, set)
		}
	})
}

// settings returns a container's variables, except those that only other variables refer to.
func (c *cluster) settings(name string, k corev1.Container) map[string]string {
	c.t.Helper()
	set := make(map[string]string)
	for _, from := range k.EnvFrom {
		if from.ConfigMapRef == nil {
			continue
		}
		m := all[*corev1.ConfigMap](c)[from.ConfigMapRef.Name]
		if m == nil {
			c.t.Errorf("%s: there is no config map %s", name, from.ConfigMapRef.Name)
			continue
		}
		maps.Copy(set, m.Data)
	}
	for _, e := range k.Env {
		if e.ValueFrom == nil || e.ValueFrom.FieldRef == nil {
			set[e.Name] = e.Value
		}
	}
	return set
}

// Every secret that a pod needs is created by the overlay, or documented there with its keys for creation elsewhere.
func TestSecretsAreKnown(t *testing.T) {
	each(t, func(t *testing.T, c *cluster) { checkSecrets(t, c, strings.HasSuffix(t.Name(), "/dev")) })
}

// checkSecrets requires all secrets to be created if made is true; otherwise the production overlay must document them.
func checkSecrets(t *testing.T, c *cluster, made bool) {
	t.Helper()
	said := string(read(t, "k8s/overlays/production/kustomization.yaml"))
	for name, pod := range c.pods {
		for _, k := range containers(pod) {
			for _, e := range k.Env {
				if e.ValueFrom == nil || e.ValueFrom.SecretKeyRef == nil || e.ValueFrom.SecretKeyRef.Optional != nil {
					continue
				}
				ref := e.ValueFrom.SecretKeyRef
				secret := all[*corev1.Secret](c)[ref.Name]
				if secret != nil && secret.Data[ref.Key] != nil {
					continue
				}
				if made || !strings.Contains(said, ref.Name+" ") || !strings.Contains(said, ref.Key) {
					t.Errorf("%s: key %s of the secret %s is not created", name, ref.Key, ref.Name)
				}
			}
		}
	}
}

// The ports are the services' default listen ports.
func TestPortsAreTheServices(t *testing.T) {
	each(t, func(t *testing.T, c *cluster) {
		for name, config := range services() {
			listens := make(map[string]int32)
			for port, variable := range map[string]string{"http": "HTTP_ADDR", "ops": "OPS_ADDR"} {
				if v, ok := variables(config)[variable]; ok {
					n, err := strconv.Atoi(strings.TrimPrefix(v.Default, ":"))
					if err != nil {
						t.Fatal(err)
					}
					listens[port] = int32(n)
				}
			}
			for _, k := range c.pods[name].Spec.Containers {
				has := make(map[string]int32)
				for _, p := range k.Ports {
					has[p.Name] = p.ContainerPort
				}
				if !maps.Equal(has, listens) {
					t.Errorf("%s: got ports %v, want %v", name, has, listens)
				}
				if set := c.settings(name, k); set["HTTP_ADDR"] != "" || set["OPS_ADDR"] != "" {
					t.Errorf("%s listens on other ports than declared", name)
				}
				for what, probe := range map[string]*corev1.Probe{"startup": k.StartupProbe, "liveness": k.LivenessProbe, "readiness": k.ReadinessProbe} {
					want := "/healthz"
					if what == "readiness" {
						want = "/readyz"
					}
					if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != want || probe.HTTPGet.Port.StrVal != "ops" {
						t.Errorf("%s: got %s probe %+v, want %s of ops", name, what, probe, want)
					}
				}
			}
		}
	})
}

// A pod is killed only after it has had time to shut down.
func TestPodsHaveTimeToShutDown(t *testing.T) {
	each(t, func(t *testing.T, c *cluster) {
		const tidying = 10 * time.Second // requests in flight, handlers, acknowledgements
		for name, config := range services() {
			pod := c.pods[name].Spec
			needs := tidying
			for _, k := range pod.Containers {
				if k.Lifecycle == nil || k.Lifecycle.PreStop == nil || k.Lifecycle.PreStop.Sleep == nil {
					t.Fatalf("%s stops while it still receives traffic", name)
				}
				needs += time.Duration(k.Lifecycle.PreStop.Sleep.Seconds) * time.Second
				drain := c.settings(name, k)["DRAIN_TIMEOUT"]
				if drain == "" {
					drain = variables(config)["DRAIN_TIMEOUT"].Default
				}
				if drain != "" {
					d, err := time.ParseDuration(drain)
					if err != nil {
						t.Fatal(err)
					}
					needs += d
				}
			}
			if grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second; grace < needs {
				t.Errorf("%s: got a grace of %v, want at least %v", name, grace, needs)
			}
		}
	})
}

func TestSelectorsMatch(t *testing.T) {
	each(t, func(t *testing.T, c *cluster) {
		for name, s := range all[*corev1.Service](c) {
			c.selects("service "+name, &metav1.LabelSelector{MatchLabels: s.Spec.Selector}, name)
			for _, p := range s.Spec.Ports {
				if !slices.ContainsFunc(c.pods[name].Spec.Containers[0].Ports, func(k corev1.ContainerPort) bool { return k.Name == p.TargetPort.StrVal }) {
					t.Errorf("service %s: its pods have no port %s", name, p.TargetPort.String())
				}
			}
		}
		for name, b := range all[*policyv1.PodDisruptionBudget](c) {
			c.selects("disruption budget "+name, b.Spec.Selector, name)
		}
		for name, h := range all[*autoscalingv2.HorizontalPodAutoscaler](c) {
			if target := h.Spec.ScaleTargetRef.Name; target != name || len(c.pods[target].Spec.Containers) == 0 {
				t.Errorf("autoscaler %s scales %s", name, target)
			}
		}
		for name, pod := range c.pods {
			for _, s := range pod.Spec.TopologySpreadConstraints {
				c.selects("topology of "+name, s.LabelSelector, name)
			}
		}
		for name, i := range all[*networkingv1.Ingress](c) {
			for _, rule := range i.Spec.Rules {
				for _, path := range rule.HTTP.Paths {
					backend := path.Backend.Service
					s := all[*corev1.Service](c)[backend.Name]
					if s == nil || !slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == backend.Port.Name }) {
						t.Errorf("ingress %s: there is no %s of %s", name, backend.Port.Name, backend.Name)
					}
				}
			}
		}
	})
}

// Each host has one Ingress; the widget's routes sockets under /socket.io/, with a long timeout.
func TestIngressReachesTheGateway(t *testing.T) {
	each(t, func(t *testing.T, c *cluster) {
		ingresses := all[*networkingv1.Ingress](c)
		widget, hosts := ingresses["widget-api"], make(map[string]bool)
		for _, i := range ingresses {
			hosts[i.Spec.Rules[0].Host] = true
		}
		if len(ingresses) != 3 || len(hosts) != 3 {
			t.Errorf("got %d ingresses, want one for each of three hosts", len(ingresses))
		}
		paths := make(map[string]string)
		for _, path := range widget.Spec.Rules[0].HTTP.Paths {
			paths[path.Path+" "+string(*path.PathType)] = path.Backend.Service.Name
		}
		if want := map[string]string{"/socket.io/ Prefix": "socket-gateway", "/ Prefix": "widget-api"}; !maps.Equal(paths, want) {
			t.Errorf("got %v, want %v", paths, want)
		}
		if timeout, _ := strconv.Atoi(widget.Annotations["nginx.ingress.kubernetes.io/proxy-read-timeout"]); timeout < 3600 {
			t.Errorf("got a timeout of %d s, want an hour at least", timeout)
		}
		for _, i := range ingresses {
			if strings.Contains(strings.Join(slices.Collect(maps.Keys(i.Annotations)), " "), "affinity") {
				t.Errorf("%s has session affinity, which gateways do not need", i.Name)
			}
		}
	})
}

// The sync of one server's streams reads the server's volume, as the server's user.
func TestPodOfOneServerSyncsItsStreams(t *testing.T) {
	t.Parallel()
	pod := build(t, "dev").pods["nats"].Spec
	i := slices.IndexFunc(pod.Containers, func(k corev1.Container) bool { return k.Name == "sync" })
	if i < 0 {
		t.Fatal("NATS has no container sync")
	}
	checkSync(t, pod.Containers[i], "data")
	if pod.SecurityContext.RunAsUser == nil || pod.Containers[0].SecurityContext.RunAsUser != nil {
		t.Errorf("got %v, want one user for both", pod.SecurityContext)
	}
}

// checkSync requires a container that syncs the streams in /data, a mount of the volume, which it cannot write to.
func checkSync(t *testing.T, k corev1.Container, volume string) {
	t.Helper()
	if want := []string{"streams", "sync", "--store-dir", "/data"}; !slices.Equal(k.Args, want) {
		t.Errorf("got the arguments %v, want %v", k.Args, want)
	}
	want := []corev1.VolumeMount{{Name: volume, MountPath: "/data", ReadOnly: true}}
	if diff := cmp.Diff(want, k.VolumeMounts); diff != "" {
		t.Errorf("the mounts differ from those wanted (-):\n%s", diff)
	}
	if k.SecurityContext == nil || k.SecurityContext.RunAsUser != nil {
		t.Errorf("got %v, want the user of the pod", k.SecurityContext)
	}
}

// Traffic allowed by one workload's policy is also allowed by the peer's policy; a workload without a policy has no
// traffic.
func TestNetworkPoliciesMatch(t *testing.T) {
	t.Parallel()
	c := build(t, "dev") // the overlay with all workloads
	policies := all[*networkingv1.NetworkPolicy](c)
	if deny := policies["deny-by-default"]; len(deny.Spec.PodSelector.MatchLabels) != 0 || len(deny.Spec.PolicyTypes) != 2 || len(deny.Spec.Ingress)+len(deny.Spec.Egress) != 0 {
		t.Errorf("got %+v, want nothing to be allowed", deny.Spec)
	}
	ways := make(map[string]bool)
	for name, p := range policies {
		for _, way := range p.Spec.Egress {
			for _, peer := range way.To {
				if peer.PodSelector == nil || peer.PodSelector.MatchLabels["k8s-app"] == "kube-dns" {
					continue
				}
				to := c.selected(peer.PodSelector)
				if len(to) != 1 {
					t.Errorf("%s allows %v, want one workload", name, to)
					continue
				}
				ways[name+" > "+to[0]] = true
				if !c.admits(policies[to[0]], name) {
					t.Errorf("%s may connect to %s, which does not admit it", name, to[0])
				}
			}
		}
	}
	// From each service's settings.
	for name := range services() {
		for engine, variable := range map[string]string{"nats": "NATS_URL", "redis": "REDIS_URL", "mongodb": "MONGODB_URI"} {
			_, uses := c.settings(name, c.pods[name].Spec.Containers[0])[variable]
			if uses != ways[name+" > "+engine] {
				t.Errorf("%s uses %s: %v; may reach it: %v", name, engine, uses, ways[name+" > "+engine])
			}
		}
	}
	for _, way := range []string{"socket-gateway > socket-gateway", "socket-gateway > widget-api"} {
		if !ways[way] {
			t.Errorf("%s is not allowed", way)
		}
	}
	for name := range c.pods {
		if policies[name] == nil {
			t.Errorf("%s has no policy", name)
		}
	}
}

// admits reports whether a policy admits a workload's pods.
func (c *cluster) admits(p *networkingv1.NetworkPolicy, from string) bool {
	c.t.Helper()
	for _, way := range p.Spec.Ingress {
		for _, peer := range way.From {
			if peer.PodSelector != nil && slices.Contains(c.selected(peer.PodSelector), from) {
				return true
			}
		}
	}
	return false
}
