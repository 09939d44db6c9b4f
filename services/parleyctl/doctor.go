package parleyctl

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/inspect"
	"github.com/parley-chat/parley/pkg/ops"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/encrypted"
	"github.com/parley-chat/parley/proto-events/subject"
)

// States of a check.
const (
	findingOK      = "ok"
	findingWarning = "warning"
	findingWrong   = "wrong"
	findingSkipped = "skipped"
)

// Thresholds of warnings.
const (
	minNATS          = "2.11" // pinned consumers
	minPayload       = 2_000_000
	minRedis         = 7
	clockTolerance   = 2 * time.Second
	certificateSpare = 21 * 24 * time.Hour
	warnFull         = 0.7  // share of a bound, as the alert ParleyStreamFilling
	warnLag          = 1000 // undelivered events
	engineTime       = 5 * time.Second
	minFree          = 0.1 // share of a disk
)

// panelService is the only service that a deployment may be without.
const panelService = "panel"

// finding is one row: the check, its result, and what to do.
type finding struct {
	Check  string `json:"check"`
	State  string `json:"state"`
	Detail string `json:"detail"`
	Do     string `json:"do,omitempty"`
}

// doctorError means that checks have failed.
type doctorError struct{ wrong int }

func (e *doctorError) Error() string { return fmt.Sprintf("%d checks found something wrong", e.wrong) }

// examiner collects findings.
type examiner struct {
	app      *app
	monitors []string // URLs of NATS's monitoring ports
	findings []finding
}

func (e *examiner) add(check, state, do, format string, args ...any) {
	e.findings = append(e.findings, finding{Check: check, State: state, Detail: fmt.Sprintf(format, args...), Do: do})
}

func (e *examiner) ok(check, format string, args ...any) {
	e.add(check, findingOK, "", format, args...)
}

func (e *examiner) skip(check, why string) { e.add(check, findingSkipped, "", "%s", why) }

func (e *examiner) warn(check, do, format string, args ...any) {
	e.add(check, findingWarning, do, format, args...)
}

func (e *examiner) wrong(check, do, format string, args ...any) {
	e.add(check, findingWrong, do, format, args...)
}

func (a *app) doctor() *cobra.Command {
	var urls, monitors []string
	c := &cobra.Command{
		Use: "doctor", Short: "Check every dependency and print what is wrong and what to do", Args: exactArgs(),
		Long: `Check NATS, the streams, what an accepted event survives, the consumers, what waits for channels, the services, the store and its indexes, disk space, Redis, the keys of visitors' tokens and of
secrets, the clock and the certificates, and print what is wrong and what to do. It asks each running service for its dependencies. It stores a message in a
stream of its own and a record in the store, and removes both; it changes nothing else.

It checks what is set in the environment: NATS_URL, MONGODB_URI or SQLITE_PATH, REDIS_URL, VISITOR_KEYS_FILE, SECRETS_KEY_FILE, TRUSTED_PROXIES,
NATS_CERT, PUBLIC_URL (its certificate, and that of each --url). With STREAM_REPLICAS, STREAM_MAX_AGE, STREAM_MAX_BYTES, FILE_STORE_MAX_BYTES
and VISITOR_TOKEN_TTL it also compares sizes.

The exit code is 1 if a check fails; it is 0 if there are only warnings.`,
		Example: `  parleyctl doctor
  parleyctl doctor --url https://client.chat.example.com -o json`,
		RunE: func(c *cobra.Command, _ []string) error {
			if _, err := a.settings(); err != nil {
				return err
			}
			e := &examiner{app: a, monitors: monitors}
			e.nats(c.Context())
			e.store(c.Context())
			e.redis(c.Context())
			e.keys()
			e.secrets(c.Context())
			e.proxies()
			e.certificates(c.Context(), urls)
			if err := printFindings(a, e.findings); err != nil {
				return err
			}
			wrong := 0
			for _, f := range e.findings {
				if f.State == findingWrong {
					wrong++
				}
			}
			if wrong > 0 {
				return &doctorError{wrong}
			}
			return nil
		},
	}
	c.Flags().StringSliceVar(&urls, "url", nil, "an https address whose certificate is checked")
	c.Flags().StringSliceVar(
		&monitors, "monitor", nil, "the monitoring port of a NATS server, http://HOST:8222, to check its sync_interval",
	)
	return c
}

func printFindings(a *app, findings []finding) error {
	return printList(a, findings,
		column[finding]{"check", func(f finding) string { return f.Check }},
		column[finding]{"state", func(f finding) string { return f.State }},
		column[finding]{"detail", func(f finding) string { return f.Detail }},
		column[finding]{"do", func(f finding) string { return f.Do }})
}

// nats checks the server, and its streams and consumers if it answers.
func (e *examiner) nats(ctx context.Context) {
	s, err := e.app.settings()
	if err != nil || s.NATSURL == "" {
		e.skip("nats", "NATS_URL is not set")
		return
	}
	b, err := e.app.openBus(ctx)
	if err != nil {
		e.wrong("nats", "start NATS, or correct NATS_URL and its password", "%s", describe(err))
		return
	}
	server := b.Server()
	switch {
	case older(server.Version, minNATS):
		e.wrong("nats", "upgrade to "+minNATS+" or later", "version %s", server.Version)
	case server.MaxPayload < minPayload:
		e.wrong("nats", "set max_payload: 2MB", "max_payload is %d", server.MaxPayload)
	default:
		e.ok("nats", "version %s", server.Version)
	}
	if server.Certificate != nil {
		e.certificate("certificate of nats", server.Certificate)
	}
	used, limit, err := b.Storage(ctx)
	if err != nil {
		e.wrong("jetstream", "enable JetStream for the account of NATS_URL, or wait until the cluster has a leader", "%s", describe(err))
		return
	}
	if limit > 0 && float64(used) > warnFull*float64(limit) {
		e.warn("jetstream", "raise the limit of the account", "%s of %s are used", bytes(used), bytes(uint64(limit)))
	} else {
		e.ok("jetstream", "%s on disk", bytes(used))
	}
	e.jetStreamWrite(ctx, b)
	e.streams(ctx, b)
	e.consumers(ctx, b)
	e.channels(ctx, b)
	e.services(ctx, b)
}

// jetStreamWrite stores a message: on a full disk JetStream answers, reads, and stores nothing.
func (e *examiner) jetStreamWrite(ctx context.Context, b *bus.Bus) {
	ctx, cancel := context.WithTimeout(ctx, engineTime)
	defer cancel()
	if err := b.ProbeStorage(ctx); err != nil {
		e.wrong(
			"jetstream write",
			"free disk space on the NATS servers and restart them: docs/runbook.md#parleystreamnotwritable",
			"%v", err,
		)
		return
	}
	e.ok("jetstream write", "a message was stored and removed")
}

// services asks each service for the state of its dependencies.
func (e *examiner) services(ctx context.Context, b *bus.Bus) {
	for _, service := range []string{"client-api", "widget-api", "socket-gateway", "processor", "panel"} {
		check := "service " + service
		states, err := b.RPC().Dependencies(ctx, service)
		switch {
		case apperr.Is(err, apperr.NotFound) && service == panelService:
			e.warn(check, "start panel, if agents use it", "not running, or not connected to NATS")
		case apperr.Is(err, apperr.NotFound):
			e.wrong(check, "start "+service+"; its log says what it waits for", "not running, or not connected to NATS")
		case err != nil:
			e.wrong(check, "look at its log, or restart it", "%s", describe(err))
		default:
			e.dependencies(check, states)
		}
	}
}

func (e *examiner) dependencies(check string, states map[string]string) {
	var down []string
	for _, name := range slices.Sorted(maps.Keys(states)) {
		if states[name] != ops.StatusOK {
			down = append(down, name+": "+states[name])
		}
	}
	if len(down) > 0 {
		hint := "restore what it cannot use: docs/runbook.md#parleydependencydown"
		e.wrong(check, hint, "%s", strings.Join(down, "; "))
		return
	}
	e.ok(check, "runs, and can use %s", strings.Join(slices.Sorted(maps.Keys(states)), ", "))
}

var numbers = regexp.MustCompile(`\d+`)

// older compares versions by their numbers.
func older(version, minimum string) bool {
	have, want := numbers.FindAllString(version, -1), numbers.FindAllString(minimum, -1)
	for i, w := range want {
		if i >= len(have) {
			return true
		}
		h, _ := strconv.Atoi(have[i]) // digits
		n, _ := strconv.Atoi(w)
		if h != n {
			return h < n
		}
	}
	return false
}

// sizes are the fields of a stream that come from settings.
var sizes = map[string]string{
	"num_replicas": "STREAM_REPLICAS",
	"max_age":      "STREAM_MAX_AGE",
	"max_bytes":    "STREAM_MAX_BYTES",
	"metadata":     "STREAM_SYNC",
}

// settingOf returns the setting that a field of a stream comes from; empty: none.
func settingOf(stream, field string) string {
	if stream == subject.Revocations && field == "max_age" {
		return "VISITOR_TOKEN_TTL"
	}
	return sizes[field]
}

// streams compares the streams with their declaration, and checks how full they are, their servers and the clock.
func (e *examiner) streams(ctx context.Context, b *bus.Bus) {
	settings, err := e.app.streamSettings()
	if err != nil {
		e.wrong("streams", "correct the setting", "%s", describe(err))
		return
	}
	changes, err := b.CompareStreams(ctx, settings)
	if err != nil {
		e.wrong("streams", "look at NATS", "%s", describe(err))
		return
	}
	clock := false
	var found []*jetstream.StreamInfo
	for _, change := range changes {
		check := "stream " + change.Stream
		change.Drift = slices.DeleteFunc(change.Drift, func(d bus.FieldDiff) bool {
			variable := settingOf(change.Stream, d.Field)
			return variable != "" && e.app.Getenv(variable) == ""
		})
		if change.Missing {
			e.wrong(check, "parleyctl streams apply", "missing")
			continue
		}
		e.lostTail(ctx, b, change.Stream)
		e.dropped(ctx, b, change.Stream)
		s, err := inspect.OpenStream(ctx, b, change.Stream)
		if err != nil {
			e.wrong(check, "look at NATS", "%s", describe(err))
			continue
		}
		info := s.CachedInfo()
		found = append(found, info)
		if !clock {
			clock = true
			e.clock(info.TimeStamp)
		}
		e.stream(check, change, info)
	}
	e.durability(ctx, b, found)
}

// lags reports whether a replica of a stream is offline or has not caught up.
func lags(p *jetstream.PeerInfo) bool { return p.Offline || !p.Current }

// lostTail names what a stream has lost in the last days, for as long as a client or an operator may miss it.
func (e *examiner) lostTail(ctx context.Context, b *bus.Bus, stream string) {
	l, err := b.LostTail(ctx, stream)
	if err != nil {
		return // the check of POSITIONS says why
	}
	if l.Messages() > 0 && time.Since(l.Noticed) < lostTailShown {
		e.warn(
			"stream "+stream, "see ParleyStreamLostMessages in the runbook",
			"has lost its messages %d to %d, noticed at %s", l.From, l.To, l.Noticed.Format(time.RFC3339),
		)
	}
}

// dropped tells what NATS has cut off from damaged files of a stream. A message that it only passes over is found by
// `streams verify`.
func (e *examiner) dropped(ctx context.Context, b *bus.Bus, stream string) {
	n, err := b.Dropped(ctx, stream)
	if err == nil && n > 0 { // the check of the stream tells the error
		e.warn("files of "+stream, "docs/runbook.md#damaged-messages", "NATS has dropped %s of damaged messages", bytes(n))
	}
}

// lostTailShown is how long a lost tail is told.
const lostTailShown = 7 * 24 * time.Hour

func (e *examiner) stream(check string, change bus.StreamChange, info *jetstream.StreamInfo) {
	full := float64(info.State.Bytes) / float64(max(info.Config.MaxBytes, 1))
	switch {
	case info.Cluster != nil && info.Config.Replicas > 1 && info.Cluster.Leader == "":
		e.wrong(check, "start the NATS servers that are down", "it has no leader")
	case len(change.Drift) > 0:
		e.warn(check, "parleyctl streams apply", "differs: %s", describeDrift(change.Drift))
	case info.Config.Name == subject.Revocations && full > warnFull:
		e.warn(
			check,
			"look for the companies that erase or revoke most visitors (audit log); lower VISITOR_TOKEN_TTL",
			"%.0f%% full", 100*full,
		)
	case info.Config.MaxBytes > 0 && full > warnFull:
		e.warn(
			check,
			"raise STREAM_MAX_BYTES or lower STREAM_MAX_AGE, then parleyctl streams apply: a full stream refuses",
			"%.0f%% full", 100*full,
		)
	case info.Cluster != nil && slices.ContainsFunc(info.Cluster.Replicas, lags):
		e.warn(check, "look at the NATS servers", "a replica is offline or not current")
	case info.Config.Name == subject.Dead && info.State.Msgs > 0:
		e.warn(check, "parleyctl dead list, then dead replay or dead drop", "%d events were given up", info.State.Msgs)
	default:
		e.ok(
			check, "%d messages, %s of %s", info.State.Msgs, bytes(info.State.Bytes),
			bytes(uint64(max(info.Config.MaxBytes, 0))),
		)
	}
}

// proxies checks that TRUSTED_PROXIES is the network of an edge.
func (e *examiner) proxies() {
	const check = "trusted proxies"
	text := e.app.Getenv("TRUSTED_PROXIES")
	if text == "" {
		e.skip(check, "TRUSTED_PROXIES is not set")
		return
	}
	var networks config.Prefixes
	if err := networks.UnmarshalText([]byte(text)); err != nil {
		e.wrong(check, "correct TRUSTED_PROXIES", "%v", err)
		return
	}
	wide := slices.DeleteFunc(networks, func(p netip.Prefix) bool { return !config.CoversPrivate(p) })
	if len(wide) > 0 {
		e.warn(
			check, "list the edge's own network: callers may be able to forge their address",
			"%v is a whole private network", wide[0],
		)
		return
	}
	e.ok(check, "%s", text)
}

// clock compares this machine's clock with that of NATS: tokens and leases depend on it.
func (e *examiner) clock(server time.Time) {
	now := e.app.Now()
	switch off := now.Sub(server).Abs(); {
	case server.IsZero():
		e.skip("clock", "NATS does not report the time")
	case off > clockTolerance:
		e.warn("clock", "start NTP on both machines", "this machine and NATS differ by %s", off.Round(time.Millisecond))
	default:
		e.ok("clock", "within %s of that of NATS", clockTolerance)
	}
}

// readers are the streams that need a consumer, with the consumers of Parley's services. Another processing
// layer has other names.
var readers = map[string]string{
	subject.Sends:   "the processor with DISPATCHER (consumers dispatcher and dispatcher-pushes)",
	subject.Inbound: "the processor (consumers recorder and bot)",
	subject.Replies: "a socket-gateway and the processor (consumers socket-gateway and recorder)",
	subject.Parts:   "a socket-gateway (consumer socket-gateway)",
	subject.Status:  "the processor with RECORDER (consumer recorder)",
}

func (e *examiner) consumers(ctx context.Context, b *bus.Bus) {
	for _, stream := range inspect.StreamNames() {
		groups, err := b.Groups(ctx, stream)
		if apperr.Is(err, apperr.NotFound) {
			continue
		}
		if err != nil {
			e.wrong("consumers of "+stream, "look at NATS", "%s", describe(err))
			continue
		}
		if who := readers[stream]; who != "" && len(groups) == 0 {
			e.warn("consumers of "+stream, "start "+who, "no service has ever read it")
		}
		for _, g := range groups {
			check, total := "consumer "+stream+"/"+g.Name, g.Total()
			switch missing := g.Missing(); {
			case len(missing) > 0:
				e.wrong(
					check, "restart the service that reads it: it creates its consumers",
					"no consumer for the partitions %s", strings.Trim(fmt.Sprint(missing), "[]"),
				)
			case total.Pending > 0 && !total.Read:
				e.wrong(
					check, "start the service that reads it, or remove the consumer",
					"%d events wait and no consumer reads", total.Pending,
				)
			case total.Pending > warnLag:
				e.warn(check, "docs/runbook.md#parleyconsumerlag", "%d events pending", total.Pending)
			default:
				e.ok(check, "%d wait, %d in work", total.Pending, total.AckPending)
			}
		}
	}
}

// channels checks whether something takes what is sent to channels.
func (e *examiner) channels(ctx context.Context, b *bus.Bus) {
	const check = "channels"
	late, err := inspect.WaitingForChannels(ctx, b, e.app.Now())
	switch {
	case apperr.Is(err, apperr.NotFound): // the check of the streams says it
	case err != nil:
		e.wrong(check, "look at NATS", "%s", describe(err))
	case len(late) == 0:
		e.ok(check, "no message waits for a channel for longer than an hour")
	default:
		e.wrong(
			check, "start the channel connector: docs/runbook.md#parleyoutboundwaits",
			"nobody takes the messages of %d companies; the oldest, of %s to the channel %s, waits since %s",
			len(late), late[0].CompanyID, late[0].Channel, late[0].Since,
		)
	}
}

func (e *examiner) store(ctx context.Context) {
	s, err := e.app.settings()
	if err != nil || s.MongoDBURI == "" && s.SQLitePath == "" {
		e.skip("store", "MONGODB_URI and SQLITE_PATH are not set")
		return
	}
	if s.SQLitePath != "" {
		if err := exists(s.SQLitePath); err != nil { // opening it would create it
			e.wrong("store", "correct SQLITE_PATH", "%s", describe(err))
			return
		}
	}
	opened, err := e.app.openStore(ctx)
	if err != nil {
		e.wrong("store", "start the store, or correct its address and password", "%s", describe(err))
		return
	}
	e.ok("store", "answers")
	e.storeWrite(ctx, opened)
	e.storeSpace(ctx, opened)
	i, ok := encrypted.Engine(opened).(indexed)
	if !ok {
		return
	}
	drift, err := i.IndexDrift(ctx)
	switch {
	case err != nil:
		e.wrong("indexes", "let the user of MONGODB_URI list indexes", "%s", describe(err))
	case len(drift) > 0:
		e.wrong("indexes", "parleyctl streams apply", "%s", strings.Join(drift, ", "))
	default:
		e.ok("indexes", "as declared")
	}
}

// storeWrite writes the record of a file that does not exist, and removes it. If doctor is interrupted, the
// store removes it soon.
func (e *examiner) storeWrite(ctx context.Context, s store.Store) {
	ctx, cancel := context.WithTimeout(ctx, engineTime)
	defer cancel()
	now := e.app.Now()
	record := chat.StoredFile{ID: "doctor-" + uuid.NewString(), CreatedAt: now, ExpiresAt: now.Add(time.Minute)}
	err := s.PutFile(ctx, record)
	if err == nil {
		err = s.DeleteFile(ctx, record.ID)
	}
	if err != nil {
		e.wrong("store write", "free disk space, or let the user of the store write", "%v", err)
		return
	}
	e.ok("store write", "a record was written and removed")
}

// spacious is a store that knows its disk.
type spacious interface {
	// FreeSpace returns the free bytes of the disk and its size; zero: unknown.
	FreeSpace(ctx context.Context) (free, size uint64, err error)
}

func (e *examiner) storeSpace(ctx context.Context, opened store.Store) {
	const check = "store space"
	s, ok := encrypted.Engine(opened).(spacious)
	if !ok {
		return
	}
	free, size, err := s.FreeSpace(ctx)
	switch {
	case err != nil:
		e.warn(check, "let the user of the store read its statistics", "%v", err)
	case size == 0:
		e.skip(check, "the store does not report it")
	case float64(free) < minFree*float64(size):
		e.warn(
			check, "free disk space, or enlarge the volume: a full disk refuses every write", "%s free of %s",
			bytes(free), bytes(size),
		)
	default:
		e.ok(check, "%s free of %s", bytes(free), bytes(size))
	}
}

func (e *examiner) redis(ctx context.Context) {
	address, _, _ := strings.Cut(e.app.Getenv("REDIS_URL"), ",")
	if address == "" {
		e.skip("redis", "REDIS_URL is not set")
		return
	}
	options, err := redis.ParseURL(address)
	if err != nil {
		// Without the cause, which could contain a password.
		e.wrong("redis", "correct REDIS_URL", "it is not a redis:// or rediss:// URL")
		return
	}
	options.MaxRetries, options.DialTimeout = -1, engineTime
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(ctx, engineTime)
	defer cancel()
	if err := dial(ctx, options.Network, options.Addr); err != nil { // the client would log it several times
		e.wrong("redis", "start Redis, or correct REDIS_URL", "does not answer at %s: %v", redacted(address), err)
		return
	}
	if err := client.Ping(ctx).Err(); err != nil {
		e.wrong(
			"redis", "start Redis, or correct REDIS_URL and its password", "does not answer at %s: %v",
			redacted(address), err,
		)
		return
	}
	info, err := client.Info(ctx, "server").Result()
	version := regexp.MustCompile(`redis_version:(\S+)`).FindStringSubmatch(info)
	switch {
	case err != nil || version == nil:
		e.ok("redis", "answers")
	case older(version[1], strconv.Itoa(minRedis)):
		e.wrong("redis", fmt.Sprintf("upgrade to %d or later", minRedis), "version %s", version[1])
	default:
		e.ok("redis", "version %s", version[1])
	}
}

func dial(ctx context.Context, network, address string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return err
	}
	return conn.Close()
}

func (e *examiner) keys() {
	keys := e.app.visitorKeys(new(string))
	path, err := keys.path()
	if err != nil {
		e.skip("keys", "VISITOR_KEYS_FILE is not set")
		return
	}
	file, err := keys.read()
	if err != nil {
		e.wrong("keys", "parleyctl keys generate, or correct VISITOR_KEYS_FILE", "%s", describe(err))
		return
	}
	e.keyFile("keys", path, len(file.Keys()))
}

// keyFile checks the mode of a key file.
func (e *examiner) keyFile(check, path string, keys int) {
	info, err := os.Stat(path)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		e.wrong(check, "let this user read the file", "%v", err)
	case err == nil && info.Mode().Perm()&0o007 != 0:
		e.warn(check, "chmod o= "+path, "every user of this machine can read %s", path)
	default:
		e.ok(check, "%d keys", keys)
	}
}

// secrets checks the keys of the secrets in the store.
func (e *examiner) secrets(ctx context.Context) {
	keys := e.app.secretKeys()
	path, err := keys.path()
	if err != nil {
		e.skip("secrets", "SECRETS_KEY_FILE is not set")
		return
	}
	file, err := keys.read()
	if err != nil {
		e.wrong("secrets", "restore the file from its backup, or correct SECRETS_KEY_FILE", "%s", describe(err))
		return
	}
	if s := e.app.connections.store; s != nil {
		if err := s.CheckKeys(ctx); err != nil {
			e.wrong("secrets", "restore the file from its backup, or correct SECRETS_KEY_FILE", "%s", describe(err))
			return
		}
	}
	e.keyFile("secrets", path, len(file.Keys()))
}

// certificates checks the client certificate for NATS, and those of https addresses.
func (e *examiner) certificates(ctx context.Context, urls []string) {
	s, err := e.app.settings()
	if err == nil && s.NATSCert != "" {
		pair, err := tls.LoadX509KeyPair(s.NATSCert, s.NATSKey)
		if err != nil {
			e.wrong("certificate NATS_CERT", "correct NATS_CERT and NATS_KEY", "%v", err)
		} else {
			e.certificate("certificate NATS_CERT", pair.Leaf)
		}
	}
	if public := e.app.Getenv("PUBLIC_URL"); strings.HasPrefix(public, "https://") {
		urls = append([]string{public}, urls...)
	}
	for _, address := range urls {
		check := "certificate of " + address
		u, err := url.Parse(address)
		if err != nil || u.Scheme != "https" || u.Hostname() == "" {
			e.wrong(check, "name an https address", "it is not one")
			continue
		}
		port := u.Port()
		if port == "" {
			port = "443"
		}
		dialCtx, cancel := context.WithTimeout(ctx, engineTime)
		conn, err := (&tls.Dialer{}).DialContext(dialCtx, "tcp", net.JoinHostPort(u.Hostname(), port))
		cancel()
		if err != nil {
			e.wrong(check, "renew the certificate, or put the address right", "%v", err)
			continue
		}
		// a tls.Dialer returns only TLS connections
		e.certificate(check, conn.(*tls.Conn).ConnectionState().PeerCertificates[0])
		_ = conn.Close()
	}
}

func (e *examiner) certificate(check string, c *x509.Certificate) {
	switch left := c.NotAfter.Sub(e.app.Now()); {
	case left <= 0:
		e.wrong(check, "renew it", "expired on %s", c.NotAfter.UTC().Format(time.DateOnly))
	case left < certificateSpare:
		e.warn(check, "renew it", "expires on %s", c.NotAfter.UTC().Format(time.DateOnly))
	default:
		e.ok(check, "until %s", c.NotAfter.UTC().Format(time.DateOnly))
	}
}
