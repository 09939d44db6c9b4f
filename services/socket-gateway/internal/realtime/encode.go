package realtime

import (
	"crypto/rand"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/event"
)

// The bytes of a reply on the wire: publish.go and outage.go encode whole events, recover.go encodes payloads.
//
// The last argument of each reply event is its offset: the stream sequence in decimal and the time at which the
// stream stored the reply, in milliseconds in base 36. The official clients store the offset of the last event that
// they received and send it, with the pid of their session, when they reconnect (Socket.IO protocol, "Connection
// state recovery").

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

// formatOffset returns the offset of a stored reply.
func formatOffset(at bus.Place) string { return string(appendOffset(nil, at)) }

// appendOffset appends the offset of a stored reply.
func appendOffset(dst []byte, at bus.Place) []byte {
	dst = strconv.AppendUint(dst, at.Sequence, 10)
	dst = append(dst, '.')
	return strconv.AppendInt(dst, at.Time.UnixMilli(), 36)
}

// parseOffset accepts only the output of formatOffset.
func parseOffset(s string) (at bus.Place, ok bool) {
	first, second, _ := strings.Cut(s, ".")
	sequence, err := strconv.ParseUint(first, 10, 64)
	if err != nil {
		return bus.Place{}, false
	}
	ms, err := strconv.ParseInt(second, 36, 64)
	if err != nil {
		return bus.Place{}, false
	}
	at = bus.Place{Sequence: sequence, Time: time.UnixMilli(ms)}
	return at, formatOffset(at) == s
}

const (
	eventHead = `["` + eventMessage + `",`
	maxOffset = 40 // bytes of an offset with its JSON syntax
)

// encodeReply returns the JSON array of the event's name and arguments. size is the estimated size of the
// reply in bytes.
func encodeReply(e *event.Reply, at bus.Place, size int) []byte {
	dst := make([]byte, 0, len(eventHead)+size+maxOffset)
	dst = append(dst, eventHead...)
	dst = appendPayload(dst, e)
	dst = append(dst, `,"`...)
	dst = appendOffset(dst, at)
	return append(dst, `"]`...)
}

// newPID returns the pid of a session that starts after a place. With it, any gateway can recover a
// client that has not received an event yet. It is not a secret: the room depends only on the token.
func newPID(after bus.Place, epoch time.Time) string {
	return strings.Join([]string{formatOffset(after), formatEpoch(epoch), rand.Text()[:12]}, ".")
}

// formatEpoch returns the text of an epoch of the stream in pids.
func formatEpoch(epoch time.Time) string { return strconv.FormatInt(epoch.UnixNano(), 36) }

// parsePID returns the place in a pid. It refuses pids of another epoch, and what newPID does not return.
func parsePID(pid string, epoch time.Time) (after bus.Place, ok bool) {
	parts := strings.Split(pid, ".")
	if len(pid) > maxPID || len(parts) != 4 || parts[2] != formatEpoch(epoch) {
		return bus.Place{}, false
	}
	return parseOffset(parts[0] + "." + parts[1])
}

// maxPID is the size of a pid in bytes, at most.
const maxPID = 80
