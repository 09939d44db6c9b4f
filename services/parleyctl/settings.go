package parleyctl

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/secret"
)

const (
	defaultDataDir = ".parley"
	demoFile       = "demo.json"
	demoKeysFile   = "visitor-keys.json"
	demoSecrets    = "secrets-key.json"
)

// settings are the addresses of Parley.
type settings struct {
	config.NATS
	config.Store
	config.Chats

	keysFile    string
	secretsFile string
}

// demo has the used members of demo.json.
type demo struct {
	NATSURL    string `json:"natsUrl"`
	SQLitePath string `json:"sqlitePath"`
}

// settings reads the flags, then the environment. demo.json is used only if neither names NATS or a store:
// combining an engine of production with one of the demo would be dangerous.
func (a *app) settings() (settings, error) {
	s := settings{
		NATS: config.NATS{
			NATSURL:   cmp.Or(a.flags.natsURL, a.Getenv("NATS_URL")),
			NATSCreds: cmp.Or(a.flags.natsCreds, a.Getenv("NATS_CREDS")),
			NATSCA:    a.Getenv("NATS_CA"),
			NATSCert:  a.Getenv("NATS_CERT"),
			NATSKey:   a.Getenv("NATS_KEY"),
		},
		Store: config.Store{
			MongoDBURI:      cmp.Or(a.flags.mongoURI, a.Getenv("MONGODB_URI")),
			MongoDBDatabase: cmp.Or(a.flags.mongoDB, a.Getenv("MONGODB_DATABASE")),
			SQLitePath:      cmp.Or(a.flags.sqlite, a.Getenv("SQLITE_PATH")),
		},
		keysFile: a.Getenv("VISITOR_KEYS_FILE"), secretsFile: cmp.Or(a.flags.secretsFile, a.Getenv(secret.Setting)),
	}
	if s.NATSURL == "" && s.MongoDBURI == "" && s.SQLitePath == "" {
		if err := s.takeDemo(a.dataDir()); err != nil {
			return s, err
		}
	}
	return s, s.complete(a.Getenv("CHAT_IDLE_CLOSE"))
}

func (a *app) dataDir() string { return cmp.Or(a.Getenv("PARLEY_DATA_DIR"), defaultDataDir) }

func (s *settings) takeDemo(dir string) error {
	path := filepath.Join(dir, demoFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return usage(
			"NATS_URL, MONGODB_URI and SQLITE_PATH are not set, and there is no " + path +
				" of a running demo (make run)",
		)
	}
	var d demo
	if err == nil {
		err = json.Unmarshal(data, &d)
	}
	if err != nil {
		return usage(fmt.Sprintf("reading %s: %v", path, err))
	}
	s.NATSURL, s.SQLitePath = d.NATSURL, d.SQLitePath
	s.keysFile = cmp.Or(s.keysFile, filepath.Join(dir, demoKeysFile))
	s.secretsFile = cmp.Or(s.secretsFile, filepath.Join(dir, demoSecrets))
	return nil
}

// complete sets defaults and validates the settings. Settings that a command does not need may be missing.
func (s *settings) complete(idleClose string) error {
	if err := config.SetDefaults(s); err != nil {
		return usage(err.Error())
	}
	if idleClose != "" {
		d, err := time.ParseDuration(idleClose)
		if err != nil {
			return usage("configuration: CHAT_IDLE_CLOSE must be a duration such as 30s or 24h")
		}
		s.ChatIdleClose = d
	}
	if s.MongoDBURI != "" || s.SQLitePath != "" {
		for _, problem := range s.Store.Validate() {
			return usage("configuration: " + problem)
		}
	}
	for _, block := range []interface{ Validate() []string }{s.NATS, s.Chats} {
		for _, problem := range block.Validate() {
			return usage("configuration: " + problem)
		}
	}
	return nil
}
