package bus

// Crash breaks the connection off for good, as the end of the process would: nothing is drained, given back or said.
func (b *Bus) Crash() { b.conn.Close() }

// Waiting is how many publishers wait for an acknowledgement.
func (b *Bus) Waiting() int { return b.acks.waiting() }
