package bot

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/chat"
)

// replyID derives the id of answer number i to m: a UUID in the form of version 7 (RFC 9562 section 5.7) whose time is just after
// m's and whose other bits are a hash. It depends only on m and i, and sorts after m's own id and by i.
func replyID(m chat.Message, i int) string {
	sum := sha256.Sum256(binary.BigEndian.AppendUint32([]byte(m.ID), uint32(i)))
	var id uuid.UUID
	copy(id[:], sum[:])
	at := uint64(m.CreatedAt.Add(time.Duration(i+1) * time.Millisecond).UnixMilli())
	var millis [8]byte
	binary.BigEndian.PutUint64(millis[:], at)
	copy(id[:6], millis[2:])
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}
