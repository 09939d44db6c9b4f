// Package s3file stores files in a bucket of Amazon S3 or a compatible server (MinIO, Ceph, ...). The bucket must
// exist.
//
// An object's key is files/ and the file's id, so that a listing begins with the expired objects. Content that fits
// into one part (5 MiB, the minimum of S3) is sent in one request, larger content as a multipart upload: an upload
// holds one part in memory. Ranges are read with range requests. An upload interrupted by the end of its process leaves
// an unfinished multipart upload, which Sweep aborts.
package s3file
