package legacy

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
)

// Command is the argument that makes the gateway's binary the child.
const Command = "legacy"

// Setup is the configuration of the child, sent as one line on its standard input.
type Setup struct {
	Socket        string        `json:"socket"` // path of the unix socket to listen on
	RedisURL      string        `json:"redisURL"`
	RedisSharded  bool          `json:"redisSharded"`
	PingInterval  time.Duration `json:"pingInterval"`
	PingTimeout   time.Duration `json:"pingTimeout"`
	SessionPrefix string        `json:"sessionPrefix"` // of session ids, for the other gateways
	MaxSockets    int           `json:"maxSockets"`    // of one visitor; 0: no bound
	DrainTimeout  time.Duration `json:"drainTimeout"`  // over which sockets are closed at the end
}

// status is the child's state, sent as lines on its standard output.
type status struct {
	Ready       bool `json:"ready"`
	Connections int  `json:"connections"`
}

// revokePath is the path for revocations of a visitor's tokens. Clients' requests have another path.
const revokePath = "/revoke"

// visitorHeader has the visitor of a client.
const visitorHeader = "Parley-Legacy-Visitor"

// visitor is a client's identity, or why it has none.
type visitor struct {
	Room      string    `json:"room,omitempty"`
	ExpiresAt time.Time `json:"expiresAt"`
	Refusal   *refusal  `json:"refusal,omitempty"`
}

// refusal is the data of an ERROR packet. It has the form of a newer client's CONNECT_ERROR.
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

func (v visitor) put(h http.Header) {
	data, _ := json.Marshal(v) // cannot fail
	h.Set(visitorHeader, base64.StdEncoding.EncodeToString(data))
}

// visitorOf returns a visitor that is refused where the header is not what the gateway writes.
func visitorOf(h http.Header) visitor {
	var v visitor
	data, err := base64.StdEncoding.DecodeString(h.Get(visitorHeader))
	if err != nil || json.Unmarshal(data, &v) != nil || v.Room == "" && v.Refusal == nil {
		return visitor{Refusal: refuseUnauthorized}
	}
	return v
}
