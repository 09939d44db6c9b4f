package guide_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-chat/parley/services/processor"
	"github.com/parley-chat/parley/services/standalone/internal/guide"
	"github.com/parley-chat/parley/services/standalone/internal/seed"
)

func TestTokenCommandReadsTheToken(t *testing.T) {
	t.Parallel()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatalf("the printed commands need a shell: %v", err)
	}
	for _, folder := range []string{"plain", "with space", "it's $HOME"} {
		path := filepath.Join(t.TempDir(), folder, "demo.json")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		content := "{\n  \"natsUrl\": \"nats://127.0.0.1:4222\",\n  \"accessToken\": \"pat_a-b_c\",\n  \"companyId\": \"x\"\n}\n"
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), sh, "-c", guide.TokenCommand(path)+"\nprintf %s \"$TOKEN\"").CombinedOutput()
		if err != nil || string(out) != "pat_a-b_c" {
			t.Errorf("in %q: got %q, %v, want the token", folder, out, err)
		}
	}
}

func TestHowToNeverShowsTheSecret(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	d := seed.Demo{WidgetBaseURL: "http://127.0.0.1:8082", AccessToken: "pat_secret", AppID: "the-app"}
	if err := guide.HowTo(&out, d, guide.Bot{Name: "webhook", Webhook: "https://ada:secret@bot.example/hook?key=secret"}, ".parley/demo.json", "http://127.0.0.1:8083", "http://127.0.0.1:8085", "http://127.0.0.1:8082/demo/phone"); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "secret") {
		t.Error("the instructions contain a secret")
	}
	for _, want := range []string{"http://127.0.0.1:8082/demo", "the-app", "chat.>", "http://127.0.0.1:8083/readyz", "http://127.0.0.1:8085/", ".parley/demo.json",
		"your webhook, https://bot.example/hook (BOT=webhook)", fmt.Sprint("or kill ", os.Getpid())} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the instructions do not contain %s:\n%s", want, out.String())
		}
	}
}

// Every value of BOT has a line of its own: the demo bot is named only where it answers.
func TestTheBannerNamesTheBot(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		bot  guide.Bot
		want string
	}{
		{guide.Bot{Name: processor.BotDemo}, "the demo bot (BOT=demo; BOT=webhook calls your own bot, BOT=none uses no bot)"},
		{guide.Bot{Name: processor.BotWebhook, Webhook: "https://bot.example/hook"}, "your webhook, https://bot.example/hook (BOT=webhook)"},
		{guide.Bot{Name: processor.BotLLM, Model: "llama3.2", ModelURL: "http://ada:secret@127.0.0.1:11434/v1"},
			"the language model llama3.2 at http://127.0.0.1:11434/v1 (BOT=llm)"},
		{guide.Bot{Name: processor.BotNone}, "agents in the panel: every chat waits for them (BOT=none)"},
		{guide.Bot{Name: processor.BotExternal}, "your own processing layer (BOT=external)"},
	} {
		if got := test.bot.String(); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

func TestEnginesPrintsAnEnvironmentFile(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := guide.Engines(&out, []guide.Setting{{Name: "NATS_URL", Value: "nats://127.0.0.1:4222"}, {Name: "FILE", Value: "/a b/c"}})
	if want := "NATS_URL=nats://127.0.0.1:4222\nFILE='/a b/c'\n"; err != nil || out.String() != want {
		t.Errorf("got %q, %v, want %q", out.String(), err, want)
	}
}
