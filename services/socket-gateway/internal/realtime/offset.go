package realtime

import (
	"crypto/rand"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/parley-chat/parley/pkg/event"
)

// Each reply carries its offset: the sequence of its reply in the stream, in decimal, as the last argument. The official
// clients keep the offset of the last event that they have had, and show it, with the pid of their session, when they
// connect again (Socket.IO protocol, "Connection state recovery").

// payload is what a socket gets of a reply.
func payload(e *event.Reply) json.RawMessage {
	return appendPayload(nil, e)
}

func appendPayload(dst []byte, e *event.Reply) []byte {
	e.Message.IsFromSupport = true // by definition, whatever a processing layer left out
	dst = e.Message.AppendDelivery(dst, e.ChatID)
	if e.Receipt {
		dst = append(dst[:len(dst)-1], receiptTail...)
	}
	return dst
}

func formatOffset(sequence uint64) string { return strconv.FormatUint(sequence, 10) }

// parseOffset takes what formatOffset writes, and nothing else.
func parseOffset(s string) (sequence uint64, ok bool) {
	sequence, err := strconv.ParseUint(s, 10, 64)
	if err != nil || formatOffset(sequence) != s {
		return 0, false
	}
	return sequence, true
}

const (
	eventHead = `["` + Event + `",`
	maxOffset = 24 // bytes of an offset with its JSON syntax
)

// encodeReply returns the JSON array of the event's name and arguments. size is about what the reply takes.
func encodeReply(e *event.Reply, offset uint64, size int) []byte {
	dst := append(make([]byte, 0, len(eventHead)+size+maxOffset), eventHead...)
	dst = strconv.AppendUint(append(appendPayload(dst, e), `,"`...), offset, 10)
	return append(dst, `"]`...)
}

// newPID returns the name of a session that begins at a position of the stream. It holds all that any gateway must know to
// recover a client that has not had an event yet, and is no secret: rooms come from the token alone.
func newPID(position uint64, stream time.Time) string {
	return strconv.FormatUint(position, 36) + "." + epoch(stream) + "." + rand.Text()[:12]
}

// epoch tells streams of the same name apart: the sequences of one mean nothing in the other.
func epoch(created time.Time) string { return strconv.FormatInt(created.UnixNano(), 36) }

func parsePID(pid string, stream time.Time) (position uint64, ok bool) {
	parts := strings.Split(pid, ".")
	if len(pid) > 64 || len(parts) != 3 || parts[1] != epoch(stream) {
		return 0, false
	}
	position, err := strconv.ParseUint(parts[0], 36, 64)
	return position, err == nil
}
