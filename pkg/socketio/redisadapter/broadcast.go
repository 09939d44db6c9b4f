package redisadapter

// Broadcasts of the classic format: an array in MessagePack. classic.go encodes and decodes everything else.

import (
	"encoding/json"
	"slices"

	"github.com/tinylib/msgp/msgp"

	"github.com/parley-chat/parley/pkg/socketio"
)

// eventType is the packet type of an event on the wire, with or without binary data.
const eventType = 2

// The headers of short arrays in MessagePack.
const (
	arrayOf3 = 0x93
	arrayOf4 = 0x94
)

// metadataMember is the option that contains a broadcast's metadata, in both formats. Official nodes ignore it.
const metadataMember = "metadata"

// appendBroadcast encodes [uid, packet, options] and, if MessagePack does not preserve the event's JSON byte for
// byte, appends the JSON as a fourth element: official nodes read only the first three.
func (c *classic) appendBroadcast(dst []byte, uid string, b *socketio.Broadcast) (string, []byte, error) {
	start := len(dst)
	dst = slices.Grow(dst, len(b.Data)+128)
	dst = append(dst, arrayOf3)
	dst = msgp.AppendString(dst, uid)
	dst = msgp.AppendMapHeader(dst, 3)
	dst = msgp.AppendString(dst, "type")
	dst = msgp.AppendUint64(dst, eventType)
	dst = msgp.AppendString(dst, "data")
	dst, exact, err := appendJSON(dst, b.Data, b.Attachments)
	if err != nil {
		return "", nil, err
	}
	dst = msgp.AppendString(dst, "nsp")
	dst = msgp.AppendString(dst, c.local.Name())
	dst = appendOptions(dst, b)
	if !exact {
		dst[start] = arrayOf4
		dst = msgp.AppendBytes(dst, b.Data)
	}
	if len(b.Rooms) == 1 {
		name, _ := c.roomChannel(b.Rooms[0])
		return name, dst, nil
	}
	return c.channel, dst, nil
}

// appendOptions appends the map of the options: rooms, except, flags and, if there is any, the metadata.
func appendOptions(dst []byte, b *socketio.Broadcast) []byte {
	if len(b.Metadata) == 0 {
		dst = msgp.AppendMapHeader(dst, 3)
	} else {
		dst = msgp.AppendMapHeader(dst, 4)
		dst = msgp.AppendString(dst, metadataMember)
		dst = msgp.AppendMapHeader(dst, uint32(len(b.Metadata)))
		for key, value := range b.Metadata {
			dst = msgp.AppendString(dst, key)
			dst = msgp.AppendString(dst, value)
		}
	}
	dst = msgp.AppendString(dst, "rooms")
	dst = appendStrings(dst, b.Rooms)
	dst = msgp.AppendString(dst, "except")
	dst = appendStrings(dst, b.Except)
	dst = msgp.AppendString(dst, "flags")
	if !b.Volatile {
		return msgp.AppendMapHeader(dst, 0)
	}
	dst = msgp.AppendMapHeader(dst, 1)
	dst = msgp.AppendString(dst, "volatile")
	return msgp.AppendBool(dst, true)
}

// appendStrings appends an array of strings, also for a nil list: official nodes expect an array.
func appendStrings(dst []byte, list []string) []byte {
	dst = msgp.AppendArrayHeader(dst, uint32(len(list)))
	for _, s := range list {
		dst = msgp.AppendString(dst, s)
	}
	return dst
}

// classicBroadcast is a decoded broadcast of another node.
type classicBroadcast struct {
	uid, nsp []byte
	socketio.Broadcast
	room [1]string // storage of Rooms for a single room
}

// decodeClassicBroadcast decodes a broadcast of appendBroadcast, an official node or an emitter. The result
// aliases payload.
func decodeClassicBroadcast(payload []byte) (*classicBroadcast, error) {
	n, b, err := msgp.ReadArrayHeaderBytes(payload)
	if err != nil || n < 3 {
		return nil, errMsgpack
	}
	m := &classicBroadcast{}
	m.uid, b, err = msgp.ReadStringZC(b)
	if err != nil {
		return nil, err
	}
	b, err = m.readPacket(b)
	if err != nil {
		return nil, err
	}
	b, err = m.readOptions(b)
	if err != nil {
		return nil, err
	}
	if n == 3 { // without the event as JSON
		return m, nil
	}
	if msgp.NextType(b) != msgp.BinType {
		_, err = msgp.Skip(b)
		return m, err
	}
	exact, _, err := msgp.ReadBytesZC(b)
	if json.Valid(exact) && exact[0] == '[' {
		m.Data = exact
	}
	return m, err
}

// eachMember iterates over a map: value is called with a member's name and the following bytes, and returns
// the bytes after the value.
func eachMember(b []byte, value func(name, b []byte) ([]byte, error)) ([]byte, error) {
	n, b, err := msgp.ReadMapHeaderBytes(b)
	for ; err == nil && n > 0; n-- {
		var name []byte
		name, b, err = msgp.ReadStringZC(b)
		if err == nil {
			b, err = value(name, b)
		}
	}
	return b, err
}

// readPacket reads the packet: the namespace and the event, which becomes JSON with placeholders.
func (m *classicBroadcast) readPacket(b []byte) ([]byte, error) {
	m.nsp = []byte("/")
	return eachMember(b, func(name, b []byte) (rest []byte, err error) {
		switch string(name) {
		case "nsp":
			m.nsp, rest, err = msgp.ReadStringZC(b)
		case "data":
			// estimate: adds quotes and commas, drops the surrounding names
			w := jsonWriter{dst: make([]byte, 0, len(b)+len(b)/8)}
			rest, err = w.value(b, 0)
			m.Data = w.dst
			m.Attachments = w.attachments
		default:
			rest, err = msgp.Skip(b)
		}
		return rest, err
	})
}

// readOptions reads the map of appendOptions. Unknown members are skipped.
func (m *classicBroadcast) readOptions(b []byte) ([]byte, error) {
	return eachMember(b, func(name, b []byte) (rest []byte, err error) {
		switch string(name) {
		case "rooms":
			m.Rooms, rest, err = readStrings(b, m.room[:0])
		case "except":
			m.Except, rest, err = readStrings(b, nil)
		case "flags":
			rest, err = eachMember(b, m.readFlag)
		case metadataMember:
			rest, err = eachMember(b, m.readMetadata)
		default:
			rest, err = msgp.Skip(b)
		}
		return rest, err
	})
}

// readFlag reads one flag. All flags but volatile concern acknowledgements or other transports, and are
// skipped.
func (m *classicBroadcast) readFlag(name, b []byte) (rest []byte, err error) {
	if string(name) == "volatile" && msgp.NextType(b) == msgp.BoolType {
		m.Volatile, rest, err = msgp.ReadBoolBytes(b)
		return rest, err
	}
	return msgp.Skip(b)
}

// readMetadata reads one member of the metadata.
func (m *classicBroadcast) readMetadata(name, b []byte) (rest []byte, err error) {
	if m.Metadata == nil {
		m.Metadata = make(map[string]string)
	}
	m.Metadata[string(name)], rest, err = msgp.ReadStringBytes(b)
	return rest, err
}

// readStrings appends an array of strings, or of numbers, which JavaScript nodes may send, to list. Nil is read as an
// empty array.
func readStrings(b []byte, list []string) ([]string, []byte, error) {
	if msgp.IsNil(b) {
		rest, err := msgp.ReadNilBytes(b)
		return nil, rest, err
	}
	n, b, err := msgp.ReadArrayHeaderBytes(b)
	for ; err == nil && n > 0; n-- {
		var name []byte
		switch msgp.NextType(b) {
		case msgp.StrType:
			name, b, err = msgp.ReadStringZC(b)
		case msgp.IntType, msgp.UintType, msgp.Float32Type, msgp.Float64Type:
			w := jsonWriter{}
			b, err = w.scalar(b)
			name = w.dst
		default:
			err = errMsgpack
		}
		list = append(list, string(name))
	}
	return list, b, err
}
