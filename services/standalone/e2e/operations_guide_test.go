package e2e

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-chat/parley/testkit/needs"
)

// mongodForTests takes the arguments of docs/operations.md and starts FerretDB.
const mongodForTests = `#!/bin/sh
[ "$1 $3 $5" = "--bind_ip --port --dbpath" ] || exit 2
exec bin/ferretdb -addr "$2:$4" -dir "$6"
`

// afterTheCrash reads what was accepted before, and answers as an agent of the panel does; the visitor gets the answer.
const afterTheCrash = `
bin/parleyctl chats show $chatId
panel=http://127.0.0.1:8084
csrf=$(curl -c jar $panel/api/session -H 'X-CSRF-Token: none' -H 'Content-Type: application/json' \
  -d '{"email":"you@example.com","password":"'$password'"}' | field .csrfToken)
curl -b jar $panel/api/chats/$chatId/messages?companyId=$companyId -H "X-CSRF-Token: $csrf" -H 'Idempotency-Key: answer' \
  -H 'Content-Type: application/json' -d '{"type":"TEXT","data":{"text":"An agent is here."}}'
for attempt in $(seq 100); do
  curl $widgetBaseUrl/message -H "Authorization: Bearer $visitor" | grep "An agent is here." > /dev/null && echo the visitor has the answer && break
  sleep 0.1
done
`

// TestOperationsGuide runs the commands of docs/operations.md for plain processes, with kill -9 of all of
// them after the fifth step and a start from the third, and FerretDB as mongod.
func TestOperationsGuide(t *testing.T) {
	for _, name := range []string{"redis-server", "caddy", "curl", "openssl"} {
		needs.Program(t, name)
	}
	needs.Packages(t)
	guide := readFile(t, "../../../docs/operations.md")
	_, guide, _ = strings.Cut(guide, "\n## As plain processes\n")
	guide, _, _ = strings.Cut(guide, "\n**For permanent operation**")
	var steps [7]string
	for n, step := range regexp.MustCompile(`(?m)^\*\*\d\. `).Split(guide, -1) {
		for _, block := range regexp.MustCompile("(?s)```bash\n(.*?)```\n").FindAllStringSubmatch(step, -1) {
			steps[n] += block[1]
		}
	}
	if !strings.HasPrefix(steps[1], "npm ci\nmake build\n") || steps[6] == "" {
		t.Fatalf("got the steps %q, want six, the first of which installs and builds", steps)
	}
	const crash = "kill -9 $(jobs -p)\nwait\n"
	script := strings.Join([]string{steps[2], steps[3], steps[4], steps[5], crash, steps[3], steps[4], afterTheCrash, steps[6]}, "\n")

	dir := t.TempDir()
	tools := filepath.Join(dir, "tools")
	check(t, os.Mkdir(tools, 0o700))
	check(t, os.WriteFile(filepath.Join(tools, "mongod"), []byte(mongodForTests), 0o700))
	check(t, os.Symlink(filepath.Dir(program(t, "parleyctl")), filepath.Join(dir, "bin")))
	for _, name := range []string{"deploy", "node_modules"} {
		check(t, os.Symlink(filepath.Join(root(), name), filepath.Join(dir, name)))
	}
	run := exec.CommandContext(t.Context(), "bash", "-c", "set -eu -o pipefail\ntrap 'kill -9 $(jobs -p) 2> /dev/null || true' EXIT\n"+strings.NewReplacer(
		"127.0.0.1", ownAddress(t), "TRUSTED_PROXIES=127.0.0.1", "TRUSTED_PROXIES=127.0.0.1",
		"mongodb://127.0.0.1:27017", "'mongodb://"+ownAddress(t)+":27017/?directConnection=true&retryWrites=false'",
		"--retry-all-errors --fail ", "--retry-all-errors ", "curl -s ", "curl -sS --fail-with-body ", "curl ", "curl -sS --fail-with-body ",
		// FerretDB has not all indexes.
		"bin/parleyctl streams apply", "env -u MONGODB_URI bin/parleyctl streams apply", "bin/parleyctl doctor", "env -u MONGODB_URI bin/parleyctl doctor",
	).Replace(script))
	run.Dir, run.WaitDelay = dir, limit
	run.Env = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"), "HOME="+dir)
	out, err := run.CombinedOutput()
	if err != nil {
		logs, _ := filepath.Glob(filepath.Join(dir, "data/*.log"))
		for _, path := range logs {
			t.Logf("%s:\n%s", filepath.Base(path), lastLines(readFile(t, path), 5))
		}
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"the edge is ours", "Your order is on its way.", "the visitor has the answer", "service panel"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("got no %q in\n%s", want, out)
		}
	}
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// ownAddress returns a loopback address that no other process uses, so that the document's ports are free.
var loopback = fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(250), rand.IntN(250), 2+rand.IntN(250))

func ownAddress(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		t.Skipf("this machine has only one loopback address: %v", err)
	}
	check(t, ln.Close())
	return loopback
}
