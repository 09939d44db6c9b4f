package config_test

import (
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type service struct {
	HTTPAddr string `env:"HTTP_ADDR" envDefault:":8080" doc:"address of the API"`
	config.Ops
	config.NATS
	config.Streams
	config.Store
	config.Redis
	Recorder bool          `env:"RECORDER" envDefault:"true"`
	Idle     time.Duration `env:"IDLE_TIME" envDefault:"25s"`
	Ratio    float64       `env:"RATIO"`
	Logger   *slog.Logger  `env:"-"`
	Hook     func()
}

func (s service) Validate() []string {
	if s.Idle <= 0 {
		return []string{"IDLE_TIME must be positive"}
	}
	return nil
}

// setenv clears every variable of service, then sets vars.
func setenv(t *testing.T, vars map[string]string) {
	t.Helper()
	for _, v := range config.Reference(service{}) {
		t.Setenv(v.Name, "")
	}
	for name, value := range vars {
		t.Setenv(name, value)
	}
}

func required() map[string]string {
	return map[string]string{
		"NATS_URL":    "nats://a:4222,tls://b:4222",
		"MONGODB_URI": "mongodb://u:secret@db",
		"REDIS_URL":   "redis://:secret@cache:6379/0",
	}
}

func TestLoadTakesDefaults(t *testing.T) {
	setenv(t, required())
	got, err := config.Load[service]()
	if err != nil {
		t.Fatal(err)
	}
	want := service{
		HTTPAddr: ":8080",
		Ops:      config.Ops{OpsAddr: ":9090"},
		NATS: config.NATS{
			NATSURL: "nats://a:4222,tls://b:4222",
		},
		Streams: config.Streams{
			StreamReplicas: 1, StreamSync: "auto", StreamMaxAge: 168 * time.Hour, StreamMaxBytes: 1 << 30, FileStoreMaxBytes: 4 << 30,
			VisitorTokens: config.VisitorTokens{VisitorTokenTTL: 720 * time.Hour},
		},
		Store:    config.Store{MongoDBURI: "mongodb://u:secret@db", MongoDBDatabase: "parley"},
		Redis:    config.Redis{RedisURL: "redis://:secret@cache:6379/0"},
		Recorder: true,
		Idle:     25 * time.Second,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("Load: got %+v, want %+v", got, want)
	}
}

func TestLoadTakesValues(t *testing.T) {
	vars := required()
	vars["LOG_LEVEL"], vars["STREAM_REPLICAS"], vars["RECORDER"], vars["OPS_ADDR"] = "debug", "3", "false", "127.0.0.1:0"
	setenv(t, vars)
	got, err := config.Load[service]()
	if err != nil {
		t.Fatal(err)
	}
	if got.LogLevel != slog.LevelDebug || got.StreamReplicas != 3 || got.Recorder || got.OpsAddr != "127.0.0.1:0" {
		t.Errorf("Load: got %+v, want the values of the environment", got)
	}
}

func TestLoadReportsAllProblems(t *testing.T) {
	setenv(t, map[string]string{
		"LOG_LEVEL": "loud", "OPS_ADDR": "nine", "PPROF_ADDR": ":6060", "NATS_CERT": "service.pem", "STREAM_REPLICAS": "2", "STREAM_MAX_AGE": "a week", "STREAM_MAX_BYTES": "1GB",
		"MONGODB_URI": "postgres://u:secret@db", "MONGODB_DATABASE": "a.b", "RECORDER": "maybe", "IDLE_TIME": "-1s", "RATIO": "half",
	})
	_, err := config.Load[service]()
	if err == nil {
		t.Fatal("Load: got no error, want one")
	}
	line := err.Error()
	for _, want := range []string{
		"LOG_LEVEL must be DEBUG, INFO, WARN or ERROR",
		"OPS_ADDR must be host:port or :port",
		"PPROF_ADDR must be a loopback address such as 127.0.0.1:6060",
		"NATS_URL is required",
		"NATS_CERT and NATS_KEY belong together",
		"STREAM_REPLICAS must be 1 or 3",
		"STREAM_MAX_AGE must be a duration such as 30s or 24h",
		"STREAM_MAX_BYTES must be a whole number",
		"MONGODB_URI must start with mongodb:// or mongodb+srv://",
		"MONGODB_DATABASE must be a database name",
		"RECORDER must be true or false",
		"IDLE_TIME must be positive",
		"RATIO must be a number",
	} {
		if strings.Count(line, want) != 1 {
			t.Errorf("error: got %q, want %q in it once", line, want)
		}
	}
	for _, name := range []string{"STREAM_MAX_AGE", "STREAM_MAX_BYTES"} {
		if strings.Count(line, name) != 1 {
			t.Errorf("error: got %q, want %s in it once", line, name)
		}
	}
	if strings.Contains(line, "\n") || strings.Contains(line, "secret") {
		t.Errorf("error: got %q, want one line without values", line)
	}
}

func TestCheckOfAConfigWrittenByHand(t *testing.T) {
	t.Parallel()
	err := config.Check(&service{Idle: 1}, "the Listener is required", "the Logger is required", "the Logger is required")
	const want = "configuration: the Listener is required; the Logger is required; NATS_URL is required; " +
		"STREAM_REPLICAS must be 1 or 3; STREAM_MAX_AGE must be at least 2m; STREAM_MAX_BYTES must be at least 1; VISITOR_TOKEN_TTL must be 1s to 9600h; " +
		"MONGODB_URI or SQLITE_PATH is required"
	if err == nil || err.Error() != want {
		t.Errorf("Check: got %v, want %s", err, want)
	}
	if got, want := config.Missing(service{}), []string{"NATS_URL"}; !slices.Equal(got, want) {
		t.Errorf("Missing: got %v, want %v", got, want)
	}
}

func TestSetDefaultsKeepsSetValues(t *testing.T) {
	t.Parallel()
	s := service{HTTPAddr: ":1", NATS: config.NATS{NATSURL: "nats://a"}, Streams: config.Streams{StreamReplicas: 3}}
	if err := config.SetDefaults(&s); err != nil {
		t.Fatal(err)
	}
	if s.HTTPAddr != ":1" || s.StreamReplicas != 3 || s.NATSURL != "nats://a" {
		t.Errorf("SetDefaults: got %+v, want set values unchanged", s)
	}
	if s.OpsAddr != ":9090" || s.StreamMaxAge != 168*time.Hour || s.MongoDBDatabase != "parley" || !s.Recorder {
		t.Errorf("SetDefaults: got %+v, want defaults for the rest", s)
	}
	s.MongoDBURI, s.RedisURL = "mongodb+srv://db", "rediss://cache"
	if err := config.Check(s); err != nil {
		t.Errorf("Check: got %v, want nil", err)
	}
}

func TestBlocksValidateTheirValues(t *testing.T) {
	t.Parallel()
	nats := func(url string) config.NATS {
		return config.NATS{NATSURL: url}
	}
	for name, test := range map[string]struct {
		block interface{ Validate() []string }
		right bool
	}{
		"one nats URL":     {nats("nats://127.0.0.1:4222"), true},
		"two nats URLs":    {nats("nats://a, nats://b"), true},
		"http":             {nats("http://a"), false},
		"no scheme":        {nats("a:4222"), false},
		"one of two wrong": {nats("nats://a,"), false},
		"redis":            {config.Redis{RedisURL: "redis://a:6379"}, true},
		"redis socket":     {config.Redis{RedisURL: "unix:///run/redis.sock"}, true},
		"redis no scheme":  {config.Redis{RedisURL: "a:6379"}, false},
		"never idle":       {config.Chats{}, true},
		"idle after a day": {config.Chats{ChatIdleClose: 24 * time.Hour}, true},
		"idle in a window": {config.Chats{ChatIdleClose: 24*time.Hour - 1}, false},
		"idle before it":   {config.Chats{ChatIdleClose: -time.Hour}, false},
	} {
		if got := test.block.Validate(); (len(got) == 0) != test.right {
			t.Errorf("%s: got %v, want right: %v", name, got, test.right)
		}
	}
}

type rules struct {
	Addr     string        `env:"ADDR" valid:"addr"`
	Loopback string        `env:"LOOPBACK" valid:"loopback"`
	Page     string        `env:"PAGE" valid:"url"`
	Base     string        `env:"BASE" valid:"baseurl"`
	Kind     string        `env:"KIND" valid:"oneof nats s3"`
	Number   int           `env:"NUMBER" valid:"min 0"`
	Age      time.Duration `env:"AGE" valid:"range 0s 2m"`
}

func TestRules(t *testing.T) {
	t.Parallel()
	for _, right := range []rules{
		{},
		{Addr: ":9090", Loopback: "127.0.0.1:6060", Page: "https://a/b?c", Base: "http://a/b", Kind: "s3", Number: 1, Age: time.Minute},
	} {
		if err := config.Check(right); err != nil {
			t.Errorf("%+v: got %v, want nil", right, err)
		}
	}
	for want, wrong := range map[string]rules{
		"ADDR must be host:port or :port":                            {Addr: "localhost"},
		"ADDR must be host:port or :port ":                           {Addr: ":99999"},
		"ADDR must be host:port or :port  ":                          {Addr: "localhost:"},
		"LOOPBACK must be a loopback address such as 127.0.0.1:6060": {Loopback: ":6060"},
		"PAGE must be an http or https URL":                          {Page: "ftp://a"},
		"BASE must be an http or https URL without a query":          {Base: "http://a?b"},
		"KIND must be nats or s3":                                    {Kind: "disk"},
		"NUMBER must not be negative":                                {Number: -1},
		"AGE must be 0s to 2m":                                       {Age: time.Hour},
	} {
		want = "configuration: " + strings.TrimSpace(want)
		if err := config.Check(wrong); err == nil || err.Error() != want {
			t.Errorf("%+v: got %v, want %s", wrong, err, want)
		}
	}
}

func TestReferenceListsVariablesInOrder(t *testing.T) {
	t.Parallel()
	got := config.Reference(&service{})
	var names []string
	for _, v := range got {
		names = append(names, v.Name)
	}
	want := []string{
		"HTTP_ADDR", "OPS_ADDR", "PPROF_ADDR", "LOG_LEVEL", "NATS_URL", "NATS_CREDS", "NATS_CA", "NATS_CERT", "NATS_KEY", "STREAM_REPLICAS", "STREAM_SYNC", "STREAM_MAX_AGE", "STREAM_MAX_BYTES", "STREAM_PARTITIONS", "FILE_STORE_MAX_BYTES", "VISITOR_TOKEN_TTL",
		"MONGODB_URI", "MONGODB_DATABASE", "SQLITE_PATH", "REDIS_URL", "RECORDER", "IDLE_TIME", "RATIO",
	}
	if !slices.Equal(names, want) {
		t.Errorf("names: got %v, want %v", names, want)
	}
	if v := got[0]; v != (config.Variable{Name: "HTTP_ADDR", Default: ":8080", Doc: "address of the API"}) {
		t.Errorf("HTTP_ADDR: got %+v, want its default and doc", v)
	}
	if v := got[4]; !v.Required || v.Doc == "" {
		t.Errorf("NATS_URL: got %+v, want required and a doc", v)
	}
}
