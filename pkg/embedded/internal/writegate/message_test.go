package writegate

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// wireMessage builds a message with a true length.
func wireMessage(requestID, opCode uint32, body []byte) message {
	m := binary.LittleEndian.AppendUint32(nil, uint32(headerLength+len(body)))
	m = binary.LittleEndian.AppendUint32(m, requestID)
	m = binary.LittleEndian.AppendUint32(m, 0)
	m = binary.LittleEndian.AppendUint32(m, opCode)
	return append(m, body...)
}

// commandMessage builds an OP_MSG with flags, whose body has the command as its first key, after a document sequence if asked.
func commandMessage(t testing.TB, flags uint32, sequenceFirst bool, command bson.D) message {
	t.Helper()
	document, err := bson.Marshal(command)
	if err != nil {
		t.Fatalf("encoding a command: %v", err)
	}
	body := binary.LittleEndian.AppendUint32(nil, flags)
	if sequenceFirst {
		sequence := append([]byte("documents\x00"), document...)
		body = append(body, sectionSequence)
		body = binary.LittleEndian.AppendUint32(body, uint32(4+len(sequence)))
		body = append(body, sequence...)
	}
	body = append(append(body, sectionBody), document...)
	if flags&flagChecksumPresent != 0 {
		body = append(body, 1, 2, 3, 4)
	}
	return wireMessage(7, opMsg, body)
}

func TestOnlyReads(t *testing.T) {
	t.Parallel()
	named := func(name string) message { return commandMessage(t, 0, false, bson.D{{Key: name, Value: "c"}}) }
	for _, test := range []struct {
		why  string
		m    message
		want bool
	}{
		{"find", named("find"), true},
		{"hello", named("hello"), true},
		{"the old handshake", wireMessage(1, opQuery, []byte{0}), true},
		{"a find behind a sequence", commandMessage(t, 0, true, bson.D{{Key: "find", Value: "c"}}), true},
		{"insert", named("insert"), false},
		{"update", named("update"), false},
		{"findAndModify", named("findAndModify"), false},
		{"an insert behind a sequence", commandMessage(t, 0, true, bson.D{{Key: "insert", Value: "c"}}), false},
		{"a command nobody knows", named("frobnicate"), false},
		{"find as a later key", commandMessage(t, 0, false, bson.D{{Key: "drop", Value: "c"}, {Key: "find", Value: "c"}}), false},
		{"an empty document", commandMessage(t, 0, false, bson.D{}), false},
		{"no sections", wireMessage(1, opMsg, []byte{0, 0, 0, 0}), false},
		{"no flags", wireMessage(1, opMsg, []byte{0}), false},
		{"only a header", wireMessage(1, opMsg, nil), false},
		{"a key without an end", wireMessage(1, opMsg, append([]byte{0, 0, 0, 0, 0}, "\x09\x00\x00\x00\x02find"...)), false},
		{"a sequence longer than the message", wireMessage(1, opMsg, []byte{0, 0, 0, 0, 1, 99, 0, 0, 0}), false},
		{"a sequence without length", wireMessage(1, opMsg, []byte{0, 0, 0, 0, 1, 0, 0, 0, 0, 0}), false},
		{"a kind nobody knows", wireMessage(1, opMsg, []byte{0, 0, 0, 0, 9}), false},
		{"compressed", wireMessage(1, 2012, make([]byte, 40)), false},
	} {
		if got := test.m.onlyReads(); got != test.want {
			t.Errorf("%s: got %v, want %v", test.why, got, test.want)
		}
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	insert := bson.D{{Key: "insert", Value: "c"}, {Key: "ordered", Value: true}, {Key: "$db", Value: "d"}}
	for _, test := range []struct {
		why  string
		m    message
		want Write
	}{
		{"an insert", commandMessage(t, 0, false, insert), Write{"insert", "d", "c"}},
		{"behind a sequence, with a checksum", commandMessage(t, flagChecksumPresent, true, insert), Write{"insert", "d", "c"}},
		{"a command on a database", commandMessage(t, 0, false, bson.D{{Key: "dropDatabase", Value: 1}, {Key: "$db", Value: "d"}}), Write{"dropDatabase", "d", ""}},
		{"no database", commandMessage(t, 0, false, bson.D{{Key: "insert", Value: "c"}}), Write{"insert", "", "c"}},
		{"no sections", wireMessage(1, opMsg, []byte{0, 0, 0, 0}), Write{}},
		{"a document that is cut", wireMessage(1, opMsg, append([]byte{0, 0, 0, 0, 0}, "\x99\x00\x00\x00\x02insert\x00\x02\x00"...)), Write{Command: "insert"}},
		{"compressed", wireMessage(1, 2012, make([]byte, 40)), Write{}},
	} {
		if got := test.m.write(); got != test.want {
			t.Errorf("%s: got %+v, want %+v", test.why, got, test.want)
		}
	}
}

func TestAsSingle(t *testing.T) {
	t.Parallel()
	command := bson.D{{Key: "insert", Value: "c"}}
	for _, test := range []struct {
		why         string
		flags, want uint32
		answered    bool
	}{
		{"nothing", 0, 0, true},
		{"a checksum stays", flagChecksumPresent, flagChecksumPresent, true},
		{"no reply wanted", flagMoreToCome, 0, false},
		{"many replies allowed", flagExhaustAllowed, 0, true},
		{"all at once", flagMoreToCome | flagExhaustAllowed | flagChecksumPresent, 0, false},
		{"unknown flags stay", 1<<17 | flagMoreToCome, 1 << 17, false},
	} {
		m, answered := commandMessage(t, test.flags, false, command).asSingle()
		plain := commandMessage(t, test.want, false, command)
		if answered != test.answered || !bytes.Equal(m, plain) {
			t.Errorf("%s: got %x, %v, want %x, %v", test.why, m, answered, plain, test.answered)
		}
	}
}

func TestReadMessageIsBounded(t *testing.T) {
	t.Parallel()
	header := func(length int32) []byte {
		return append(binary.LittleEndian.AppendUint32(nil, uint32(length)), make([]byte, 12)...)
	}
	for _, length := range []int32{-1, 0, headerLength - 1, maxMessageLength + 1, 1<<31 - 1} {
		if _, err := readMessage(bytes.NewReader(header(length))); err == nil {
			t.Errorf("a length of %d: got no error", length)
		}
	}
	if m, err := readMessage(bytes.NewReader(header(headerLength))); err != nil || len(m) != headerLength {
		t.Errorf("only a header: got %d bytes, %v", len(m), err)
	}
	if m, err := readMessage(io.MultiReader(bytes.NewReader(header(maxMessageLength)), zeros{})); err != nil || len(m) != maxMessageLength {
		t.Errorf("the longest message: got %d bytes, %v, want %d", len(m), err, maxMessageLength)
	}
	if _, err := readMessage(bytes.NewReader(header(100))); !errors.Is(err, io.EOF) {
		t.Errorf("a message that is cut: got %v, want the end of input", err)
	}
}

// TestReadMessageTakesWhatComes has a header claim the longest message and nothing follow: no memory for the claim.
func TestReadMessageTakesWhatComes(t *testing.T) {
	t.Parallel()
	claim := append(binary.LittleEndian.AppendUint32(nil, maxMessageLength), make([]byte, 12)...)
	perRun := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := readMessage(bytes.NewReader(claim)); err == nil {
				b.Fatal("got no error")
			}
		}
	}).AllocedBytesPerOp()
	if perRun > 64<<10 {
		t.Errorf("got %d bytes allocated for a message that did not come, want a few", perRun)
	}
}

// zeros never ends.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func FuzzMessage(f *testing.F) {
	f.Add([]byte(commandMessage(f, 0, false, bson.D{{Key: "find", Value: "c"}})))
	f.Add([]byte(commandMessage(f, flagMoreToCome|flagChecksumPresent, true, bson.D{{Key: "insert", Value: "c"}})))
	f.Add([]byte(wireMessage(1, opMsg, []byte{0, 0, 0, 0, 1, 99, 0, 0, 0})))
	f.Add([]byte(wireMessage(1, opMsg, append(binary.LittleEndian.AppendUint32(nil, flagMoreToCome|flagChecksumPresent), 0))))
	f.Fuzz(func(t *testing.T, input []byte) {
		m, err := readMessage(bytes.NewReader(input))
		if err != nil {
			return
		}
		if length, err := lengthOf(m); err != nil || length != len(m) || !bytes.HasPrefix(input, m) {
			t.Fatalf("got %d bytes of a message of %d, %v", len(m), length, err)
		}
		if w := m.write(); w.Command != m.command() {
			t.Fatalf("got the command %q of a write, want %q", w.Command, m.command())
		}
		reads := m.onlyReads()
		single := bytes.Clone(m)
		after, _ := message(single).asSingle()
		if length, err := lengthOf(after); err != nil || length != len(after) || after.flags()&(flagMoreToCome|flagExhaustAllowed) != 0 {
			t.Fatalf("as a single request: got %x, %v", after, err)
		}
		if reads && !after.onlyReads() && len(after) == len(m) {
			t.Fatalf("got a write of a read: %x", after)
		}
	})
}
