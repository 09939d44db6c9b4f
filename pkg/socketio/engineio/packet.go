package engineio

import "errors"

// PacketType is the first character of an Engine.IO packet (protocol, "Protocol").
type PacketType byte

// The packet types of revision 4.
const (
	Open        PacketType = '0'
	Close       PacketType = '1'
	Ping        PacketType = '2'
	Pong        PacketType = '3'
	MessageType PacketType = '4'
	Upgrade     PacketType = '5'
	Noop        PacketType = '6'
)

// ErrPacket is returned for malformed packets.
var ErrPacket = errors.New("engineio: malformed packet")

// Packet is a decoded Engine.IO packet. A binary packet is always a message.
type Packet struct {
	Type   PacketType
	Binary bool
	Data   []byte
}

// ParsePacket decodes the content of one WebSocket message (protocol, "Packet encoding, WebSocket").
// Data of the result aliases data.
func ParsePacket(data []byte, binary bool) (Packet, error) {
	if binary {
		return Packet{Type: MessageType, Binary: true, Data: data}, nil
	}
	if len(data) == 0 || data[0] < byte(Open) || data[0] > byte(Noop) {
		return Packet{}, ErrPacket
	}
	return Packet{Type: PacketType(data[0]), Data: data[1:]}, nil
}

// AppendPacket appends p encoded as text. p must not be binary.
func AppendPacket(dst []byte, p Packet) []byte {
	return append(append(dst, byte(p.Type)), p.Data...)
}
