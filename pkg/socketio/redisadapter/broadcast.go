package redisadapter

import (
	"encoding/json"
	"slices"

	"github.com/parley-chat/parley/pkg/socketio"
)

// eventType is the packet type of an event on the wire, binary or not.
const eventType = 2

// metadataMember is where a broadcast's options have its metadata, in both formats. Official nodes ignore it.
const metadataMember = "metadata"

// appendBroadcast writes [uid, packet, options], and after it the event's JSON if MessagePack cannot
// carry it byte for byte: the official nodes read the first three.
func (c *classic) appendBroadcast(dst []byte, b *socketio.Broadcast) (string, []byte, error) {
	start := len(dst)
	dst = slices.Grow(dst, len(b.Data)+128)
	dst = appendString(append(dst, 0x93), c.uid)
	dst = appendString(appendMapHead(dst, 3), "type")
	dst = appendString(appendUint(dst, eventType), "data")
	dst, exact, err := appendJSON(dst, b.Data, b.Attachments)
	if err != nil {
		return "", nil, err
	}
	dst = appendString(appendString(dst, "nsp"), c.local.Name())
	dst = appendOptions(dst, b)
	if !exact {
		dst[start] = 0x94
		dst = appendBinary(dst, b.Data)
	}
	if len(b.Rooms) == 1 {
		name, _ := c.roomChannel(b.Rooms[0])
		return name, dst, nil
	}
	return c.channel, dst, nil
}

func appendOptions(dst []byte, b *socketio.Broadcast) []byte {
	if len(b.Metadata) == 0 {
		dst = appendMapHead(dst, 3)
	} else {
		dst = appendMapHead(appendString(appendMapHead(dst, 4), metadataMember), len(b.Metadata))
		for key, value := range b.Metadata {
			dst = appendString(appendString(dst, key), value)
		}
	}
	dst = appendStrings(appendString(dst, "rooms"), b.Rooms)
	dst = appendStrings(appendString(dst, "except"), b.Except)
	dst = appendString(dst, "flags")
	if !b.Volatile {
		return appendMapHead(dst, 0)
	}
	return appendBool(appendString(appendMapHead(dst, 1), "volatile"), true)
}

func appendStrings(dst []byte, list []string) []byte {
	dst = appendArrayHead(dst, len(list))
	for _, s := range list {
		dst = appendString(dst, s)
	}
	return dst
}

// classicBroadcast is a decoded broadcast of another node.
type classicBroadcast struct {
	uid, nsp string
	socketio.Broadcast
	room [1]string // holds Rooms if there is but one
}

// decodeClassicBroadcast reads what appendBroadcast, or an official node or emitter, has written.
func decodeClassicBroadcast(payload string) (*classicBroadcast, error) {
	r := reader{payload}
	n, err := r.expect(kindArray)
	if err != nil || n < 3 {
		return nil, errMsgpack
	}
	m := &classicBroadcast{}
	if m.uid, err = r.text(); err != nil {
		return nil, err
	}
	if err := m.readPacket(&r); err != nil {
		return nil, err
	}
	if err := m.readOptions(&r); err != nil {
		return nil, err
	}
	if n == 3 {
		return m, nil
	}
	t, err := r.next()
	if err != nil {
		return nil, err
	}
	if exact := []byte(t.s); t.kind == kindBinary && json.Valid(exact) && exact[0] == '[' {
		m.Data = exact
	}
	return m, nil
}

func (m *classicBroadcast) readPacket(r *reader) error {
	m.nsp = "/"
	n, err := r.expect(kindMap)
	for ; err == nil && n > 0; n-- {
		var key string
		if key, err = r.text(); err != nil {
			return err
		}
		switch key {
		case "nsp":
			m.nsp, err = r.text()
		case "data":
			w := jsonWriter{dst: make([]byte, 0, len(r.s)+len(r.s)/8)} // quotes and commas, less the names around
			err = w.value(r, 0)
			m.Data, m.Attachments = w.dst, w.attachments
		default:
			err = r.skip()
		}
	}
	return err
}

func (m *classicBroadcast) readOptions(r *reader) error {
	n, err := r.expect(kindMap)
	for ; err == nil && n > 0; n-- {
		var key string
		if key, err = r.text(); err != nil {
			return err
		}
		switch key {
		case "rooms":
			m.Rooms, err = readStrings(r, m.room[:0])
		case "except":
			m.Except, err = readStrings(r, nil)
		case "flags":
			err = m.readFlags(r)
		case metadataMember:
			m.Metadata, err = readMetadata(r)
		default:
			err = r.skip()
		}
	}
	return err
}

func (m *classicBroadcast) readFlags(r *reader) error {
	n, err := r.expect(kindMap)
	for ; err == nil && n > 0; n-- {
		var key string
		if key, err = r.text(); err != nil {
			return err
		}
		if key != "volatile" {
			err = r.skip()
			continue
		}
		var t token
		t, err = r.next()
		m.Volatile = t.kind == kindBool && t.u == 1
	}
	return err
}

// readMetadata reads a map of strings.
func readMetadata(r *reader) (map[string]string, error) {
	n, err := r.expect(kindMap)
	if err != nil {
		return nil, err
	}
	metadata := make(map[string]string, min(n, 8)) // the sender may claim any number
	for ; n > 0; n-- {
		key, err := r.text()
		if err != nil {
			return nil, err
		}
		if metadata[key], err = r.text(); err != nil {
			return nil, err
		}
	}
	return metadata, nil
}

// readStrings appends an array of strings, or of numbers as JavaScript may send them, to list. Nil is an
// empty array.
func readStrings(r *reader, list []string) ([]string, error) {
	head, err := r.next()
	switch {
	case err != nil:
		return nil, err
	case head.kind == kindNil:
		return nil, nil
	case head.kind != kindArray:
		return nil, errMsgpack
	}
	for range head.n {
		t, err := r.next()
		if err != nil {
			return nil, err
		}
		switch t.kind {
		case kindString:
			list = append(list, t.s)
		case kindInt, kindUint, kindFloat:
			w := jsonWriter{}
			w.scalar(t)
			list = append(list, string(w.dst))
		default:
			return nil, errMsgpack
		}
	}
	return list, nil
}
