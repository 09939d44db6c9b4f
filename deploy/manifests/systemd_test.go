package manifests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/testkit/needs"
)

// units returns the files of deploy/systemd by name.
func units(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "deploy/systemd/parley*"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("got %v, %v, want units", paths, err)
	}
	found := make(map[string]string)
	for _, path := range paths {
		found[filepath.Base(path)] = string(read(t, "deploy/systemd/"+filepath.Base(path)))
	}
	return found
}

// Each service has a unit with the same memory limit and stop timeout as in Kubernetes, and is stopped before NATS and
// the database. Those that use the database share a user and a folder, so that SQLite's file can be written.
func TestUnitsOfTheServices(t *testing.T) {
	t.Parallel()
	found, production := units(t), build(t, "production")
	value := func(unit, key string) string {
		m := regexp.MustCompile(`(?m)^` + key + `=(.*)$`).FindStringSubmatch(unit)
		if m == nil {
			return ""
		}
		return m[1]
	}
	for name := range services() {
		unit := found["parley-"+name+".service"] + found["parley-"+name+"@.service"]
		pod := production.pods[name].Spec
		memory := strings.TrimSuffix(pod.Containers[0].Resources.Limits.Memory().String(), "i")
		if got := value(unit, "ExecStart"); got != "/usr/local/bin/"+name {
			t.Errorf("%s: got %q, want its binary started", name, got)
		}
		_, stores := variables(services()[name])["SQLITE_PATH"]
		if got := value(unit, "User") == "parley" && value(unit, "StateDirectory") == "parley"; got != stores {
			t.Errorf("%s: got the user and the folder of the database: %v, want %v", name, got, stores)
		}
		if value(unit, "MemoryMax") != memory || value(unit, "TimeoutStopSec") != fmt.Sprint(*pod.TerminationGracePeriodSeconds) {
			t.Errorf("%s: got %s and %s s, want %s and %d s", name, value(unit, "MemoryMax"), value(unit, "TimeoutStopSec"), memory, *pod.TerminationGracePeriodSeconds)
		}
		for _, engine := range []string{"nats-server.service", "parley-sync.service", "redis-server.service", "mongod.service"} {
			if !strings.Contains(value(unit, "After"), engine) {
				t.Errorf("%s may be stopped after %s", name, engine)
			}
		}
	}
	if len(found) != len(services())+3 {
		t.Errorf("got %d units, want the services, the streams, their sync and the target", len(found))
	}
}

// systemd accepts every line, and its security analysis finds few exposures.
func TestUnitsAreValidAndHardened(t *testing.T) {
	t.Parallel()
	needs.Program(t, "systemd-analyze")
	dir := t.TempDir()
	var names []string
	for name, text := range units(t) {
		// The binaries need not be installed on this machine.
		text = regexp.MustCompile(`/usr/local/bin/\S+`).ReplaceAllString(text, "/bin/true")
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "@.service") {
			continue
		}
		names = append(names, filepath.Join(dir, name))
	}
	names = append(names, filepath.Join(dir, "parley-socket-gateway@1.service"))
	verify := exec.CommandContext(t.Context(), "systemd-analyze", append([]string{"verify", "--man=no", "--recursive-errors=no"}, names...)...)
	verify.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+dir+":", "SYSTEMD_LOG_LEVEL=warning")
	if out, err := verify.CombinedOutput(); err != nil || strings.Contains(string(out), "parley") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".service") {
			continue
		}
		check := exec.CommandContext(t.Context(), "systemd-analyze", "security", "--offline=yes", "--threshold=20", strings.Replace(name, "@1", "@", 1))
		check.WaitDelay = 10 * time.Second
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s is not hardened enough: %v\n%s", filepath.Base(name), err, out)
		}
	}
}
