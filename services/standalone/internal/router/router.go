// Package router serves the Widget API, the sockets and the demo page at one address, like the reverse proxy of other
// deployments: {widget_base_url}/socket.io/ is the gateway.
package router

import (
	"net/http"
	"strings"
)

// Handler serves /socket.io/ with sockets, /demo and the paths below it with demo, and everything else with
// the Widget API. It is not a ServeMux, which would redirect unclean paths that the Widget API answers
// itself.
func Handler(widgetAPI, sockets, demo http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case path == "/socket.io", strings.HasPrefix(path, "/socket.io/"):
			sockets.ServeHTTP(w, r)
		case path == "/demo", strings.HasPrefix(path, "/demo/"):
			demo.ServeHTTP(w, r)
		default:
			widgetAPI.ServeHTTP(w, r)
		}
	})
}
