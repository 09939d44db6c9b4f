// Package s3file keeps files in a bucket of Amazon S3 or of anything that speaks its protocol (MinIO, Ceph, ...). The bucket must
// be there.
//
// An object's key is files/ and the file's id, so that the objects that have expired are the first of a listing. What fits into
// one part (5 MiB, the least that S3 takes) goes out in one request, the rest as a multipart upload: an upload holds one part in
// memory. Ranges are read with ranged requests. An upload that was cut off by the end of its process leaves an unfinished
// multipart upload, which Sweep ends.
package s3file
