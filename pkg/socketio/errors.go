package socketio

import (
	"encoding/json"
	"errors"

	"github.com/parley-chat/parley/pkg/socketio/engineio"
)

// Errors of sockets and namespaces.
var (
	// ErrDisconnected is returned if the socket has left its namespace.
	ErrDisconnected = errors.New("socketio: socket is disconnected")
	// ErrSlow is returned if the client reads too slowly; its session has been closed.
	ErrSlow = engineio.ErrSlow
	// ErrReserved is returned for an event name that is reserved by the client library.
	ErrReserved = errors.New("socketio: reserved event name")

	errFull = errors.New("socketio: too many sessions")
)

// ConnectError is returned by a middleware to refuse a socket. Its fields are sent in the
// CONNECT_ERROR packet (protocol, "Connection to a namespace").
type ConnectError struct {
	Message string
	Data    any // omitted if nil
}

// Error implements error.
func (e *ConnectError) Error() string { return e.Message }

// refusalText is the message that a client receives for errors other than ConnectError.
const refusalText = "Connection refused"

// connectErrorData encodes the payload of a CONNECT_ERROR packet.
func connectErrorData(err error) []byte {
	var refusal *ConnectError
	if !errors.As(err, &refusal) {
		refusal = &ConnectError{Message: refusalText}
	}
	payload := struct {
		Message string `json:"message"`
		Data    any    `json:"data,omitempty"`
	}{refusal.Message, refusal.Data}
	data, err := json.Marshal(payload)
	if err != nil { // Data is not encodable
		payload.Data = nil
		data, _ = json.Marshal(payload)
	}
	return data
}

// Disconnect reasons of this layer, in addition to those of engineio; the names are the official server's.
const (
	ReasonClientDisconnect = "client namespace disconnect"
	ReasonServerDisconnect = "server namespace disconnect"
)
