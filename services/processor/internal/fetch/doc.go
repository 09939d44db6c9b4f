// Package fetch fetches the texts of documents from their addresses, by the schedules that companies give them.
//
// service.go finds the documents that are due and writes what came of each fetch; client.go makes the requests; robots.go
// has the rules of the sites, turn.go the pause between two requests to one host, text.go reads the answers.
//
// Invariants: a request connects to what package guard allows only, also after a redirect and for robots.txt. A document is
// claimed before its fetch; if the process is killed, it is due again when the lease ends. A result is written only if
// nobody has changed the document meanwhile. A failed fetch keeps the text.
package fetch
