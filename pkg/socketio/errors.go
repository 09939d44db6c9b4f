package socketio

import (
	"encoding/json"
	"errors"

	"github.com/parley-chat/parley/pkg/socketio/engineio"
)

// Errors of sockets and namespaces.
var (
	// ErrDisconnected is returned when the socket has left its namespace.
	ErrDisconnected = errors.New("socketio: socket is disconnected")
	// ErrSlow is returned when the client reads too slowly; its session has been closed.
	ErrSlow = engineio.ErrSlow
	// ErrReserved is returned for an event name that belongs to the client library.
	ErrReserved = errors.New("socketio: reserved event name")

	errFull = errors.New("socketio: as many sessions as there may be")
)

// ConnectError is returned by a middleware to refuse a socket. Its fields are sent to the client in the
// CONNECT_ERROR packet (protocol, "Connection to a namespace").
type ConnectError struct {
	Message string
	Data    any // left out if nil
}

func (e *ConnectError) Error() string { return e.Message }

// refusalText is all that a client learns of an error that is no ConnectError.
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
	if err != nil { // Data cannot be encoded
		payload.Data = nil
		data, _ = json.Marshal(payload)
	}
	return data
}

// The reasons of a disconnect that engineio does not know, as the official server names them.
const (
	ReasonClientDisconnect = "client namespace disconnect"
	ReasonServerDisconnect = "server namespace disconnect"
)
