package web

import "net/http"

// Handler is the handler of a service, for use by another server. Requests wait until the service is open.
type Handler struct {
	opened  chan struct{}
	handler http.Handler
}

// NewHandler returns a handler whose requests wait for [Handler.Open].
func NewHandler() *Handler { return &Handler{opened: make(chan struct{})} }

// Open sets the handler. It must be called once.
func (h *Handler) Open(handler http.Handler) {
	h.handler = handler
	close(h.opened)
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case <-h.opened:
		h.handler.ServeHTTP(w, r)
	case <-r.Context().Done():
		http.Error(w, "starting", http.StatusServiceUnavailable)
	}
}

// Unwrap waits for the service to open and returns its handler.
func (h *Handler) Unwrap() http.Handler {
	<-h.opened
	return h.handler
}
