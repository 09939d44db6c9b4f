package engineio

// The options of a server and their defaults, filled in once by New.

import (
	"crypto/rand"
	"encoding/base64"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Options configure a Server. The zero value of each field means its default.
type Options struct {
	PingInterval   time.Duration // time between a pong and the next ping; 25 s
	PingTimeout    time.Duration // time for the client to answer a ping; 20 s
	UpgradeTimeout time.Duration // time to complete an upgrade; 10 s
	OpenTimeout    time.Duration // time for the layer above to confirm a session; 45 s
	WriteTimeout   time.Duration // timeout of a write without progress, and for each 64 KiB of a backlog; 10 s
	PartialTimeout time.Duration // time to complete a packet, fragmented message or POST body; 30 s
	MaxPayload     int           // bytes of a client's message or POST body; 1,000,000
	// WebSocket frames or polling packets of one client per second; 10,000; negative: no limit
	MaxFrames   int
	SendBuffer  int      // bytes queued for one client; 1 MiB
	MaxSessions int      // open sessions, more get 503; 0: no limit
	KeepHeaders []string // headers in Request, each with at most 2 KiB; nil: all
	DropQuery   bool     // no query in Request

	// MaxConfirmed is the maximum number of open confirmed sessions; see Session.Confirm. 0 means no limit.
	MaxConfirmed int
	// MaxUnconfirmed is the maximum number of unconfirmed sessions. A further one closes the oldest, so that clients
	// that are confirmed quickly get in even during a flood. 0 means no limit.
	MaxUnconfirmed int
	// MaxUnconfirmedPerAddress is the same limit for each address.
	MaxUnconfirmedPerAddress int
	// Address returns the address of a handshake for this limit. Nil means the host of RemoteAddr.
	Address func(*http.Request) string

	// CompressFrom is the minimum size in bytes of WebSocket messages that are compressed, for clients that offer
	// permessage-deflate (RFC 7692). It costs CPU for each message, but no memory per session. 0 disables
	// compression: short messages do not shrink, and the length may leak secrets next to attacker-controlled text.
	CompressFrom int

	// CheckOrigin reports whether a page of the request's Origin may connect. Nil allows any origin:
	// cookies and other credentials are not used.
	CheckOrigin func(*http.Request) bool
	// Admit refuses a handshake by returning an error; see AdmissionError. It may block. Nil admits all.
	Admit func(*http.Request) error
	// NewSessionID returns an unguessable identifier; nil means 120 random bits. The identifier may contain the id
	// of the process for Forward.
	NewSessionID func() string
	// Forward is called for requests with an unknown sid. If it returns true it has served the request,
	// for example by forwarding it to the process that holds the session.
	Forward func(w http.ResponseWriter, r *http.Request, sid string) bool

	Logger   *slog.Logger // nil: no logs
	Observer Observer
}

// Observer receives session events, for metrics. Its functions must be fast; each may be nil.
type Observer struct {
	Opened   func(transport string)
	Upgraded func()
	Closed   func(transport string, reason Reason)
	Refused  func(code int)
}

// withDefaults fills in what is not set.
func (o Options) withDefaults() Options {
	setDefault(&o.PingInterval, 25*time.Second)
	setDefault(&o.PingTimeout, 20*time.Second)
	setDefault(&o.UpgradeTimeout, 10*time.Second)
	setDefault(&o.OpenTimeout, 45*time.Second)
	setDefault(&o.WriteTimeout, 10*time.Second)
	setDefault(&o.PartialTimeout, 30*time.Second)
	setDefault(&o.MaxPayload, 1_000_000)
	setDefault(&o.MaxFrames, 10_000)
	setDefault(&o.SendBuffer, 1<<20)
	if o.Address == nil {
		o.Address = remoteHost
	}
	if o.Admit == nil {
		o.Admit = func(*http.Request) error { return nil }
	}
	if o.NewSessionID == nil {
		o.NewSessionID = randomID
	}
	if o.Forward == nil {
		o.Forward = func(http.ResponseWriter, *http.Request, string) bool { return false }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Observer = o.Observer.withDefaults()
	return o
}

// withDefaults replaces missing callbacks by empty ones.
func (o Observer) withDefaults() Observer {
	if o.Opened == nil {
		o.Opened = func(string) {}
	}
	if o.Upgraded == nil {
		o.Upgraded = func() {}
	}
	if o.Closed == nil {
		o.Closed = func(string, Reason) {}
	}
	if o.Refused == nil {
		o.Refused = func(int) {}
	}
	return o
}

// setDefault sets a field that has its zero value.
func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// remoteHost returns the address of the peer without its port, the default of Options.Address.
func remoteHost(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// randomID returns 20 unguessable characters.
func randomID() string {
	var b [15]byte
	rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}
