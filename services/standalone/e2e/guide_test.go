package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/testkit/needs"
)

// The commands that standalone prints work as pasted.
func TestHowToWorksAsPrinted(t *testing.T) {
	sh := needs.Program(t, "sh")
	needs.Program(t, "curl")
	s := commonStandalone(t)
	c := openChat(t, openStore(t, s.place), s.place, time.Now())
	_, commands, found := strings.Cut(strings.Join(s.howTo, "\n"), "Act as the company")
	if !found {
		t.Fatalf("the instructions lack the commands of the company:\n%s", strings.Join(s.howTo, "\n"))
	}
	var script strings.Builder
	for line := range strings.Lines(commands) {
		if strings.HasPrefix(line, "  ") {
			script.WriteString(strings.TrimPrefix(line, "  "))
		}
	}
	cmd := exec.CommandContext(t.Context(), sh, "-eu", "-c", script.String())
	cmd.Env = append(cmd.Environ(), "CHAT_ID="+c.ID)
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "Message sent successfully") != 2 || !strings.Contains(string(out), `"text":"menu"`) {
		t.Errorf("got %v and\n%s\nof\n%s", err, out, script.String())
	}
	if strings.Contains(strings.Join(s.howTo, "\n"), s.AccessToken) {
		t.Error("the instructions contain the access token")
	}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	answer, err := http.Get(s.WidgetBaseURL + "/demo/phone/messages") // answers when it arrives
	check(t, err)
	defer answer.Body.Close()
	if body, err := io.ReadAll(answer.Body); err != nil || !strings.Contains(string(body), "491701234567") {
		t.Errorf("the phone of the demo: got %s and %v, want the message", body, err)
	}
}

func TestOperations(t *testing.T) {
	s := commonStandalone(t)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	read := func(path string) string {
		t.Helper()
		answer, err := http.Get(s.OpsURL + path)
		check(t, err)
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Errorf("%s: got %s, %v, want 200", path, answer.Status, err)
		}
		return string(body)
	}
	read("/healthz")
	ready := read("/readyz?verbose")
	for _, engine := range []string{"nats", "store"} {
		if !strings.Contains(ready, `"`+engine+`"`) {
			t.Errorf("readyz: got %s, want %s in it", ready, engine)
		}
	}
	register(t, s.place, s.widgetAPI(t)).write(t, "count me")
	s.clientAPI(t)
	metrics := read("/metrics")
	for _, service := range []string{"client-api", "widget-api", "socket-gateway", "processor"} {
		if !strings.Contains(metrics, `service="`+service+`"`) {
			t.Errorf("metrics: got none of %s", service)
		}
	}
}

// A revoked access token stops working within a second or two, also if the announcement was lost.
func TestRevokedTokenStopsWorking(t *testing.T) {
	p := commonStandalone(t).place
	s, client := openStore(t, p), p.clientAPI(t)
	p.AccessToken = putToken(t, s, p.CompanyID, time.Time{})
	checkPush(t, p, client)
	hash, _ := credential.HashAccessToken(p.AccessToken)
	check(t, s.ChangeAccessToken(t.Context(), hash, store.TokenChange{RevokedAt: time.Now()}))
	revoked := time.Now()
	eventually(t, "the revocation", func() error {
		got := client.call(t, http.MethodPost, "/push-message", "{}", accessToken(p.AccessToken))
		if got.Status != http.StatusUnauthorized {
			return fmt.Errorf("got %d, want 401", got.Status)
		}
		return nil
	})
	if took := time.Since(revoked); took > 3*time.Second {
		t.Errorf("the token worked for %v after its revocation", took)
	}
}

// `make run` forwards SIGTERM: the process that it has started ends too, and unlocks the data folder.
func TestMakeRunHandsSIGTERMOn(t *testing.T) {
	make := needs.Program(t, "make")
	program(t, "standalone") // and the assets
	dir := t.TempDir()
	run := func() *child {
		c, err := spawn("make run", []string{
			"PARLEY_CLIENT_ADDR=127.0.0.1:0", "PARLEY_WIDGET_ADDR=127.0.0.1:0", "PARLEY_OPS_ADDR=127.0.0.1:0", "PARLEY_NATS_ADDR=127.0.0.1:0",
			"PARLEY_SITE_ADDR=127.0.0.1:0", "PARLEY_PANEL_ADDR=127.0.0.1:0", "PARLEY_DATA_DIR=" + dir, "BOT=none",
		}, make, "--silent", "-C", root(), "run")
		check(t, err)
		return c
	}
	first := run()
	printed, err := first.awaitFor("Ctrl-C", 10*limit) // it is built first
	if err != nil {
		t.Fatal(err)
	}
	pid := regexp.MustCompile(`kill (\d+)`).FindStringSubmatch(strings.Join(printed, "\n"))
	if pid == nil || !strings.Contains(strings.Join(printed, "\n"), "BOT=none") {
		t.Fatalf("got %q, want the process and the bot", printed)
	}
	second := run()
	if _, err := second.awaitFor("Ctrl-C", 10*limit); err == nil || !strings.Contains(err.Error(), "process "+pid[1]) {
		t.Errorf("a second one: got %v, want the process %s named", err, pid[1])
	}
	if _, err := first.stop(); err != nil {
		t.Fatal(err)
	}
	s, err := startStandalone(program(t, "standalone"), dir) // the folder is unlocked
	check(t, err)
	s.stopAtEnd(t)
}
