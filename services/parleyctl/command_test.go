package parleyctl_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/services/parleyctl"
)

func TestDemoFileHasTheAddresses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seed()
	given := w.env
	w.env = map[string]string{"PARLEY_DATA_DIR": t.TempDir()}
	w.ctl("companies", "list").fails(parleyctl.ExitUsage, "NATS_URL, MONGODB_URI and SQLITE_PATH are not set, and there is no ")
	demo := filepath.Join(w.env["PARLEY_DATA_DIR"], "demo.json")
	w.must(os.WriteFile(demo, []byte(`{"natsUrl":"`+given["NATS_URL"]+`","sqlitePath":"`+given["SQLITE_PATH"]+`","accessToken":"x"}`), 0o600))
	w.must(os.Link(given["SECRETS_KEY_FILE"], filepath.Join(w.env["PARLEY_DATA_DIR"], "secrets-key.json")))
	if out := w.ctl("companies", "list").done(); !strings.Contains(out, "Acme") {
		t.Errorf("got %s, want the demo's company", out)
	}
	w.ctl("streams", "list").done()

	// An engine of another installation must not be combined with one of the demo.
	w.env["NATS_URL"] = "nats://127.0.0.1:1"
	w.ctl("companies", "list").fails(parleyctl.ExitUsage, "MONGODB_URI or SQLITE_PATH is not set")
	delete(w.env, "NATS_URL")
	w.ctl("watch", "--no-follow", "--sqlite-path", given["SQLITE_PATH"]).fails(parleyctl.ExitUsage, "NATS_URL is not set")
	w.env["SQLITE_PATH"], w.env["NATS_URL"] = filepath.Join(t.TempDir(), "none", "parley.db"), "nats://127.0.0.1:1"
	w.ctl("companies", "list", "--sqlite-path", given["SQLITE_PATH"]).done() // a flag overrides the environment

	w.must(os.WriteFile(demo, []byte(`{"natsUrl`), 0o600))
	w.env["SQLITE_PATH"], w.env["NATS_URL"] = "", ""
	w.ctl("companies", "list").fails(parleyctl.ExitUsage, "demo.json")
}

func TestUnreachableOrInvalid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	with := func(name, value string) *world {
		changed := *w
		changed.env = map[string]string{}
		for n, v := range w.env {
			changed.env[n] = v
		}
		changed.env[name] = value
		return &changed
	}
	with("NATS_URL", "nats://ops:hunter2@127.0.0.1:1").ctl("watch", "--no-follow").fails(parleyctl.ExitUnavailable, "NATS does not answer at nats://ops:xxxxx@127.0.0.1:1")
	remote := with("MONGODB_URI", "mongodb://ops:hunter2@127.0.0.1:1/?tls=false")
	delete(remote.env, "SQLITE_PATH")
	remote.ctl("companies", "list").
		fails(parleyctl.ExitUnavailable, "the store does not answer at mongodb://ops:xxxxx@127.0.0.1:1")
	for name, value := range map[string]string{
		"NATS_URL": "http://hunter2", "MONGODB_URI": "postgres://hunter2", "CHAT_IDLE_CLOSE": "1h", "NATS_CREDS": "/nowhere/hunter2x", "NATS_CERT": "/alone",
	} {
		r := with(name, value).ctl("chats", "close", companyID, "--yes")
		if r.code != parleyctl.ExitUsage || name != "NATS_CREDS" && strings.Contains(r.errors, "hunter2") {
			t.Errorf("%s=%s: got code %d, %q", name, value, r.code, r.errors)
		}
	}
	w.ctl("compnies").fails(parleyctl.ExitUsage, "did you mean companies?")
	w.ctl("companies", "destroy").fails(parleyctl.ExitUsage, `there is no command "destroy"`)
	w.ctl("companies", "show").fails(parleyctl.ExitUsage, "want COMPANY")
	w.ctl("companies", "list", "--colour").fails(parleyctl.ExitUsage, "unknown flag: --colour; see parleyctl companies list --help")
	w.ctl("companies", "list", "-o", "xml").fails(parleyctl.ExitUsage, "--output must be table or json")
}

func TestHelpVersionAndCompletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seed()
	if out := w.ctl("--version").done(); !strings.HasPrefix(out, "parleyctl ") {
		t.Errorf("got %q", out)
	}
	if out := w.ctl().done(); !strings.Contains(out, "Exit codes") {
		t.Errorf("got %q, want help", out)
	}
	if out := w.ctl("dead", "replay", "--help").done(); !strings.Contains(out, "Examples:") || !strings.Contains(out, "--dry-run") {
		t.Errorf("got %q, want help with examples", out)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if out := w.ctl("completion", shell).done(); !strings.Contains(out, "parleyctl") {
			t.Errorf("%s: got %q", shell, out)
		}
	}
	for args, want := range map[string]string{
		"companies show ":                   companyID + "\tAcme",
		"companies show c":                  companyID + "\tAcme",
		"tokens list --company ":            companyID + "\tAcme",
		"applications show ":                appID + "\tShop",
		"applications identity set x ":      "required",
		"templates approve ":                templateID + "\thello",
		"streams consumers ":                "INBOUND",
		"watch --kind ":                     "visitor-message",
		"chats list --status ":              "pending",
		"reply --type ":                     "CAROUSEL",
		"applications origins " + appID[:3]: appID + "\tShop",
	} {
		if out := w.ctl(append([]string{"__complete"}, strings.Split(args, " ")...)...).done(); !strings.Contains(out, want+"\n") {
			t.Errorf("%q: got %q, want %q", args, out, want)
		}
	}
	if out := w.ctl("__complete", "companies", "show", "x").done(); strings.Contains(out, companyID) {
		t.Errorf("got %q, want nothing that does not begin so", out)
	}
}

// TestGuideCommands parses every command of docs/parleyctl.md: its words, its flags, the number of its arguments.
func TestGuideCommands(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/parleyctl.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(guide), "```bash\n")
	block, _, _ = strings.Cut(block, "```")
	w, understood := &world{t: t, now: func() time.Time { return noon }}, 0
	for line := range strings.Lines(block) {
		command, _, _ := strings.Cut(strings.TrimSpace(line), " #")
		if _, inner, assigned := strings.Cut(command, "=$("); assigned {
			command, _, _ = strings.Cut(inner, " | ")
		}
		command, ours := strings.CutPrefix(command, "parleyctl ")
		if !ours {
			continue
		}
		understood++
		// the guide's paths are relative to the repository's root
		command = strings.ReplaceAll(command, " docs/", " ../../docs/")
		w.ctl(append(words(command), "--help")...).done()
		// Without settings it must get as far as reporting them.
		r := w.ctl(words(command)...)
		if r.code != parleyctl.ExitUsage || !strings.Contains(r.errors, "not set") && !strings.Contains(r.errors, "MONGODB_URI or SQLITE_PATH is required") {
			t.Errorf("%s: got code %d, %q, want only the settings missing", line, r.code, r.errors)
		}
	}
	if understood < 20 {
		t.Errorf("got %d commands, want those of docs/parleyctl.md", understood)
	}
}

// TestDocumentsCommands parses every command in the documents, including its flags.
func TestDocumentsCommands(t *testing.T) {
	t.Parallel()
	command := regexp.MustCompile("\\bparleyctl ([a-z][^`\n|)#]*)")
	for name, atLeast := range map[string]int{"operations.md": 8, "runbook.md": 30, "security.md": 1, "api.md": 1, "identity.md": 2} {
		document, err := os.ReadFile("../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		w := &world{t: t, now: func() time.Time { return noon }}
		found := command.FindAllStringSubmatch(string(document), -1)
		for _, match := range found {
			if r := w.ctl(append(words(match[1]), "--help")...); r.code != 0 {
				t.Errorf("%s: %s: got code %d, %q, want it to parse", name, match[0], r.code, r.errors)
			}
		}
		if len(found) < atLeast {
			t.Errorf("%s: got %d commands, want %d at least", name, len(found), atLeast)
		}
	}
}

// words splits a line as a shell does, with double quotes and variables, which stand for ids.
func words(line string) (found []string) {
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			found = append(found, part)
			continue
		}
		for _, word := range strings.Fields(part) {
			word, _, _ = strings.Cut(word, "$")
			if word == "" {
				word = companyID
			}
			found = append(found, word)
		}
	}
	return found
}
