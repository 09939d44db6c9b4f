package e2e

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
	"github.com/parley-chat/parley/testkit/nettest"
)

// TestProductionGuide runs the commands of docs/production.md, with other addresses, on real engines.
func TestProductionGuide(t *testing.T) {
	f := newDeployment(t, 0)
	needs.Program(t, "curl")
	guide := readFile(t, "../../../docs/production.md")
	_, redisPort, _ := strings.Cut(f.addr["redis"], ":")
	addresses := []string{"127.0.0.1:4222", f.addr["nats"], "127.0.0.1:6379", f.addr["redis"], "--port 6379", "--port " + redisPort}
	for _, port := range []int{8081, 8082, 8083, 8084, 9081, 9082, 9083, 9084, 9085} {
		addr, err := nettest.FreeAddr()
		check(t, err)
		addresses = append(addresses, fmt.Sprintf("127.0.0.1:%d", port), addr)
	}
	// doctor checks the certificate
	addresses = append(addresses, "PUBLIC_URL=https://chat.example.com", "PUBLIC_URL=http://127.0.0.1:1")
	var script strings.Builder
	script.WriteString("set -eu -o pipefail\ntrap 'kill $(jobs -p) && wait' EXIT\n")
	steps := 0
	for _, block := range regexp.MustCompile("(?s)```bash\n(.*?)```\n").FindAllStringSubmatch(guide, -1) {
		steps++
		if !strings.HasPrefix(block[1], "make build\n") { // the tests have built the same programs
			script.WriteString(block[1])
		}
	}
	// Each later run applies the same sizes: the environment is only that of the settings' file.
	script.WriteString("env -i bash -c 'set -a; . ./parley.env; bin/parleyctl streams apply --dry-run'\n")
	if numbered := strings.Count(guide, "\n## "); steps < 8 || numbered != 10 {
		t.Errorf("got %d blocks in %d steps, want ten steps", steps, numbered)
	}
	dir := t.TempDir()
	check(t, os.Symlink(filepath.Dir(program(t, "parleyctl")), filepath.Join(dir, "bin")))
	check(t, os.Symlink(filepath.Join(root(), "docs"), filepath.Join(dir, "docs")))
	run := exec.CommandContext(t.Context(), "bash", "-c", strings.NewReplacer(addresses...).Replace(script.String()))
	run.Dir = dir
	run.WaitDelay = limit
	run.Cancel = func() error { return run.Process.Signal(os.Interrupt) } // its trap ends the services
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "2 greetings") {
		t.Errorf("got no visitor with the greetings of docs/examples/widget.json:\n%s", out)
	}
	for _, made := range []string{"data/visitor-keys.json", "backups/parley-" + time.Now().Format(time.DateOnly) + ".db"} {
		if _, err := os.Stat(filepath.Join(dir, made)); err != nil {
			t.Errorf("got no %s: %v", made, err)
		}
	}
}
