package legacy

// What the gateway and the child tell each other.

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
)

// Command is the argument on which the gateway's binary runs as the child.
const Command = "legacy"

// Setup is the configuration of the child, sent as one line of JSON on its standard input.
type Setup struct {
	Socket        string        `json:"socket"` // path of the unix socket to listen on
	RedisURL      string        `json:"redisURL"`
	RedisSharded  bool          `json:"redisSharded"`
	PingInterval  time.Duration `json:"pingInterval"`
	PingTimeout   time.Duration `json:"pingTimeout"`
	SessionPrefix string        `json:"sessionPrefix"` // identifies the gateway in session ids
	MaxSockets    int           `json:"maxSockets"`    // per visitor; 0: no limit
	DrainTimeout  time.Duration `json:"drainTimeout"`  // time over which sockets are closed at shutdown
}

// status is the child's state, sent as lines of JSON on its standard output.
type status struct {
	Ready       bool `json:"ready"`
	Connections int  `json:"connections"`
}

// revokePath is the path for revocations of a visitor's tokens. Requests of clients never have this path.
const revokePath = "/revoke"

// visitorHeader contains the visitor of a client.
const visitorHeader = "Parley-Legacy-Visitor"

// visitor is a client's identity, or the reason of its refusal.
type visitor struct {
	Room      string    `json:"room,omitempty"`
	ExpiresAt time.Time `json:"expiresAt"`
	Refusal   *refusal  `json:"refusal,omitempty"`
}

// refusal is the data of an ERROR packet, in the format of CONNECT_ERROR for newer clients.
type refusal struct {
	Message string      `json:"message"`
	Data    refusalData `json:"data"`
}

type refusalData struct {
	Code       string `json:"code"`
	RetryAfter int    `json:"retryAfter,omitempty"` // seconds
}

var (
	refuseUnauthorized = refusalOf(apperr.Unauthorized, 0)
	refuseOrigin       = refusalOf(apperr.OriginNotAllowed, 0)
	refuseUnavailable  = refusalOf(apperr.ServiceUnavailable, 0)
	refuseTooMany      = refusalOf(apperr.TooManyConnections, 30)
)

func refusalOf(d apperr.Definition, retryAfter int) *refusal {
	return &refusal{Message: d.Message, Data: refusalData{Code: d.Reason, RetryAfter: retryAfter}}
}

// put sets the header for the child.
func (v visitor) put(h http.Header) {
	data, _ := json.Marshal(v) // cannot fail
	h.Set(visitorHeader, base64.StdEncoding.EncodeToString(data))
}

// visitorOf returns the visitor in the gateway's header, or a refused visitor if the header is missing or malformed.
func visitorOf(h http.Header) visitor {
	var v visitor
	data, err := base64.StdEncoding.DecodeString(h.Get(visitorHeader))
	if err != nil || json.Unmarshal(data, &v) != nil || v.Room == "" && v.Refusal == nil {
		return visitor{Refusal: refuseUnauthorized}
	}
	return v
}
