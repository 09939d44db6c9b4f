package manifests

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// fullVersion matches an image or action name with a full version, which is as immutable as a tag can be.
var fullVersion = regexp.MustCompile(`[:@]v?\d+\.\d+\.\d+(-[a-z]+)?$`)

// compose loads docker-compose.yml with deploy/compose/observability.yml strictly, like `docker compose`, with all
// profiles and the given .env.
func compose(t *testing.T, env ...string) *types.Project {
	t.Helper()
	return composeFiles(t, env, "docker-compose.yml", "deploy/compose/observability.yml")
}

func composeFiles(t *testing.T, env []string, files ...string) *types.Project {
	t.Helper()
	for i, file := range files {
		files[i] = filepath.Join(root, file)
	}
	options, err := cli.NewProjectOptions(files, cli.WithEnv(append(composeSecrets(t), env...)), cli.WithProfiles([]string{"*"}), cli.WithResolvedPaths(true))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return project
}

// composeSecrets returns the secrets that scripts/compose-secrets generates.
func composeSecrets(t *testing.T) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), ".env")
	if out, err := exec.CommandContext(t.Context(), filepath.Join(root, "scripts/compose-secrets"), file).CombinedOutput(); err != nil {
		t.Fatalf("scripts/compose-secrets: %v\n%s", err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// Without passwords Compose fails and names the command to run; passwords are generated once, random, and one per user.
func TestComposeHasNoDefaultPasswords(t *testing.T) {
	t.Parallel()
	options, err := cli.NewProjectOptions([]string{filepath.Join(root, "docker-compose.yml")}, cli.WithProfiles([]string{"*"}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := options.LoadProject(t.Context()); err == nil || !strings.Contains(err.Error(), "make compose-secrets") {
		t.Errorf("without passwords: got %v, want the command to run", err)
	}
	if found := regexp.MustCompile(`_PASSWORD(:?-|\})`).FindString(string(read(t, "docker-compose.yml"))); found != "" {
		t.Errorf("got a password with a default: %q", found)
	}
	first, second := composeSecrets(t), composeSecrets(t)
	users := make(map[string]string)
	for i, line := range first {
		name, password, _ := strings.Cut(line, "=")
		if !regexp.MustCompile(`^p[0-9a-f]{32}$`).MatchString(password) || users[password] != "" || line == second[i] {
			t.Errorf("got %s, want a random password of its own", line)
		}
		users[password] = name
	}
	project := compose(t)
	if redis, mongodb := project.Services["redis"], project.Services["mongodb"]; len(redis.Environment) == 0 || mongodb.Environment["MONGO_INITDB_ROOT_PASSWORD"] == nil {
		t.Error("Redis or MongoDB asks for no password")
	}
	for name, service := range ours(project) {
		for variable, value := range project.Services[name].Environment {
			if at, ok := strings.CutSuffix(variable, "_URL"); ok && slices.Contains([]string{"NATS", "REDIS"}, at) || variable == "MONGODB_URI" {
				want := service
				switch {
				case name == "nats-sync":
					want = "syncer"
				case service == "parleyctl":
					want = "operator"
				}
				if user := regexp.MustCompile(`//([a-z-]+):p[0-9a-f]{32}@`).FindStringSubmatch(*value); user == nil || user[1] != want {
					t.Errorf("%s: %s does not name the user %s", name, variable, want)
				}
			}
		}
	}
}

// A second run keeps existing secrets.
func TestComposeSecretsAreKept(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), ".env")
	if err := os.WriteFile(file, []byte("NATS_WATCHER_PASSWORD=mine\nBOT=none\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var before string
	for range 2 {
		if out, err := exec.CommandContext(t.Context(), filepath.Join(root, "scripts/compose-secrets"), file).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		text, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(string(text), "NATS_WATCHER_PASSWORD=mine\nBOT=none\n") || before != "" && before != string(text) {
			t.Errorf("got %s, %v, want the existing secret kept", text, err)
		}
		before = string(text)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want a file for its owner alone", info.Mode(), err)
	}
}

// ours returns the services of the project that are built here, with the build argument that selects them.
func ours(project *types.Project) map[string]string {
	built := make(map[string]string)
	for name, s := range project.Services {
		if s.Build != nil {
			built[name] = *s.Build.Args["SERVICE"]
		}
	}
	return built
}

func TestComposeSettingsAreKnown(t *testing.T) {
	t.Parallel()
	project := compose(t)
	seen := make(map[string]bool)
	for name, service := range ours(project) {
		if _, runs := services()[service]; !runs {
			continue
		}
		seen[service] = true
		set := make(map[string]string)
		for variable, value := range project.Services[name].Environment {
			set[variable] = ""
			if value != nil { // otherwise .env does not set it
				set[variable] = *value
			}
		}
		checkSettings(t, "docker-compose.yml: "+name, service, set)
	}
	if len(seen) != len(services()) {
		t.Errorf("got %v built, want every service", slices.Sorted(maps.Keys(seen)))
	}
}

// A service waits until its dependencies are healthy, or have completed successfully.
func TestComposeStartsInOrder(t *testing.T) {
	t.Parallel()
	project := compose(t)
	for name, s := range project.Services {
		for needed, how := range s.DependsOn {
			other := project.Services[needed]
			switch how.Condition {
			case types.ServiceConditionHealthy:
				if other.HealthCheck == nil {
					t.Errorf("%s waits for %s to be healthy, which has no check", name, needed)
				}
			case types.ServiceConditionCompletedSuccessfully:
				if other.Restart != "" {
					t.Errorf("%s waits for %s to complete, which restarts", name, needed)
				}
			default:
				if name != "grafana" {
					t.Errorf("%s does not wait for %s to be ready: %s", name, needed, how.Condition)
				}
			}
		}
	}
	for name, service := range ours(project) {
		if _, runs := services()[service]; !runs {
			continue
		}
		s := project.Services[name]
		for _, engine := range []string{"nats", "redis", "mongodb"} {
			_, needs := s.DependsOn[engine]
			if uses := mentions(s.Environment, engine+":"); uses && !needs {
				t.Errorf("%s uses %s and does not wait for it", name, engine)
			}
		}
	}
}

func mentions(environment types.MappingWithEquals, part string) bool {
	for _, value := range environment {
		if value != nil && (strings.Contains(*value, "//"+part) || strings.Contains(*value, "@"+part)) {
			return true
		}
	}
	return false
}

// Every container has a memory limit; our services have that of Kubernetes.
func TestComposeLimitsResources(t *testing.T) {
	t.Parallel()
	project := compose(t)
	production := build(t, "production")
	for name, s := range project.Services {
		if s.MemLimit == 0 {
			t.Errorf("%s has no memory limit", name)
		}
		service := ours(project)[name]
		if _, runs := services()[service]; runs {
			pod := production.pods[service]
			if limit := pod.Spec.Containers[0].Resources.Limits.Memory().Value(); int64(s.MemLimit) != limit {
				t.Errorf("%s: got %d bytes of memory, want %d as in Kubernetes", name, s.MemLimit, limit)
			}
		}
	}
}

// Variables of .env reach the services that read them; others keep the service's default.
func TestComposePassesEnvOn(t *testing.T) {
	t.Parallel()
	passed := regexp.MustCompile(`^(LIMITS$|S3_|FILE_)`)
	project := compose(t, "STREAM_MAX_BYTES=2000000", "STREAM_MAX_AGE=1h", "LIMITS=small")
	for name, service := range ours(project) {
		if _, runs := services()[service]; !runs {
			continue
		}
		for variable := range variables(services()[service]) {
			if _, there := project.Services[name].Environment[variable]; !there && passed.MatchString(variable) {
				t.Errorf("%s: .env cannot set %s", name, variable)
			}
		}
	}
	value := func(service, variable string) string {
		v := project.Services[service].Environment[variable]
		if v == nil {
			return ""
		}
		return *v
	}
	if got := value("widget-api", "LIMITS") + " " + value("widget-api", "FILE_RETENTION") + " " + value("streams", "STREAM_MAX_BYTES"); got != "small  2000000" {
		t.Errorf("got %q, want the value of .env", got)
	}
	without := composeFiles(t, nil, "docker-compose.yml")
	for name, service := range ours(project) {
		if _, runs := services()[service]; runs && (value(name, "OTEL_EXPORTER_OTLP_ENDPOINT") != "http://traces:4318" || without.Services[name].Environment["OTEL_EXPORTER_OTLP_ENDPOINT"] != nil) {
			t.Errorf("%s: want traces sent to the viewer where it runs, and nowhere else", name)
		}
	}
}

// The sync reads the store directory of NATS, as the owner of its files and with no other right.
func TestComposeSyncsTheStreams(t *testing.T) {
	t.Parallel()
	project := compose(t)
	nats, sync := project.Services["nats"], project.Services["nats-sync"]
	volume := func(s types.ServiceConfig, target string) types.ServiceVolumeConfig {
		i := slices.IndexFunc(s.Volumes, func(v types.ServiceVolumeConfig) bool { return v.Target == target })
		if i < 0 {
			t.Fatalf("%s has no volume at %s", s.Name, target)
		}
		return s.Volumes[i]
	}
	store := nats.Command[slices.Index(nats.Command, "--store_dir")+1]
	if got := volume(sync, store); got.Source != volume(nats, store).Source || !got.ReadOnly {
		t.Errorf("got %+v, want the volume of NATS, read-only", got)
	}
	if want := []string{"streams", "sync", "--store-dir", store}; !slices.Equal(sync.Command, want) {
		t.Errorf("got the command %v, want %v", sync.Command, want)
	}
	if nats.User != "" || sync.User != "0:0" {
		t.Errorf("got the users %q and %q, want root, as which the image of NATS runs", nats.User, sync.User)
	}
	if !sync.ReadOnly || !slices.Equal(sync.CapDrop, []string{"ALL"}) || sync.Restart != "unless-stopped" {
		t.Errorf("got %+v, want a read-only root, no capabilities and a restart", sync)
	}
}

// Paths mounted from the repository exist.
func TestComposeMountsExistingPaths(t *testing.T) {
	t.Parallel()
	for name, s := range compose(t).Services {
		for _, v := range s.Volumes {
			if v.Type != types.VolumeTypeBind {
				continue
			}
			if _, err := os.Stat(v.Source); err != nil {
				t.Errorf("%s mounts %s: %v", name, v.Source, err)
			}
		}
	}
}

// panelPort is the edge's port of the panel.
const panelPort = 8084

func TestComposePinsImagesAndDropsPrivileges(t *testing.T) {
	t.Parallel()
	project := compose(t)
	built := ours(project)
	for name, s := range project.Services {
		if built[name] == "" && !fullVersion.MatchString(s.Image) {
			t.Errorf("%s: got image %q, want one with a full version", name, s.Image)
		}
		for _, p := range s.Ports {
			// plain HTTP must not carry sessions of the panel
			if p.HostIP != "127.0.0.1" && (name != "edge" || p.Target == panelPort) {
				t.Errorf("%s is reachable from outside at %s", name, p.Published)
			}
		}
		if _, runs := services()[built[name]]; runs && (!s.ReadOnly || !slices.Contains(s.CapDrop, "ALL") || s.HealthCheck == nil) {
			t.Errorf("%s: want a read-only root, no capabilities and a check", name)
		}
	}
}
