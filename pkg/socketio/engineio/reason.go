package engineio

// Reason is why a session was closed. Its text is the one that Socket.IO defines.
type Reason string

// The reasons of a close.
const (
	ReasonTransportClose Reason = "transport close"      // the client left
	ReasonTransportError Reason = "transport error"      // the client broke the transport's rules
	ReasonParseError     Reason = "parse error"          // a packet could not be decoded
	ReasonPingTimeout    Reason = "ping timeout"         // the client did not answer the heartbeat
	ReasonForced         Reason = "forced server close"  // the server's code closed it
	ReasonShutdown       Reason = "server shutting down" // the server stops
	ReasonSlow           Reason = "slow client"          // the send buffer is full
	ReasonUnconfirmed    Reason = "connect timeout"      // the layer above did not confirm it in time
)

// abrupt reasons end the connection without a close packet: the client has disconnected, or does not read.
func (r Reason) abrupt() bool {
	return r == ReasonTransportClose || r == ReasonPingTimeout || r == ReasonSlow
}
