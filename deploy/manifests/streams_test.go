package manifests

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/config"
	socketgateway "github.com/parley-chat/parley/services/socket-gateway"
)

// streamSizes parses the settings of `parleyctl streams apply`.
func streamSizes(t *testing.T, set map[string]string) config.Streams {
	t.Helper()
	known := variables(config.Streams{})
	for name := range set {
		if _, ok := known[name]; !ok && name != "NATS_URL" && name != "MONGODB_URI" {
			t.Errorf("%s is not a setting of the streams", name)
		}
	}
	sizes, err := config.LoadFrom[config.Streams](func(name string) string { return set[name] })
	if err != nil {
		t.Fatal(err)
	}
	return sizes
}

// streams returns the sizes that the overlay's job applies.
func (c *cluster) streams() config.Streams {
	c.t.Helper()
	containers := c.pods["streams"].Spec.Containers
	if len(containers) != 1 || !slices.Equal(containers[0].Args[:2], []string{"streams", "apply"}) {
		c.t.Fatalf("got %+v, want a job that applies the streams", containers)
	}
	return streamSizes(c.t, c.settings("streams", containers[0]))
}

// reserved returns the storage that one server reserves for the streams.
func reserved(s config.Streams) (sum int64) {
	for _, stream := range (bus.StreamSettings{MaxBytes: s.StreamMaxBytes, FilesMaxBytes: s.FileStoreMaxBytes}).Streams() {
		sum += stream.MaxBytes
	}
	return sum
}

// starts applies streams of that size on a NATS server with that much storage.
func starts(t *testing.T, maxFileStore string, s config.Streams) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "nats-server.conf")
	if err := os.WriteFile(file, []byte("jetstream: {max_file_store: "+maxFileStore+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	nats := startNATS(t, file)
	operator := openBus(t, nats, "operator", []string{}...)
	if _, err := operator.ApplyStreams(t.Context(), bus.StreamSettings{MaxBytes: s.StreamMaxBytes, FilesMaxBytes: s.FileStoreMaxBytes}); err != nil {
		t.Errorf("in %s: %v", maxFileStore, err)
	}
}

// The streams of every overlay fit into NATS's storage limit, and that into its volume, with a twentieth left for the
// file system.
func TestStreamsFitTheVolume(t *testing.T) {
	t.Parallel()
	dev := build(t, "dev")
	set := all[*appsv1.StatefulSet](dev)["nats"]
	volume := set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().Value()
	room := dev.settings("nats", set.Spec.Template.Spec.Containers[0])["NATS_MAX_FILE_STORE"]
	quantity := resource.MustParse(strings.TrimSuffix(room, "B") + "i")
	if sum := reserved(dev.streams()); sum > quantity.Value() || quantity.Value() > volume/20*19 {
		t.Errorf("dev: the streams reserve %d of %d on a volume of %d", sum, quantity.Value(), volume)
	}
	starts(t, room, dev.streams())

	var values chartValues
	if err := yaml.Unmarshal(read(t, "k8s/overlays/production/nats-values.yaml"), &values); err != nil {
		t.Fatal(err)
	}
	size := resource.MustParse(values.Config.JetStream.FileStore.PVC.Size)
	if sum := reserved(build(t, "production").streams()); sum > size.Value()/20*19 {
		t.Errorf("production: the streams reserve %d on a volume of %d", sum, size.Value())
	}

	project := compose(t)
	sizes := make(map[string]string)
	for name, value := range project.Services["streams"].Environment {
		if value != nil { // otherwise the default
			sizes[name] = *value
		}
	}
	room = *project.Services["nats"].Environment["NATS_MAX_FILE_STORE"]
	starts(t, room, streamSizes(t, sizes))
}

// Production's streams hold the load stated in its overlay, and one company or application can fill only a part of a
// stream.
func TestProductionCarriesItsLoad(t *testing.T) {
	t.Parallel()
	stated := regexp.MustCompile(`(\d+) events a second .*, kept for (\d+) hours, (\d+) bytes each and a quarter to spare`).
		FindStringSubmatch(string(read(t, "k8s/overlays/production/kustomization.yaml")))
	if stated == nil {
		t.Fatal("the production overlay states no load")
	}
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	c := build(t, "production")
	streams := c.streams()
	age := time.Duration(number(stated[2])) * time.Hour
	if need := number(stated[1]) * number(stated[3]) * int64(age.Seconds()) * 5 / 4; streams.StreamMaxAge != age || streams.StreamMaxBytes < need {
		t.Errorf("got %d bytes for %v, want at least %d for %v", streams.StreamMaxBytes, streams.StreamMaxAge, need, age)
	}
	for name := range services() {
		profile := c.settings(name, c.pods[name].Spec.Containers[0])["LIMITS"]
		budgets := struct {
			config.Limits
			config.Budgets
		}{Limits: config.Limits{Limits: profile}}
		if err := config.SetDefaults(&budgets); err != nil {
			t.Fatal(err)
		}
		for budget, share := range map[config.Rate]int64{budgets.BytesCompany: 4, budgets.BytesApplication: 8} {
			if budget.Per != age || int64(budget.Count) > streams.StreamMaxBytes/share {
				t.Errorf("%s: LIMITS=%s has a budget of %v, want at most 1/%d of a stream in its age", name, profile, budget, share)
			}
		}
	}
}

// chartValues has the fields we use of the NATS chart's values.
type chartValues struct {
	Config struct {
		Cluster struct {
			Enabled bool `json:"enabled"`
		} `json:"cluster"`
		JetStream struct {
			FileStore struct {
				PVC struct {
					Name string `json:"name"`
					Size string `json:"size"`
				} `json:"pvc"`
			} `json:"fileStore"`
			Merge struct {
				SyncInterval string `json:"sync_interval"`
			} `json:"merge"`
		} `json:"jetstream"`
		Merge map[string]any `json:"merge"`
	} `json:"config"`
	PodTemplate struct {
		Merge struct {
			Spec corev1.PodSpec `json:"spec"`
		} `json:"merge"`
		Patch []struct {
			Path  string          `json:"path"`
			Value json.RawMessage `json:"value"`
		} `json:"patch"`
	} `json:"podTemplate"`
	Container struct {
		Patch []struct {
			Path  string `json:"path"`
			Value any    `json:"value"`
		} `json:"patch"`
	} `json:"container"`
}

// nats-server starts with the configuration that the chart renders from our values: its file is
// /etc/nats-config/nats.conf, <<x>> is rendered as x and $include as an include relative to the including file.
func TestChartConfigurationStarts(t *testing.T) {
	t.Parallel()
	var values chartValues
	if err := yaml.Unmarshal(read(t, "k8s/overlays/production/nats-values.yaml"), &values); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir() // replaces /
	var mount string
	for _, p := range values.Container.Patch {
		if m, ok := p.Value.(map[string]any); ok && m["name"] == "parley-accounts" {
			mount = fmt.Sprint(m["mountPath"])
		}
	}
	for _, folder := range []string{"/etc/nats-config", mount} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var config strings.Builder
	fmt.Fprintf(&config, "jetstream: {max_file_store: 20GB, sync_interval: %q}\n", values.Config.JetStream.Merge.SyncInterval)
	for _, key := range slices.Sorted(maps.Keys(values.Config.Merge)) {
		value := fmt.Sprint(values.Config.Merge[key])
		if key == "$include" {
			fmt.Fprintf(&config, "include %q;\n", value)
			continue
		}
		fmt.Fprintf(&config, "%q: %s\n", key, strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(value, "<<"), ">>")))
	}
	for path, text := range map[string]string{"/etc/nats-config/nats.conf": config.String(), mount + "/accounts.conf": accounts(t)} {
		if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := startNATS(t, filepath.Join(dir, "/etc/nats-config/nats.conf"))
	applyStreams(t, s)
	if account, err := s.LookupAccount("PARLEY"); err != nil || !account.JetStreamEnabled() {
		t.Errorf("got %v, want the account PARLEY with JetStream", err)
	}
	if got := s.JetStreamConfig(); !got.SyncAlways {
		t.Errorf("got %+v, want three servers to sync before they acknowledge", got)
	}
}

// Every deployment with one server leaves the sync of its streams to parleyctl: nats-server would sync each event
// alone.
func TestOneServerSyncsLazily(t *testing.T) {
	t.Parallel()
	if got := startParleyNATS(t).JetStreamConfig(); got.SyncAlways || got.SyncInterval != 2*time.Minute {
		t.Errorf("got %+v, want the server's default", got)
	}
	var values struct {
		Streams map[string]string `json:"streams"`
		NATS    chartValues       `json:"nats"`
	}
	text := read(t, "deploy/helm/parley/one-server.yaml")
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	config := values.NATS.Config
	if config.Cluster.Enabled || config.JetStream.Merge.SyncInterval != "2m" || values.Streams["STREAM_REPLICAS"] != "1" {
		t.Errorf("got %+v and %v, want one server and its default", config, values.Streams)
	}
	var sync corev1.Container
	for _, p := range values.NATS.PodTemplate.Patch {
		if p.Path == "/spec/containers/-" {
			if err := yaml.UnmarshalStrict(p.Value, &sync); err != nil {
				t.Fatal(err)
			}
		}
	}
	checkSync(t, sync, config.JetStream.FileStore.PVC.Name)
	if user := values.NATS.PodTemplate.Merge.Spec.SecurityContext; user == nil || user.RunAsUser == nil {
		t.Errorf("got %v, want one user for both containers", user)
	}
	var merged map[string]any
	if err := yaml.Unmarshal(text, &merged); err != nil {
		t.Fatal(err)
	}
	if _, _, err := helmTemplate(merged); err != nil {
		t.Errorf("the chart's schema refuses one-server.yaml: %v", err)
	}
}

// A gateway's advertised address is valid on IPv4 and on IPv6.
func TestGatewayAddressOnEveryNetwork(t *testing.T) {
	each(t, func(t *testing.T, c *cluster) {
		set := c.settings("socket-gateway", c.pods["socket-gateway"].Spec.Containers[0])
		for _, ip := range []string{"10.1.2.3", "fd00:10:244::7"} {
			addr := strings.ReplaceAll(set["GATEWAY_ADVERTISE_ADDR"], "$(POD_IP)", ip)
			problems := socketgateway.Config{AdvertiseAddr: addr, JWKSURL: "http://widget-api"}.Validate()
			if addr == "" || len(problems) > 0 {
				t.Errorf("got %q and %v, want an address", addr, problems)
			}
		}
	})
}

// Directories for passwords and keys, which operators create according to the documents, are ignored by git.
func TestSecretsAreIgnored(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		t.Skip("a source archive: git check-ignore needs a repository")
	}
	for _, path := range []string{"data/nats.env", "data/visitor-keys.json", ".env", ".parley/demo.json"} {
		if out, err := exec.CommandContext(t.Context(), "git", "-C", root, "check-ignore", "--no-index", path).CombinedOutput(); err != nil {
			t.Errorf("git would commit %s: %v %s", path, err, out)
		}
	}
}
