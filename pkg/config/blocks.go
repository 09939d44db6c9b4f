package config

import (
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Ops configures the operations server and the log. A Config written by hand may leave OpsAddr empty: no server.
type Ops struct {
	OpsAddr   string     `env:"OPS_ADDR" envDefault:":9090" valid:"addr" doc:"address of /healthz, /readyz and /metrics"`
	PprofAddr string     `env:"PPROF_ADDR" valid:"loopback" doc:"loopback address of /debug/pprof/, such as 127.0.0.1:6060; empty: no profiles"`
	LogLevel  slog.Level `env:"LOG_LEVEL" envDefault:"INFO" doc:"DEBUG, INFO, WARN or ERROR"`
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
// them. The age is at least the duplicate window of JetStream.
type Streams struct {
	StreamReplicas    int           `env:"STREAM_REPLICAS" envDefault:"1" valid:"oneof 1 3" doc:"replicas of every stream: 1 or 3"`
	StreamSync        string        `env:"STREAM_SYNC" envDefault:"auto" valid:"oneof auto shared server none" doc:"what puts an accepted event on the disk before the answer: shared (parleyctl streams sync, beside the one server), server (its sync_interval: always) or none; auto: shared with one replica, server with three ([consistency](consistency.md))"`
	StreamMaxAge      time.Duration `env:"STREAM_MAX_AGE" envDefault:"168h" valid:"min 2m" doc:"maximum age of an event in a stream"`
	StreamMaxBytes    int64         `env:"STREAM_MAX_BYTES" envDefault:"1073741824" valid:"min 1" doc:"maximum size of each event stream in bytes; a full stream rejects events (503)"`
	StreamPartitions  int           `env:"STREAM_PARTITIONS" valid:"range 0 1024" doc:"partitions of a new stream, 1 to 1024: the maximum number of replicas that share its work; an existing stream keeps its number; 0: 32, or 4 in standalone"`
	FileStoreMaxBytes int64         `env:"FILE_STORE_MAX_BYTES" envDefault:"4294967296" valid:"min 0" doc:"maximum size of the object store FILES in bytes; a full store rejects files (503); 0: no object store (FILE_STORE=s3)"`
	VisitorTokens
}

// VisitorTokens configures the tokens of visitors. The Widget API issues them, and REVOCATIONS keeps
// revocations for their lifetime. The lifetime bounds how long a lost device stays signed in, and the size of
// REVOCATIONS.
type VisitorTokens struct {
	VisitorTokenTTL time.Duration `env:"VISITOR_TOKEN_TTL" envDefault:"720h" valid:"range 1s 9600h" doc:"lifetime of a visitor's token; parleyctl streams apply needs the same value, because revocations are kept that long"`
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

// Phones says who takes messages to phone numbers.
type Phones struct {
	PhoneConnector bool `env:"PHONE_CONNECTOR" envDefault:"false" doc:"a channel connector of your own takes messages to phone numbers from the stream OUTBOUND; without one such messages are refused with 409"`
}

// Values of FILE_STORE.
const (
	FileStoreNATS = "nats"
	FileStoreS3   = "s3"
)

// Files configures the storage of files. The values must be the same in all services.
type Files struct {
	FileStore         string        `env:"FILE_STORE" envDefault:"nats" valid:"oneof nats s3" doc:"where files are kept: nats (the JetStream object store, bucket FILES) or s3; the same in all services"`
	FileMaxBytes      int64         `env:"FILE_MAX_BYTES" envDefault:"26214400" valid:"min 1" doc:"maximum size of a file in bytes"`
	FileRetention     time.Duration `env:"FILE_RETENTION" envDefault:"2160h" valid:"min 0s" doc:"how long a file is kept unless its application sets a retention; 0: forever"`
	S3Endpoint        string        `env:"S3_ENDPOINT" envDefault:"https://s3.amazonaws.com" valid:"baseurl" doc:"http or https URL of FILE_STORE=s3"`
	S3Region          string        `env:"S3_REGION" envDefault:"us-east-1" doc:"region of the bucket"`
	S3Bucket          string        `env:"S3_BUCKET" doc:"name of the bucket, which must exist; objects are stored under files/"`
	S3AccessKeyID     string        `env:"S3_ACCESS_KEY_ID" doc:"access key id; empty: the machine's IAM role"`
	S3SecretAccessKey string        `env:"S3_SECRET_ACCESS_KEY" doc:"secret access key"`
}

// Uploads bounds the files that visitors and agents send.
type Uploads struct {
	// MaxUploads is the number of files that a process takes in at once; more wait, and are then refused (503).
	MaxUploads int `env:"-" constant:"64"`
	// Of these, those of one visitor or agent, address (an IPv6 /64), application and company; more are refused (429).
	MaxUploadsVisitor int `env:"-" none:"0" constant:"2" doc:"uploads of one visitor or agent at once"`
	MaxUploadsSite    int `env:"-" none:"0" constant:"8" doc:"uploads from one site (an IPv4 address, an IPv6 /48) at once"`
	MaxUploadsApp     int `env:"-" none:"0" constant:"16" doc:"uploads of one application at once"`
	MaxUploadsCompany int `env:"-" none:"0" constant:"24" doc:"uploads of one company at once"`

	QuotaVisitor     int64 `env:"-" none:"0" constant:"104857600" doc:"bytes of files that are kept of one visitor"`
	QuotaApplication int64 `env:"-" none:"1073741824" small:"268435456" medium:"1073741824" large:"2684354560" doc:"bytes of files that are kept of one application, its agents' too"`
	QuotaCompany     int64 `env:"-" none:"2147483648" small:"536870912" medium:"2147483648" large:"5368709120" doc:"bytes of files that are kept of one company"`

	// UploadTimeout is at most half of the time after which a sweep treats an idle upload as abandoned (an hour).
	UploadTimeout time.Duration `env:"-" constant:"10m"`
}

// Validate returns the problems of a block written by hand; see [Check].
func (u Uploads) Validate() []string {
	if u.MaxUploads <= 0 || u.UploadTimeout <= 0 {
		return []string{"Uploads: MaxUploads and UploadTimeout must be positive"}
	}
	return nil
}

// Validate returns the problems of the block; see [Check].
func (f Files) Validate() []string {
	var problems []string
	if f.FileStore != FileStoreS3 {
		return nil
	}
	if f.S3Bucket == "" {
		problems = append(problems, "S3_BUCKET is required with FILE_STORE=s3")
	}
	if f.S3Endpoint == "" {
		problems = append(problems, "S3_ENDPOINT is required with FILE_STORE=s3")
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
