// Package abusetest generates invalid requests from valid ones: for each operation of an OpenAPI document it
// takes the examples, and changes methods, paths, queries, headers, credentials, media types and bodies, one
// or several at once. A new operation of the document is included automatically.
//
// Reading order: request.go (a request before net/http), operation.go (the operations of the document),
// mutator.go (the list of mutations), then a file per mutated part; words.go has values that often break
// programs. The same seed generates the same requests.
package abusetest
