package engineio

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
	WriteTimeout   time.Duration // longest stall of a write, and longest time for each 64 KiB of a backlog; 10 s
	PartialTimeout time.Duration // time for the rest of an unfinished packet, fragment or POST body; 30 s
	MaxPayload     int           // bytes of a client's message or POST body; 1,000,000
	MaxFrames      int           // WebSocket frames or polling packets of one client in a second; 10,000; negative is no limit
	SendBuffer     int           // bytes that may wait for one client; 1 MiB
	MaxSessions    int           // open sessions, more get 503; 0 is no limit
	KeepHeaders    []string      // header names that Request keeps, each with at most 2 KiB; nil keeps all
	DropQuery      bool          // Request keeps no query

	// MaxConfirmed bounds the open sessions that the layer above has confirmed; see Session.Confirm. 0 is no limit.
	MaxConfirmed int
	// MaxUnconfirmed bounds the sessions that the layer above has not confirmed. One more closes the oldest of
	// them: a client that completes its handshake at once gets in, however many do not. 0 is no limit.
	MaxUnconfirmed int
	// MaxUnconfirmedPerAddress is the same for the sessions of one address.
	MaxUnconfirmedPerAddress int
	// Address returns the address that a handshake counts for. Nil means the host of the network address.
	Address func(*http.Request) string

	// CompressFrom is the size in bytes from which WebSocket messages are compressed for clients that offer
	// it (permessage-deflate, RFC 7692). It costs time for each message and no memory for a session. 0 never
	// compresses: many short messages gain nothing, and secrets beside foreign text may be guessed by length.
	CompressFrom int

	// CheckOrigin decides whether a page of the request's Origin may use the server. Nil allows any:
	// no cookies or other credentials are involved.
	CheckOrigin func(*http.Request) bool
	// Admit decides on a handshake; see AdmissionError. It may block. Nil admits all.
	Admit func(*http.Request) error
	// NewSessionID makes unguessable identifiers; nil means 120 random bits. It may add the name of the
	// process, so that Forward can find it.
	NewSessionID func() string
	// Forward is asked about requests with an unknown sid. If it returns true it has served the request,
	// for example by passing it to the process that holds the session.
	Forward func(w http.ResponseWriter, r *http.Request, sid string) bool

	Logger   *slog.Logger // nil logs nothing
	Observer Observer
}

// Observer receives the events of sessions. Its functions must be fast; each may be nil.
type Observer struct {
	Opened   func(transport string)
	Upgraded func()
	Closed   func(transport string, reason Reason)
	Refused  func(code int)
}

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

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func remoteHost(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// randomID returns 20 characters that cannot be guessed.
func randomID() string {
	var b [15]byte
	rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}
