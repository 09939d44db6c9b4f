package writegate

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Sizes, operation codes and flags of MongoDB's wire protocol (MongoDB manual, "Wire Protocol").
const (
	headerLength     = 16
	maxMessageLength = 48_000_000

	opMsg   = 2013
	opQuery = 2004 // only ever the first handshake of old drivers

	flagChecksumPresent = 1 << 0
	flagMoreToCome      = 1 << 1
	flagExhaustAllowed  = 1 << 16

	msgFlagsOffset    = headerLength
	msgSectionsOffset = headerLength + 4
	checksumLength    = 4

	sectionBody     = 0 // one document
	sectionSequence = 1 // a size, a name and documents
)

// message is one whole wire message, header included.
type message []byte

// readMessage takes in one whole message. Memory grows with what arrives, not with what a header claims.
func readMessage(r io.Reader) (message, error) {
	header := make([]byte, headerLength)
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, err
	}
	length, err := lengthOf(header)
	if err != nil {
		return nil, err
	}
	b := bytes.NewBuffer(append(make([]byte, 0, min(length, 4096)), header...))
	if _, err := io.CopyN(b, r, int64(length-headerLength)); err != nil {
		return nil, fmt.Errorf("reading a message of %d bytes: %w", length, err)
	}
	return b.Bytes(), nil
}

// lengthOf reads a message's length from its header.
func lengthOf(header []byte) (int, error) {
	length := int(int32(binary.LittleEndian.Uint32(header)))
	if length < headerLength || length > maxMessageLength {
		return 0, fmt.Errorf("a message of %d bytes is not between %d and %d", length, headerLength, maxMessageLength)
	}
	return length, nil
}

func (m message) opCode() uint32 { return binary.LittleEndian.Uint32(m[12:headerLength]) }

// flags are those of an OP_MSG; other messages have none that matter here.
func (m message) flags() uint32 {
	if m.opCode() != opMsg || len(m) < msgSectionsOffset {
		return 0
	}
	return binary.LittleEndian.Uint32(m[msgFlagsOffset:])
}

// asSingle turns m into a request that has exactly one reply, and reports whether the client waits for that reply. A client
// that wants none (moreToCome) must still be awaited, so that its write is over before the next; one that would take many
// (exhaustAllowed) gets one, which the protocol leaves to the server.
func (m message) asSingle() (single message, answered bool) {
	flags := m.flags()
	if flags&(flagMoreToCome|flagExhaustAllowed) == 0 {
		return m, true
	}
	answered = flags&flagMoreToCome == 0
	if flags&flagChecksumPresent != 0 && len(m) >= msgSectionsOffset+checksumLength {
		m = m[:len(m)-checksumLength] // it covers the flags that change
		binary.LittleEndian.PutUint32(m, uint32(len(m)))
		flags &^= flagChecksumPresent
	}
	binary.LittleEndian.PutUint32(m[msgFlagsOffset:], flags&^(flagMoreToCome|flagExhaustAllowed))
	return m, answered
}

// onlyReads reports whether m surely changes no document. What is not known counts as a write; aggregate is a read because the
// engine has no stage that writes.
func (m message) onlyReads() bool {
	if m.opCode() == opQuery {
		return true
	}
	switch m.command() {
	case "find", "getMore", "count", "distinct", "aggregate", "explain",
		"hello", "isMaster", "ismaster", "ping", "buildInfo", "buildinfo", "whatsmyuri", "connectionStatus",
		"serverStatus", "hostInfo", "getParameter", "getLog", "getCmdLineOpts", "dbStats", "collStats",
		"listCollections", "listDatabases", "listIndexes", "listCommands", "killCursors", "endSessions":
		return true
	}
	return false
}

// command is the name of the command of an OP_MSG: the first key of its body. It is empty when there is none.
func (m message) command() string { return firstKey(m.body()) }

// write reads where m writes: the first value of a command's body names the collection, $db the database.
func (m message) write() Write {
	w := Write{Command: m.command()}
	body := bson.Raw(m.body())
	w.Database, _ = body.Lookup("$db").StringValueOK()
	w.Collection, _ = body.Lookup(w.Command).StringValueOK()
	return w
}

// body is the document of an OP_MSG that holds the command, with whatever follows it, or nil.
func (m message) body() []byte {
	if m.opCode() != opMsg || len(m) < msgSectionsOffset {
		return nil
	}
	sections := m[msgSectionsOffset:]
	for len(sections) > 0 {
		kind, rest := sections[0], sections[1:]
		if kind == sectionBody {
			return rest
		}
		if kind != sectionSequence || len(rest) < 4 {
			return nil
		}
		size := int(int32(binary.LittleEndian.Uint32(rest)))
		if size < 4 || size > len(rest) {
			return nil
		}
		sections = rest[size:]
	}
	return nil
}

// firstKey is the first key of a BSON document: after its length, a type and a zero-terminated name (bsonspec.org).
func firstKey(document []byte) string {
	const nameOffset = 5
	if len(document) < nameOffset || document[nameOffset-1] == 0 {
		return ""
	}
	name, _, terminated := bytes.Cut(document[nameOffset:], []byte{0})
	if !terminated {
		return ""
	}
	return string(name)
}
