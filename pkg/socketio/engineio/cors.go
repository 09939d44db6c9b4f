package engineio

// CORS for pages of other origins: server.go calls it before it serves a request.

import "net/http"

// preflightMaxAge is how long, in seconds, a browser may cache the preflight response.
const preflightMaxAge = "600"

// allowOrigin sets the CORS headers and reports whether the origin is allowed. Without CheckOrigin any origin
// is; credentials are never allowed, since a session is identified only by its sid.
func (srv *Server) allowOrigin(w http.ResponseWriter, r *http.Request) bool {
	h := w.Header()
	if srv.opts.CheckOrigin == nil {
		h.Set("Access-Control-Allow-Origin", "*")
		return true
	}
	h.Add("Vary", "Origin")
	if !srv.opts.CheckOrigin(r) {
		return false
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		h.Set("Access-Control-Allow-Origin", origin)
	}
	return true
}

// preflight answers an OPTIONS request.
func preflight(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "GET, POST, OPTIONS")
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		h.Set("Access-Control-Allow-Headers", asked)
		h.Add("Vary", "Access-Control-Request-Headers")
	}
	h.Set("Access-Control-Max-Age", preflightMaxAge)
	w.WriteHeader(http.StatusNoContent)
}
