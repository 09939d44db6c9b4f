package engineio

// The responses to refused requests, all of them in one table. server.go, open.go and polling.go answer with
// them.

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"
)

// refusal is the error response to a request.
type refusal struct {
	status     int
	retryAfter time.Duration
	Code       int    `json:"code"`
	Message    string `json:"message"`
}

// The error codes of Engine.IO.
var (
	refuseTransport  = &refusal{status: http.StatusBadRequest, Code: 0, Message: "Transport unknown"}
	refuseUnknownSID = &refusal{status: http.StatusBadRequest, Code: 1, Message: "Session ID unknown"}
	refuseMethod     = &refusal{status: http.StatusBadRequest, Code: 2, Message: "Bad handshake method"}
	refuseBadRequest = &refusal{status: http.StatusBadRequest, Code: 3, Message: "Bad request"}
	refuseTooBig     = &refusal{status: http.StatusRequestEntityTooLarge, Code: 3, Message: "Payload too large"}
	refuseForbidden  = &refusal{status: http.StatusForbidden, Code: 4, Message: "Forbidden"}
	refuseProtocol   = &refusal{status: http.StatusBadRequest, Code: 5, Message: "Unsupported protocol version"}
)

// AdmissionError is returned by Options.Admit to choose the response to a refused handshake. For any other error it is
// 403 with code 4 of the protocol.
type AdmissionError struct {
	Status     int           // HTTP status; 503 if zero
	Message    string        // sent to the client
	RetryAfter time.Duration // sent as Retry-After if positive
}

// Error implements error.
func (e *AdmissionError) Error() string { return "engineio: not admitted: " + e.Message }

// refusalOf translates an error of Options.Admit to a response.
func refusalOf(err error) *refusal {
	var admission *AdmissionError
	if !errors.As(err, &admission) {
		return refuseForbidden
	}
	status := admission.Status
	if status == 0 {
		status = http.StatusServiceUnavailable
	}
	return &refusal{
		status:     status,
		retryAfter: admission.RetryAfter,
		Code:       refuseForbidden.Code,
		Message:    admission.Message,
	}
}

// refuse sends the error as JSON, as the protocol requires.
func (srv *Server) refuse(w http.ResponseWriter, r *refusal) {
	srv.opts.Observer.Refused(r.Code)
	if r.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(r.retryAfter.Seconds()))))
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(r.status)
	_ = json.NewEncoder(w).Encode(r) // the client may have disconnected
}
