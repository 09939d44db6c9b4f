package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/config"
	clientapi "github.com/parley-chat/parley/services/client-api"
	"github.com/parley-chat/parley/services/panel"
	"github.com/parley-chat/parley/services/processor"
	socketgateway "github.com/parley-chat/parley/services/socket-gateway"
	widgetapi "github.com/parley-chat/parley/services/widget-api"
)

var update = flag.Bool("update", false, "write the generated parts of the documents instead of checking them")

const (
	readmePath          = "../../../README.md"
	configurationPath   = "../../../docs/configuration.md"
	processingLayerPath = "../../../docs/processing-layer.md"
	examplePath         = "../../../docs/examples/processing-layer/main.go"
)

func readFile(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	check(t, err)
	return string(data)
}

// TestDocumentsAreCurrent compares docs/configuration.md and the program in docs/processing-layer.md with the code.
func TestDocumentsAreCurrent(t *testing.T) {
	for _, part := range []struct{ path, start, end, content string }{
		{configurationPath, "<!-- configuration -->\n", "\n`make run` reads", "\n" + configurationTable()},
		{processingLayerPath, "<!-- example: docs/examples/processing-layer/main.go -->\n```go\n", "```\n", readFile(t, examplePath)},
	} {
		text := readFile(t, part.path)
		current := between(t, text, part.start, part.end, part.content)
		switch {
		case current == text:
		case *update:
			check(t, os.WriteFile(part.path, []byte(current), 0o644))
		default:
			t.Errorf("%s is stale: go test ./services/standalone/e2e -run TestDocumentsAreCurrent -update", part.path)
		}
	}
}

// TestReadmeIsShort: what is not part of the first impression belongs to docs.
func TestReadmeIsShort(t *testing.T) {
	if got := strings.Count(readFile(t, readmePath), "\n"); got > 200 {
		t.Errorf("README.md has %d lines, want 200 at most", got)
	}
}

// between replaces what stands between two marks with content.
func between(t testing.TB, text, start, end, content string) string {
	t.Helper()
	before, rest, ok := strings.Cut(text, start)
	_, after, found := strings.Cut(rest, end)
	if !ok || !found {
		t.Fatalf("got no part between %q and %q", start, end)
	}
	return before + start + content + end + after
}

// configurationTable lists every variable of every service once, with the services that read it.
func configurationTable() string {
	type row struct {
		config.Variable
		services []string
	}
	var rows []*row
	byName := map[string]*row{}
	for _, service := range []struct {
		name   string
		config any
	}{
		{"client-api", clientapi.Config{}}, {"widget-api", widgetapi.Config{}},
		{"socket-gateway", socketgateway.Config{}}, {"processor", processor.Config{}}, {"panel", panel.Config{}}, {"`parleyctl streams apply`", config.Streams{}},
	} {
		for _, v := range config.Reference(service.config) {
			r := byName[v.Name]
			if r == nil {
				r = &row{Variable: v}
				byName[v.Name] = r
				rows = append(rows, r)
			}
			r.services = append(r.services, service.name)
		}
	}
	var b strings.Builder
	b.WriteString("| variable | default | what | read by |\n|---|---|---|---|\n")
	for _, r := range rows {
		by, value := strings.Join(r.services, ", "), "`"+r.Default+"`"
		switch {
		case r.Required:
			value = "required"
		case r.Default == "":
			value = ""
		}
		if len(r.services) == 5 {
			by = "all"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.Name, value, r.Doc, by)
	}
	return b.String()
}

// TestReadmeCurl runs the README's curl lines as they stand, with bash, against a running Parley.
func TestReadmeCurl(t *testing.T) {
	p := commonStandalone(t).place
	dir := t.TempDir()
	check(t, os.Mkdir(filepath.Join(dir, ".parley"), 0o700))
	demo, err := json.Marshal(p.Demo)
	check(t, err)
	check(t, os.WriteFile(filepath.Join(dir, ".parley", "demo.json"), demo, 0o600))
	chat := openChat(t, openStore(t, p), p, time.Now())

	_, lines, _ := strings.Cut(readFile(t, readmePath), "<!-- curl: ")
	_, lines, _ = strings.Cut(lines, "```bash\n")
	first, rest, _ := strings.Cut(lines, "```\n")
	_, rest, _ = strings.Cut(rest, "```bash\n")
	second, _, found := strings.Cut(rest, "```\n")
	if !found {
		t.Fatal("README.md does not hold the two blocks of curl lines")
	}
	script := "set -eu -o pipefail\nchatId=" + chat.ID + "\n" + strings.ReplaceAll(first+second, "curl -s ", "curl -sS --fail-with-body -w '\\n' ")
	run := exec.CommandContext(t.Context(), "bash", "-c", script)
	run.Dir = dir
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, wanted := range []string{`"botName"`, `"widgetConfigs"`, `"text":"menu"`, `"isFromSupport":true`, `"keys"`, `"windowExpiresAt"`, `"dryRun":true`, `"acceptedAt"`, "Order 4711"} {
		if !strings.Contains(string(out), wanted) {
			t.Errorf("got no %s in the answers:\n%s", wanted, out)
		}
	}
	ids := map[string]int{}
	for _, sent := range regexp.MustCompile(`"message":"Message sent successfully","messageId":"([^"]*)"`).FindAllStringSubmatch(string(out), -1) {
		ids[sent[1]]++
	}
	if repeated := slices.Collect(maps.Values(ids)); len(ids) != 3 || slices.Max(repeated) != 2 {
		t.Errorf("got the messages %v, want three, one of which is answered twice:\n%s", ids, out)
	}
}

// TestProcessingLayerExample runs the program of docs/processing-layer.md, which answers a visitor.
func TestProcessingLayerExample(t *testing.T) {
	p := commonStandalone(t).place
	binary := filepath.Join(t.TempDir(), "processing-layer")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".")
	build.Dir = filepath.Dir(examplePath)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	layer := exec.CommandContext(t.Context(), binary)
	layer.Env = []string{"NATS_URL=" + p.NATSURL}
	stderr, err := layer.StderrPipe()
	check(t, err)
	check(t, layer.Start())
	t.Cleanup(func() {
		_ = layer.Process.Kill()
		_ = layer.Wait()
	})
	if _, err := stderr.Read(make([]byte, 1)); err != nil { // it says that it is there
		t.Fatal(err)
	}

	v := register(t, p, p.widgetAPI(t))
	s := connected(t, p.SocketURLs[0], v.token, "websocket")
	echoes := func(want string) {
		for {
			if d := s.next(t); d.NameOfSender == "Echo" {
				if got := d.member(t, "text"); got != want {
					t.Errorf("got the echo %q, want %q", got, want)
				}
				return
			}
		}
	}
	v.write(t, "are you mine?")
	echoes("are you mine?")
	upload := exec.CommandContext(t.Context(), "curl", "-sS", "--fail-with-body", p.WidgetBaseURL+"/message", "-H", "Authorization: Bearer "+v.token,
		"-F", "file=@"+examplePath)
	if out, err := upload.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	echoes("I got your file.")
	eventually(t, "the echo in the history", func() error {
		for _, r := range v.history(t) {
			if r.NameOfSender == "Echo" && r.IsFromSupport {
				return nil
			}
		}
		return fmt.Errorf("%s has none", http.MethodGet+" /message")
	})
}
