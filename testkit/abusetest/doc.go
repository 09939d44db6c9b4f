// Package abusetest makes requests that no client should send, out of those that it may: for each operation of an OpenAPI
// document its own examples, and then methods, paths, queries, headers, credentials, media types and bodies bent, one or
// several at once. A new operation is abused as soon as the document has it.
//
// Reading order: request.go (a request before net/http), operation.go (what the document promises), mutator.go (what is bent,
// the whole list), then a file for each thing that can be bent; words.go has the values that programs stumble over. The same
// seed makes the same requests.
package abusetest
