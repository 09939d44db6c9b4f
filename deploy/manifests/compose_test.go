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

// fullVersion ends an image's or an action's name that always means the same, as far as a tag can.
var fullVersion = regexp.MustCompile(`[:@]v?\d+\.\d+\.\d+(-[a-z]+)?$`)

// compose loads docker-compose.yml strictly, as `docker compose` does, with all profiles.
func compose(t *testing.T) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{filepath.Join(root, "docker-compose.yml")}, cli.WithEnv(composeSecrets(t)),
		cli.WithProfiles([]string{"*"}), cli.WithResolvedPaths(true))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return project
}

// composeSecrets are what scripts/compose-secrets makes.
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

// Without passwords Compose refuses and says what to run; each is made once, is random, and is its user's alone.
func TestComposeHasNoDefaultPasswords(t *testing.T) {
	t.Parallel()
	options, err := cli.NewProjectOptions([]string{filepath.Join(root, "docker-compose.yml")}, cli.WithProfiles([]string{"*"}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := options.LoadProject(t.Context()); err == nil || !strings.Contains(err.Error(), "make compose-secrets") {
		t.Errorf("without passwords: got %v, want to be told what to run", err)
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
				if user := regexp.MustCompile(`//([a-z-]+):p[0-9a-f]{32}@`).FindStringSubmatch(*value); user == nil ||
					user[1] != service && (service != "parleyctl" || user[1] != "operator") {
					t.Errorf("%s: %s does not name the user %s", name, variable, service)
				}
			}
		}
	}
}

// A second run keeps what is there.
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
			t.Errorf("got %s, %v, want what was there kept", text, err)
		}
		before = string(text)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want a file for its owner alone", info.Mode(), err)
	}
}

// ours are the services of the project that are built here, with the argument that says what from.
func ours(project *types.Project) map[string]string {
	built := make(map[string]string)
	for name, s := range project.Services {
		if s.Build != nil {
			built[name] = *s.Build.Args["SERVICE"]
		}
	}
	return built
}

func TestComposeSetsWhatTheServicesRead(t *testing.T) {
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
			set[variable] = *value
		}
		checkSettings(t, "docker-compose.yml: "+name, service, set)
	}
	if len(seen) != len(services()) {
		t.Errorf("got %v built, want every service", slices.Sorted(maps.Keys(seen)))
	}
}

func TestComposeProfiles(t *testing.T) {
	t.Parallel()
	project := compose(t)
	for profile, want := range map[string][]string{
		"":              {"client-api", "edge", "mongodb", "nats", "panel", "processor", "redis", "socket-gateway", "streams", "visitor-keys", "widget-api"},
		"scale":         {"socket-gateway-2", "socket-gateway-3"},
		"observability": {"grafana", "prometheus", "traces"},
		"tools":         {"parleyctl"},
	} {
		var got []string
		for name, s := range project.Services {
			if profile == "" && len(s.Profiles) == 0 || slices.Contains(s.Profiles, profile) {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("profile %q: got %v, want %v", profile, got, want)
		}
	}
}

// Whoever waits for a service waits until it is healthy, or has ended well.
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
					t.Errorf("%s waits for %s to end, which is started again", name, needed)
				}
			default:
				if !slices.Contains(s.Profiles, "observability") {
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
		if strings.Contains(*value, "//"+part) || strings.Contains(*value, "@"+part) {
			return true
		}
	}
	return false
}

// What is mounted from the repository is there.
func TestComposeMountsWhatIsThere(t *testing.T) {
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

func TestComposePinsImagesAndTakesRightsAway(t *testing.T) {
	t.Parallel()
	project := compose(t)
	built := ours(project)
	for name, s := range project.Services {
		if built[name] == "" && !fullVersion.MatchString(s.Image) {
			t.Errorf("%s: got image %q, want one with a full version", name, s.Image)
		}
		for _, p := range s.Ports {
			if p.HostIP != "127.0.0.1" && name != "edge" {
				t.Errorf("%s is reached from outside at %s", name, p.Published)
			}
		}
		if _, runs := services()[built[name]]; runs && (!s.ReadOnly || !slices.Contains(s.CapDrop, "ALL") || s.HealthCheck == nil) {
			t.Errorf("%s: want a read-only root, no capabilities and a check", name)
		}
	}
}

// The gateways differ in nothing, and the edge finds all of them under one name.
func TestComposeGatewaysAreAlike(t *testing.T) {
	t.Parallel()
	project := compose(t)
	for name, service := range ours(project) {
		if service != "socket-gateway" {
			continue
		}
		network := project.Services[name].Networks["default"]
		if network == nil || !slices.Contains(network.Aliases, "socket-gateways") {
			t.Errorf("%s is not one of socket-gateways", name)
		}
	}
	if caddyfile := string(read(t, "deploy/edge/Caddyfile")); !strings.Contains(caddyfile, ":socket-gateways:8080}") {
		t.Error("the edge does not know socket-gateways:8080")
	}
}
