package engineio

// Reason is the reason of a session's close, with the text that Socket.IO defines.
type Reason string

// The close reasons.
const (
	ReasonTransportClose Reason = "transport close"      // the client closed the connection
	ReasonTransportError Reason = "transport error"      // the client violated the transport's protocol
	ReasonParseError     Reason = "parse error"          // a packet could not be decoded
	ReasonPingTimeout    Reason = "ping timeout"         // the client did not answer the heartbeat
	ReasonForced         Reason = "forced server close"  // closed by the application
	ReasonShutdown       Reason = "server shutting down" // Shutdown was called
	ReasonSlow           Reason = "slow client"          // the send buffer is full
	ReasonUnconfirmed    Reason = "connect timeout"      // the layer above did not confirm it in time
)

// abrupt reports whether the connection is closed without a close packet: the client has disconnected or does not read.
func (r Reason) abrupt() bool {
	return r == ReasonTransportClose || r == ReasonPingTimeout || r == ReasonSlow
}
