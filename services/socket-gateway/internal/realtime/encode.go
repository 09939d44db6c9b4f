package realtime

import (
	"crypto/rand"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/parley-chat/parley/pkg/event"
)

// The bytes of a reply on the wire: publish.go and outage.go encode whole events, recover.go encodes payloads.
//
// The last argument of each reply event is its offset: the stream sequence in decimal. The official clients
// store the offset of the last event that they received and send it, with the pid of their session, when they
// reconnect (Socket.IO protocol, "Connection state recovery").

// payload returns the event argument for a reply.
func payload(e *event.Reply) json.RawMessage {
	return appendPayload(nil, e)
}

// appendPayload appends the event argument for a reply.
func appendPayload(dst []byte, e *event.Reply) []byte {
	e.Message.IsFromSupport = true // by definition of a reply, even if the publisher omitted it
	dst = e.Message.AppendDelivery(dst, e.ChatID)
	if e.Receipt {
		dst = append(dst[:len(dst)-1], receiptTail...)
	}
	return dst
}

// formatOffset returns the offset of a stream sequence.
func formatOffset(sequence uint64) string { return strconv.FormatUint(sequence, 10) }

// parseOffset accepts only the output of formatOffset.
func parseOffset(s string) (sequence uint64, ok bool) {
	sequence, err := strconv.ParseUint(s, 10, 64)
	if err != nil || formatOffset(sequence) != s {
		return 0, false
	}
	return sequence, true
}

const (
	eventHead = `["` + eventMessage + `",`
	maxOffset = 24 // bytes of an offset with its JSON syntax
)

// encodeReply returns the JSON array of the event's name and arguments. size is the estimated size of the
// reply in bytes.
func encodeReply(e *event.Reply, offset uint64, size int) []byte {
	dst := make([]byte, 0, len(eventHead)+size+maxOffset)
	dst = append(dst, eventHead...)
	dst = appendPayload(dst, e)
	dst = append(dst, `,"`...)
	dst = strconv.AppendUint(dst, offset, 10)
	return append(dst, `"]`...)
}

// newPID returns the pid of a session that starts after an offset. With it, any gateway can recover a
// client that has not received an event yet. It is not a secret: the room depends only on the token.
func newPID(after uint64, epoch time.Time) string {
	return strconv.FormatUint(after, 36) + "." + formatEpoch(epoch) + "." + rand.Text()[:12]
}

// formatEpoch returns the text of an epoch of the stream in pids.
func formatEpoch(epoch time.Time) string { return strconv.FormatInt(epoch.UnixNano(), 36) }

// parsePID returns the offset in a pid. It refuses pids of another epoch, and what newPID does not return.
func parsePID(pid string, epoch time.Time) (after uint64, ok bool) {
	parts := strings.Split(pid, ".")
	if len(pid) > 64 || len(parts) != 3 || parts[1] != formatEpoch(epoch) {
		return 0, false
	}
	after, err := strconv.ParseUint(parts[0], 36, 64)
	return after, err == nil
}
