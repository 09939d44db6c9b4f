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
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/httpapi"
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
	errorsPath          = "../../../docs/errors.md"
	securityPath        = "../../../docs/security.md"
)

func readFile(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	check(t, err)
	return string(data)
}

// TestDocumentsAreCurrent compares docs/configuration.md, docs/errors.md, the profiles in docs/security.md and the program in
// docs/processing-layer.md with the code.
func TestDocumentsAreCurrent(t *testing.T) {
	for _, part := range []struct{ path, start, end, content string }{
		{configurationPath, "<!-- configuration -->\n", "\n## One process\n", configurationTables(t)},
		{errorsPath, "<!-- errors -->\n", "<!-- end -->\n", errorTable(t)},
		{securityPath, "<!-- limits -->\n", "<!-- end -->\n", limitsTable()},
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

// TestReadmeIsShort: details belong in docs.
func TestReadmeIsShort(t *testing.T) {
	if got := strings.Count(readFile(t, readmePath), "\n"); got > 200 {
		t.Errorf("README.md has %d lines, want 200 at most", got)
	}
}

// between replaces the text between two marks.
func between(t testing.TB, text, start, end, content string) string {
	t.Helper()
	before, rest, ok := strings.Cut(text, start)
	_, after, found := strings.Cut(rest, end)
	if !ok || !found {
		t.Fatalf("got no part between %q and %q", start, end)
	}
	return before + start + content + end + after
}

// errorTable lists the public errors that an API document names, with their status and the APIs. Each code of
// a document must be in the catalogue.
func errorTable(t *testing.T) string {
	t.Helper()
	defined := map[string]bool{}
	apis := map[string][]string{}
	for _, d := range apperr.Definitions() {
		defined[d.Reason] = true
	}
	for _, api := range []struct{ service, name string }{{"client-api", "Client"}, {"widget-api", "Widget"}, {"panel", "panel"}} {
		document := readFile(t, "../../"+api.service+"/openapi.json")
		codes := map[string]bool{}
		for _, m := range regexp.MustCompile(`"code": *"([A-Z_]+)"`).FindAllStringSubmatch(document, -1) {
			codes[m[1]] = true
			if !defined[m[1]] {
				t.Errorf("%s/openapi.json: got code %s, want one of pkg/apperr/catalogue.go", api.service, m[1])
			}
		}
		for code := range codes {
			apis[code] = append(apis[code], api.name)
		}
	}
	rows := map[string]bool{}
	for _, d := range apperr.Definitions() {
		if by := apis[d.Reason]; by != nil {
			rows[fmt.Sprintf("| `%s` | %d | %s | %s |\n", d.Reason, httpapi.StatusOf(d.New()), d.Message, strings.Join(by, ", "))] = true
		}
	}
	return "| code | status | message | API |\n|---|---|---|---|\n" + strings.Join(slices.Sorted(maps.Keys(rows)), "")
}

// limitsTable lists the bounds that LIMITS sets, with their value in each profile.
func limitsTable() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| bound | %s |\n|---|---|---|---|---|\n", strings.Join(config.Profiles(), " | "))
	listed := map[string]bool{}
	for _, service := range []any{clientapi.Config{}, widgetapi.Config{}, socketgateway.Config{}, processor.Config{}, panel.Config{}} {
		for _, bound := range config.Bounds(service) {
			if listed[bound.Doc] {
				continue
			}
			listed[bound.Doc] = true
			values := slices.Clone(bound.Values)
			for i, value := range values {
				if value == "0" {
					values[i] = "no limit"
				}
			}
			fmt.Fprintf(&b, "| %s | %s |\n", bound.Doc, strings.Join(values, " | "))
		}
	}
	return b.String()
}

// configurationTables lists every variable of every service once, with the services that read it, in groups.
func configurationTables(t *testing.T) string {
	t.Helper()
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
	groups := config.Groups()
	tables := make([]strings.Builder, len(groups))
	for _, r := range rows {
		group := config.GroupOf(r.Name)
		if group < 0 {
			t.Fatalf("pkg/config/groups.go: got no group for %s", r.Name)
		}
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
		fmt.Fprintf(&tables[group], "| `%s` | %s | %s | %s |\n", r.Name, value, r.Doc, by)
	}
	var b strings.Builder
	for i, g := range groups {
		for _, name := range g.Names {
			prefix, all := strings.CutSuffix(name, "*")
			if !slices.ContainsFunc(rows, func(r *row) bool { return r.Name == name || all && strings.HasPrefix(r.Name, prefix) }) {
				t.Errorf("pkg/config/groups.go: got no variable %s", name)
			}
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| variable | default | what | read by |\n|---|---|---|---|\n%s", g.Title, g.Who, tables[i].String())
	}
	return b.String()
}

// TestReadmeCurl runs the README's curl commands unchanged, with bash, against a running Parley.
func TestReadmeCurl(t *testing.T) {
	p := commonStandalone(t).place
	dir := t.TempDir()
	check(t, os.Mkdir(filepath.Join(dir, ".parley"), 0o700))
	demo, err := json.Marshal(p.Demo)
	check(t, err)
	check(t, os.WriteFile(filepath.Join(dir, ".parley", "demo.json"), demo, 0o600))

	check(t, os.Symlink(filepath.Join(root(), "clients"), filepath.Join(dir, "clients"))) // the last lines run the clients

	_, lines, _ := strings.Cut(readFile(t, readmePath), "<!-- curl: ")
	_, lines, _ = strings.Cut(lines, "```bash\n")
	first, rest, _ := strings.Cut(lines, "```\n")
	_, rest, _ = strings.Cut(rest, "```bash\n")
	second, _, found := strings.Cut(rest, "```\n")
	if !found {
		t.Fatal("README.md does not hold the two blocks of curl lines")
	}
	script := "set -eu -o pipefail\n" + strings.ReplaceAll(first+second, "curl -s ", "curl -sS --fail-with-body -w '\\n' ")
	run := exec.CommandContext(t.Context(), "bash", "-c", script)
	run.Dir = dir
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, wanted := range []string{`"botName"`, `"widgetConfigs"`, `"text":"menu"`, `"isFromSupport":true`, `"keys"`, `"windowExpiresAt"`, `"dryRun":true`, `"acceptedAt"`, `"nameOfSender":"Sara"`, `"templateId"`, "Order 4711", "Go client: message", "TypeScript client: message"} {
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

// TestReadmeOperator runs the README's operator commands unchanged with a running Parley, whose demo
// application must not change.
func TestReadmeOperator(t *testing.T) {
	p := commonStandalone(t).place
	s := openStore(t, p)
	before, err := s.Application(t.Context(), p.AppID)
	check(t, err)
	dir := t.TempDir()
	check(t, os.Mkdir(filepath.Join(dir, ".parley"), 0o700))
	demo, err := json.Marshal(p.Demo)
	check(t, err)
	check(t, os.WriteFile(filepath.Join(dir, ".parley", "demo.json"), demo, 0o600))
	check(t, os.Symlink(p.Secrets, filepath.Join(dir, ".parley", "secrets-key.json")))
	check(t, os.Symlink(filepath.Dir(program(t, "parleyctl")), filepath.Join(dir, "bin")))
	check(t, os.Symlink(filepath.Join(root(), "docs"), filepath.Join(dir, "docs")))

	_, block, _ := strings.Cut(readFile(t, readmePath), "<!-- operator: ")
	_, block, _ = strings.Cut(block, "```bash\n")
	block, _, _ = strings.Cut(block, "```\n")
	build, block, found := strings.Cut(block, "\n")
	if !found || build != "make parleyctl" {
		t.Fatalf("got %q, want the block to begin with make parleyctl", build)
	}
	run := exec.CommandContext(t.Context(), "bash", "-c", "set -eu -o pipefail\n"+block+"\necho the application is $acmeApp of $acme")
	run.Dir = dir
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	made := regexp.MustCompile(`the application is (\S+) of (\S+)`).FindStringSubmatch(string(out))
	if made == nil {
		t.Fatalf("got no application:\n%s", out)
	}
	app, err := s.Application(t.Context(), made[1])
	check(t, err)
	rules, err := app.Rules()
	if err != nil || app.CompanyID != made[2] || len(app.AllowedOrigins) != 1 || len(rules.GreetingMessages) != 2 || len(rules.RequiredFields) != 2 {
		t.Errorf("got %+v with %+v, %v, want the application of docs/examples/widget.json with its origin", app, rules, err)
	}
	if after, err := s.Application(t.Context(), p.AppID); err != nil || !reflect.DeepEqual(after, before) {
		t.Errorf("the demo's application: got %+v, %v, want %+v", after, err, before)
	}
	for _, key := range regexp.MustCompile(`(?m)^  "(\w+)":`).FindAllStringSubmatch(string(app.WidgetConfigs), -1) {
		if !strings.Contains(readFile(t, "../../../docs/widget.md"), "`"+key[1]+"`") {
			t.Errorf("docs/widget.md does not describe %s of docs/examples/widget.json", key[1])
		}
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
	if _, err := stderr.Read(make([]byte, 1)); err != nil { // it logs when it is ready
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
