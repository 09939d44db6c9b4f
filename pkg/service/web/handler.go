package web

import "net/http"

// Handler is the handler of a service that another server may serve. A request that comes before the service has opened waits.
type Handler struct {
	opened  chan struct{}
	handler http.Handler
}

// NewHandler returns a handler whose requests wait for [Handler.Open].
func NewHandler() *Handler { return &Handler{opened: make(chan struct{})} }

// Open hands over to handler. It is called once.
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

// Unwrap returns the handler that the service has opened; it waits for it.
func (h *Handler) Unwrap() http.Handler {
	<-h.opened
	return h.handler
}
