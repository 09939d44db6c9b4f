// Package natsfile stores files in a bucket of the JetStream object store, in its own format (ADR-20), so that `nats
// object ls FILES` and `nats object get` work on it.
//
// Chunks are published one by one, each waiting for its acknowledgement: an upload holds one chunk in memory, and the
// stream limits the sender's rate. The metadata of an object lists the stream sequences of its chunks; a reader
// requests each chunk by its sequence when it needs it. So a range is read without the bytes before it, and a slow
// reader holds one chunk instead of everything the server has already sent. Both ids of the format (the object's name
// and the NUID of its chunks) are the file's id: the stream's subjects alone show which objects have expired, and which
// chunks belong to none.
//
// An object exists once its metadata is published, which happens last. An interrupted upload leaves chunks that no
// object refers to; a removal deletes the metadata first.
package natsfile
