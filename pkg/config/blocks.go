package config

import (
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
)

// minStreamAge is the duplicate window of JetStream; a stream's max age cannot be shorter.
const minStreamAge = 2 * time.Minute

// maxTokenTTL bounds how long a lost device stays signed in, and the size of REVOCATIONS.
const maxTokenTTL = 400 * 24 * time.Hour

// Ops configures the operations server and the log. A Config written by hand may leave OpsAddr empty: no server.
type Ops struct {
	OpsAddr   string     `env:"OPS_ADDR" envDefault:":9090" doc:"address of /healthz, /readyz and /metrics"`
	PprofAddr string     `env:"PPROF_ADDR" doc:"loopback address of /debug/pprof/, such as 127.0.0.1:6060; empty: no profiles"`
	LogLevel  slog.Level `env:"LOG_LEVEL" envDefault:"INFO" doc:"DEBUG, INFO, WARN or ERROR"`
}

// Validate returns the problems of the block; see [Check].
func (o Ops) Validate() []string {
	var problems []string
	if o.OpsAddr != "" && !ValidAddr(o.OpsAddr) {
		problems = append(problems, "OPS_ADDR must be host:port or :port")
	}
	if o.PprofAddr != "" && !LoopbackAddr(o.PprofAddr) {
		problems = append(problems, "PPROF_ADDR must be a loopback address such as 127.0.0.1:6060")
	}
	return problems
}

// NATS configures the connection to NATS.
type NATS struct {
	NATSURL   string `env:"NATS_URL,required" doc:"URLs of the NATS servers, separated by commas"`
	NATSCreds string `env:"NATS_CREDS" doc:"file with NATS credentials"`
	NATSCA    string `env:"NATS_CA" doc:"PEM file of CA certificates that verify the NATS server; empty: the system's"`
	NATSCert  string `env:"NATS_CERT" doc:"PEM file of the client certificate, if NATS requires one"`
	NATSKey   string `env:"NATS_KEY" doc:"PEM file of the private key of NATS_CERT"`
}

// Validate returns the problems of the block; see [Check].
func (n NATS) Validate() []string {
	var problems []string
	if n.NATSURL != "" && !validURLs(n.NATSURL, "nats", "tls", "ws", "wss") {
		problems = append(problems, "NATS_URL must be nats:// or tls:// URLs, separated by commas")
	}
	if (n.NATSCert == "") != (n.NATSKey == "") {
		problems = append(problems, "NATS_CERT and NATS_KEY belong together")
	}
	return problems
}

// Streams configures the sizes of the streams. They are used where the streams are created; the services only validate
// them.
type Streams struct {
	StreamReplicas    int           `env:"STREAM_REPLICAS" envDefault:"1" doc:"replicas of every stream: 1 or 3"`
	StreamMaxAge      time.Duration `env:"STREAM_MAX_AGE" envDefault:"168h" doc:"maximum age of an event in a stream"`
	StreamMaxBytes    int64         `env:"STREAM_MAX_BYTES" envDefault:"1073741824" doc:"maximum size of each event stream in bytes; a full stream rejects events (503)"`
	StreamPartitions  int           `env:"STREAM_PARTITIONS" doc:"partitions of a new stream, 1 to 1024: the maximum number of replicas that share its work; an existing stream keeps its number; 0: 32, or 4 in standalone"`
	FileStoreMaxBytes int64         `env:"FILE_STORE_MAX_BYTES" envDefault:"4294967296" doc:"maximum size of the object store FILES in bytes; a full store rejects files (503); 0: no object store (FILE_STORE=s3)"`
	VisitorTokens
}

// Validate returns the problems of the block; see [Check].
func (s Streams) Validate() []string {
	var problems []string
	if s.StreamReplicas != 1 && s.StreamReplicas != 3 {
		problems = append(problems, "STREAM_REPLICAS must be 1 or 3")
	}
	if s.StreamMaxAge < minStreamAge {
		problems = append(problems, "STREAM_MAX_AGE must be at least "+minStreamAge.String())
	}
	if s.StreamMaxBytes <= 0 {
		problems = append(problems, "STREAM_MAX_BYTES must be positive")
	}
	if s.StreamPartitions < 0 || s.StreamPartitions > 1024 {
		problems = append(problems, "STREAM_PARTITIONS must be 0 to 1024")
	}
	if s.FileStoreMaxBytes < 0 {
		problems = append(problems, "FILE_STORE_MAX_BYTES must be a non-negative integer")
	}
	return problems
}

// VisitorTokens configures the tokens of visitors. The Widget API issues them, and REVOCATIONS keeps
// revocations for their lifetime.
type VisitorTokens struct {
	VisitorTokenTTL time.Duration `env:"VISITOR_TOKEN_TTL" envDefault:"720h" doc:"lifetime of a visitor's token; parleyctl streams apply needs the same value, because revocations are kept that long"`
}

// Validate returns the problems of the block; see [Check].
func (t VisitorTokens) Validate() []string {
	if t.VisitorTokenTTL <= 0 || t.VisitorTokenTTL > maxTokenTTL {
		return []string{"VISITOR_TOKEN_TTL must be positive and at most " + maxTokenTTL.String()}
	}
	return nil
}

// Store selects the database: MongoDB for many machines, or SQLite for one. Exactly one is set.
type Store struct {
	MongoDBURI      string `env:"MONGODB_URI" doc:"MongoDB connection string; this or SQLITE_PATH is required"`
	MongoDBDatabase string `env:"MONGODB_DATABASE" envDefault:"parley" doc:"name of the database"`
	SQLitePath      string `env:"SQLITE_PATH" doc:"file of the SQLite database, if all services run on one machine"`
}

// Validate returns the problems of the block; see [Check].
func (s Store) Validate() []string {
	var problems []string
	if s.MongoDBURI == "" && s.SQLitePath == "" {
		problems = append(problems, "MONGODB_URI or SQLITE_PATH is required")
	}
	if s.MongoDBURI != "" && s.SQLitePath != "" {
		problems = append(problems, "MONGODB_URI and SQLITE_PATH exclude each other")
	}
	if s.MongoDBURI != "" && !strings.HasPrefix(s.MongoDBURI, "mongodb://") &&
		!strings.HasPrefix(s.MongoDBURI, "mongodb+srv://") {
		problems = append(problems, "MONGODB_URI must start with mongodb:// or mongodb+srv://")
	}
	if s.MongoDBURI != "" &&
		(s.MongoDBDatabase == "" || len(s.MongoDBDatabase) > 63 || strings.ContainsAny(s.MongoDBDatabase, "/\\. \"$*<>:|?\x00")) {
		problems = append(problems, "MONGODB_DATABASE must be a database name")
	}
	return problems
}

// Secrets configures the keys that encrypt secrets in the store, for the services that read them.
type Secrets struct {
	SecretsKeyFile string `env:"SECRETS_KEY_FILE,required" doc:"file with the keys that encrypt secrets in the database (parleyctl secrets generate): of webhooks, of proofs of identity, of second factors; without it they are lost; the same in all services; read again when it changes"`
}

// minIdleClose prevents idleness from closing a chat within the conversation window, which guarantees companies 24
// hours.
const minIdleClose = 24 * time.Hour

// Chats configures the idle close. The value must be the same in all services.
type Chats struct {
	ChatIdleClose time.Duration `env:"CHAT_IDLE_CLOSE" envDefault:"720h" doc:"how long a visitor may be silent before their chat is closed: 24h or more; 0: never; the same in all services"`
}

// Validate returns the problems of the block; see [Check].
func (c Chats) Validate() []string {
	if c.ChatIdleClose == 0 || c.ChatIdleClose >= minIdleClose {
		return nil
	}
	return []string{"CHAT_IDLE_CLOSE must be 0 or at least 24h"}
}

// Values of FILE_STORE.
const (
	FileStoreNATS = "nats"
	FileStoreS3   = "s3"
)

// Files configures the storage of files. The values must be the same in all services.
type Files struct {
	FileStore         string        `env:"FILE_STORE" envDefault:"nats" doc:"where files are kept: nats (the JetStream object store, bucket FILES) or s3; the same in all services"`
	FileMaxBytes      int64         `env:"FILE_MAX_BYTES" envDefault:"26214400" doc:"maximum size of a file in bytes"`
	FileRetention     time.Duration `env:"FILE_RETENTION" envDefault:"2160h" doc:"how long a file is kept unless its application sets a retention; 0: forever"`
	S3Endpoint        string        `env:"S3_ENDPOINT" envDefault:"https://s3.amazonaws.com" doc:"http or https URL of FILE_STORE=s3"`
	S3Region          string        `env:"S3_REGION" envDefault:"us-east-1" doc:"region of the bucket"`
	S3Bucket          string        `env:"S3_BUCKET" doc:"name of the bucket, which must exist; objects are stored under files/"`
	S3AccessKeyID     string        `env:"S3_ACCESS_KEY_ID" doc:"access key id; empty: the machine's IAM role"`
	S3SecretAccessKey string        `env:"S3_SECRET_ACCESS_KEY" doc:"secret access key"`
}

// Uploads bounds the files that visitors and agents send. The values must be the same in all services that take files.
type Uploads struct {
	MaxUploads        int           `env:"MAX_UPLOADS" envDefault:"64" doc:"files that a process takes in at once; more wait, and are then refused (503)"`
	MaxUploadsVisitor int           `env:"MAX_UPLOADS_VISITOR" envDefault:"2" doc:"of these, one visitor's or agent's; more are refused (429); 0: no limit"`
	MaxUploadsAddress int           `env:"MAX_UPLOADS_ADDRESS" envDefault:"8" doc:"of these, those from one address (an IPv6 /64); more are refused (429); 0: no limit"`
	MaxUploadsApp     int           `env:"MAX_UPLOADS_APPLICATION" envDefault:"16" doc:"of these, those of one application; more are refused (429); 0: no limit"`
	MaxUploadsCompany int           `env:"MAX_UPLOADS_COMPANY" envDefault:"24" doc:"of these, those of one company; more are refused (429); 0: no limit"`
	QuotaVisitor      int64         `env:"FILE_QUOTA_VISITOR" envDefault:"104857600" doc:"bytes of files that are kept of one visitor; more are refused (413); 0: no limit"`
	QuotaApplication  int64         `env:"FILE_QUOTA_APPLICATION" envDefault:"1073741824" doc:"bytes of files that are kept of one application, its agents' too; more are refused (413); 0: no limit"`
	QuotaCompany      int64         `env:"FILE_QUOTA_COMPANY" envDefault:"2147483648" doc:"bytes of files that are kept of one company; more are refused (413); 0: no limit"`
	UploadTimeout     time.Duration `env:"UPLOAD_TIMEOUT" envDefault:"10m" doc:"timeout of an upload; a client must also send at least 4 KiB a second, and 64 KiB while others wait"`
}

// maxUploadTimeout is half of the time after which a sweep treats an idle upload as abandoned.
const maxUploadTimeout = 30 * time.Minute

// Validate returns the problems of the block; see [Check].
func (u Uploads) Validate() []string {
	var problems []string
	if u.MaxUploads <= 0 {
		problems = append(problems, "MAX_UPLOADS must be positive")
	}
	for _, v := range []struct {
		name  string
		value int64
	}{
		{"MAX_UPLOADS_VISITOR", int64(u.MaxUploadsVisitor)}, {"MAX_UPLOADS_ADDRESS", int64(u.MaxUploadsAddress)},
		{"MAX_UPLOADS_APPLICATION", int64(u.MaxUploadsApp)}, {"MAX_UPLOADS_COMPANY", int64(u.MaxUploadsCompany)},
		{"FILE_QUOTA_VISITOR", u.QuotaVisitor}, {"FILE_QUOTA_APPLICATION", u.QuotaApplication}, {"FILE_QUOTA_COMPANY", u.QuotaCompany},
	} {
		if v.value < 0 {
			problems = append(problems, v.name+" must not be negative")
		}
	}
	if u.UploadTimeout <= 0 || u.UploadTimeout > maxUploadTimeout {
		problems = append(problems, "UPLOAD_TIMEOUT must be positive and at most "+maxUploadTimeout.String())
	}
	return problems
}

// Validate returns the problems of the block; see [Check].
func (f Files) Validate() []string {
	var problems []string
	if f.FileStore != FileStoreNATS && f.FileStore != FileStoreS3 {
		problems = append(problems, "FILE_STORE must be nats or s3")
	}
	if f.FileMaxBytes <= 0 {
		problems = append(problems, "FILE_MAX_BYTES must be positive")
	}
	if f.FileRetention < 0 {
		problems = append(problems, "FILE_RETENTION must not be negative")
	}
	if f.FileStore != FileStoreS3 {
		return problems
	}
	if f.S3Bucket == "" {
		problems = append(problems, "S3_BUCKET is required with FILE_STORE=s3")
	}
	if !BaseURL(f.S3Endpoint) {
		problems = append(problems, "S3_ENDPOINT must be an http or https URL")
	}
	if (f.S3AccessKeyID == "") != (f.S3SecretAccessKey == "") {
		problems = append(problems, "S3_SECRET_ACCESS_KEY goes with S3_ACCESS_KEY_ID")
	}
	return problems
}

// Redis configures the connection to Redis.
type Redis struct {
	RedisURL string `env:"REDIS_URL" doc:"redis:// or rediss:// URL; several for a cluster, separated by commas; required with more than one socket-gateway"`
}

// Validate returns the problems of the block; see [Check].
func (r Redis) Validate() []string {
	if r.RedisURL == "" || validURLs(r.RedisURL, "redis", "rediss", "unix") {
		return nil
	}
	return []string{"REDIS_URL must be redis:// or rediss:// URLs, separated by commas"}
}

// ValidAddr reports whether addr is a listen address: host:port, where the host may be empty and the port 0.
func ValidAddr(addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	_, err = net.LookupPort("tcp", port)
	return err == nil && port != ""
}

// LoopbackAddr reports whether addr is reachable only from this machine.
func LoopbackAddr(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return err == nil && ValidAddr(addr) && (host == "localhost" || net.ParseIP(host).IsLoopback())
}

// WebURL reports whether s is an http or https URL.
func WebURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}

// BaseURL reports whether s is an http or https URL to which a path can be appended: without query, fragment and
// credentials.
func BaseURL(s string) bool {
	u, err := url.Parse(s)
	return WebURL(s) && err == nil && u.RawQuery == "" && u.Fragment == "" && u.User == nil
}

func validURLs(list string, schemes ...string) bool {
	for raw := range strings.SplitSeq(list, ",") {
		u, err := url.Parse(strings.TrimSpace(raw))
		if err != nil || !slices.Contains(schemes, u.Scheme) || u.Host == "" && u.Path == "" {
			return false
		}
	}
	return true
}
