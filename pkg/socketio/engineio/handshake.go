package engineio

// The HTTP side of a WebSocket (RFC 6455 §4.2): open.go calls it before it takes the connection over.

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"strings"
)

// websocketGUID is the constant of RFC 6455 §1.3.
const websocketGUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

var errHandshake = errors.New("websocket: malformed handshake")

// isWebSocketUpgrade reports whether r requests the WebSocket protocol (RFC 6455 §4.2.1).
func isWebSocketUpgrade(r *http.Request) bool {
	return r.Method == http.MethodGet &&
		headerHasToken(r.Header, "Connection", "upgrade") &&
		headerHasToken(r.Header, "Upgrade", "websocket")
}

// headerHasToken reports whether a header lists a token, in any case (RFC 9110 §5.6.1).
func headerHasToken(h http.Header, name, token string) bool {
	for _, line := range h.Values(name) {
		for part := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(part), token) {
				return true
			}
		}
	}
	return false
}

// checkKey validates the version and the nonce of an upgrade request.
func checkKey(r *http.Request) (string, error) {
	if r.Header.Get("Sec-WebSocket-Version") != "13" {
		return "", errHandshake
	}
	key := r.Header.Get("Sec-WebSocket-Key")
	nonce, err := base64.StdEncoding.DecodeString(key)
	if err != nil || len(nonce) != 16 {
		return "", errHandshake
	}
	return key, nil
}

// hijack takes over the connection from the HTTP server. early holds bytes that the client has sent after
// its request.
func hijack(w http.ResponseWriter) (conn net.Conn, early []byte, err error) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, nil, err
	}
	return conn, buffered(rw.Reader), nil
}

// buffered copies the bytes that r has buffered, so that r can be freed.
func buffered(r *bufio.Reader) []byte {
	if r == nil || r.Buffered() == 0 {
		return nil
	}
	b, _ := r.Peek(r.Buffered())
	return append([]byte(nil), b...)
}

// appendSwitching appends the 101 response that completes the handshake (RFC 6455 §4.2.2). extensions may be
// empty.
func appendSwitching(dst []byte, key, extensions string) []byte {
	sum := sha1.Sum([]byte(key + websocketGUID))
	dst = append(
		dst,
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "...)
	dst = base64.StdEncoding.AppendEncode(dst, sum[:])
	if extensions != "" {
		dst = append(append(dst, "\r\nSec-WebSocket-Extensions: "...), extensions...)
	}
	return append(dst, "\r\n\r\n"...)
}
