// Package demo serves the demo page: the session flow of the specification with the official socket.io-client, in one plain
// page without a framework. It is there to see Parley at work; it is not the widget.
package demo

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
)

// The official client's browser build comes from npm and is not in the repository: `make assets` puts it into assets/vendor.
// Without it everything compiles and the page says what is missing.
//
//go:embed assets
var assets embed.FS

const client = "vendor/socket.io.min.js"

// Config is what the page has to know. Nothing in it is secret.
type Config struct {
	AppID         string `json:"appId"`
	ClientBaseURL string `json:"clientBaseUrl"` // for the curl line that the page shows
	TokenCommand  string `json:"tokenCommand"`  // the shell line that reads the company's token
}

// policy allows the page its own files and nothing else; images, audio and video come from wherever a message says.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
	"img-src 'self' data: http: https:; media-src 'self' http: https:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Handler serves the page under /demo, all that it loads under /demo/, and the demo bot's files under /demo/assets/.
func Handler(c Config, bot fs.FS) (http.Handler, error) {
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		return nil, fmt.Errorf("opening the demo page: %w", err)
	}
	return handler(c, files, bot)
}

func handler(c Config, files, bot fs.FS) (http.Handler, error) {
	config, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encoding the demo page's configuration: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /demo", page(files))
	mux.Handle("GET /demo/{$}", http.RedirectHandler("/demo", http.StatusMovedPermanently))
	mux.HandleFunc("GET /demo/config.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(config)
	})
	mux.Handle("GET /demo/assets/", http.StripPrefix("/demo/assets", http.FileServerFS(bot)))
	mux.Handle("GET /demo/", http.StripPrefix("/demo", http.FileServerFS(files)))
	return secured(mux), nil
}

// page answers with the page, or with one line where the client's browser build is absent.
func page(files fs.FS) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, err := fs.Stat(files, client); err != nil {
			http.Error(w, "The demo page needs the official socket.io-client: run `make assets` and start again.",
				http.StatusServiceUnavailable)
			return
		}
		http.ServeFileFS(w, r, files, "demo.html")
	}
}

func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache") // embedded files carry no time, and the next build may differ
		next.ServeHTTP(w, r)
	})
}
