// Package natsfile keeps files in a bucket of the JetStream object store, in its own format (ADR-20), so that `nats object ls FILES`
// and `nats object get` work on it.
//
// Chunks go out one by one and each waits for its acknowledgement: an upload holds one chunk in memory, and the stream's own pace
// is the sender's. The metadata of an object lists the stream sequences of its chunks; a reader asks for each chunk by its
// sequence when it is due. So a range is read without what stands before it, and a slow reader holds one chunk, not what
// the server has already sent. Both ids of the format (the object's name and the NUID of its chunks) are the file's id: which
// objects have expired, and which chunks belong to none, is told by the stream's subjects alone.
//
// An object is there with its metadata, which is published last. An upload that was cut off before leaves chunks that no
// object refers to; a removal takes the metadata first.
package natsfile
