package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/parley-chat/parley/bench/internal/rig"
)

// visitorCount is the number of visitors, each with a chat.
const visitorCount = 100

func main() {
	var (
		bin   = flag.String("bin", "bin", "directory of the binaries built by `make build`")
		turns = flag.Int("turns", 5, "number of turns of each load")
		turn  = flag.Duration("turn", 4*time.Second, "duration of a turn")
		chats = flag.Int("chats", visitorCount, "number of chats that receive the company's messages in turn; each is looked up again every two seconds")
		lean  = flag.Bool("lean", false, "use a minimal client instead of Go's HTTP client")
		only  = flag.String("only", "send,widget,recorder,webhooks,start", "what to measure")
		role  = flag.String("role", "", "set by the benchmark for its own children")
		nats  = flag.String("nats", "", "with a role: the NATS URL")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch *role {
	case "echo":
		err = bareEcho()
	case "publish":
		err = barePublish(*nats, *turn, *chats)
	default:
		err = run(ctx, *bin, strings.Split(*only, ","), sendPlan{turns: *turns, turn: *turn, chats: min(max(*chats, 1), visitorCount), lean: *lean})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench is the state of a running benchmark.
type bench struct {
	dir       string
	engines   *rig.Process
	echo      *rig.Process
	clientAPI *rig.Process
	widgetAPI *rig.Process
	natsURL   string
	echoAddr  string
	client    string // host:port
	widget    string
	demo      demo
}

// demo is the address and credentials of the seeded demo company.
type demo struct {
	AccessToken string `json:"accessToken"`
	CompanyID   string `json:"companyId"`
	AppID       string `json:"appId"`
}

func run(ctx context.Context, bin string, only []string, plan sendPlan) (err error) {
	r, err := startBench(ctx, bin)
	defer r.stop()
	if err != nil {
		return err
	}
	for _, part := range []struct {
		name    string
		measure func() (string, error)
	}{
		{"send", func() (string, error) { f, err := measureSend(ctx, r, plan); return f.table(plan), err }},
		{"widget", func() (string, error) { rows, err := measureWidget(ctx, r, plan); return widgetTable(rows), err }},
		{"recorder", func() (string, error) { f, err := measureRecorder(ctx, r, bin); return f.line(), err }},
		{"webhooks", func() (string, error) { f, err := measureWebhooks(ctx, r, bin); return f.table(), err }},
		{"start", func() (string, error) { f, err := measureStart(ctx, bin); return f.line(), err }},
	} {
		if !slices.Contains(only, part.name) {
			continue
		}
		table, err := part.measure()
		if err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		fmt.Print(table)
	}
	return nil
}

func startBench(ctx context.Context, bin string) (*bench, error) {
	r := &bench{}
	var err error
	if r.dir, err = os.MkdirTemp("", "parley-bench-"); err != nil {
		return r, err
	}
	if err := r.startEngines(bin); err != nil {
		return r, err
	}
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	if r.echo, err = rig.Start(nil, r.log("echo"), self, "-role=echo"); err != nil {
		return r, err
	}
	vars, err := r.echo.ReadVariables("BARE_ADDR")
	if err != nil {
		return r, err
	}
	r.echoAddr = vars["BARE_ADDR"]
	if r.clientAPI, r.client, err = r.startService(ctx, bin, "client-api"); err != nil {
		return r, err
	}
	r.widgetAPI, r.widget, err = r.startService(ctx, bin, "widget-api")
	return r, err
}

func (r *bench) log(name string) string { return filepath.Join(r.dir, name+".log") }

// startEngines starts the embedded servers and adds their settings to the environment of the services.
func (r *bench) startEngines(bin string) (err error) {
	data := filepath.Join(r.dir, "data")
	for name, value := range map[string]string{
		"STREAM_MAX_BYTES": "17179869184", // hundreds of megabytes per minute; a full stream would reject events
		"LIMITS":           "none",        // all requests use one token and one address
	} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	env := []string{"PARLEY_DATA_DIR=" + data, "PARLEY_NATS_ADDR=127.0.0.1:0"}
	if r.engines, err = rig.Start(env, r.log("engines"), filepath.Join(bin, "standalone"), "engines"); err != nil {
		return err
	}
	vars, err := r.engines.ReadVariables("NATS_URL", "SQLITE_PATH", "SECRETS_KEY_FILE", "VISITOR_KEYS_FILE")
	if err != nil {
		return err
	}
	for name, value := range vars {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	r.natsURL = vars["NATS_URL"]
	file, err := os.ReadFile(filepath.Join(data, "demo.json"))
	if err != nil {
		return err
	}
	return json.Unmarshal(file, &r.demo)
}

// startService starts a service on a free port and returns when it is ready.
func (r *bench) startService(ctx context.Context, bin, name string) (*rig.Process, string, error) {
	addr, ops := rig.FreeAddr(), rig.FreeAddr()
	p, err := rig.Start([]string{"HTTP_ADDR=" + addr, "OPS_ADDR=" + ops}, r.log(name), filepath.Join(bin, name))
	if err != nil {
		return nil, "", err
	}
	p.Drain()
	return p, addr, rig.AwaitReady(ctx, "http://"+ops+"/readyz")
}

func (r *bench) stop() {
	for _, p := range []*rig.Process{r.widgetAPI, r.clientAPI, r.echo, r.engines} {
		if p != nil {
			p.Stop()
		}
	}
	_ = os.RemoveAll(r.dir)
}
