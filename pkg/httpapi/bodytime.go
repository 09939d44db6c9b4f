package httpapi

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

// This file bounds how long a client may take to send a body. [Memory] counts the large ones. A small body is not
// counted, and neither is one that no handler reads, of which net/http reads the rest before it answers: each of them
// would hold a connection and its goroutine until the server's read timeout. So they have a short deadline. A client
// that misses it has held no more than one that never finished its headers.
//
// Uploads have their own deadlines, see package form.

// defaultSmallBodyTime is how long a client may take for a small body.
const defaultSmallBodyTime = readHeaderTimeout

// expectBody sets the deadline of the client for its body, unless that is complete: net/http has ended the deadline
// then, and another would end the request. It has no effect on the writer of a test, which has no deadlines.
func expectBody(c echo.Context, within time.Duration) {
	if s := scopeOf(c.Request().Context()); s != nil && s.bodyRead {
		return
	}
	connection := http.NewResponseController(c.Response().Writer)
	_ = connection.SetReadDeadline(time.Now().Add(within))
}

// smallBodyTimeOf returns how long the client of a request may take for a small body.
func smallBodyTimeOf(c echo.Context) time.Duration {
	if s := scopeOf(c.Request().Context()); s != nil {
		return s.smallBodyTime
	}
	return defaultSmallBodyTime
}
