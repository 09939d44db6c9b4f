// Package demo serves two pages that embed the widget with one script tag, like any site: one on the origin
// of the Widget API, and one on another port and therefore another origin. Both have the strictest
// Content-Security-Policy that the widget supports.
package demo

import (
	"bytes"
	"crypto/rand"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
)

//go:embed assets
var assets embed.FS

// Config holds the values on the pages. None of them is secret.
type Config struct {
	AppID         string
	WidgetBaseURL string
	ClientBaseURL string       // for the curl command on the page
	TokenCommand  string       // the shell line that reads the company's token
	SiteURL       string       // the page on the other origin
	Phone         http.Handler // what is below /demo/phone; nil: nothing
}

// Handler serves the page under /demo, its assets under /demo/, and the demo bot's files under /demo/assets/.
func Handler(c Config, bot fs.FS) (http.Handler, error) {
	p, err := newPage(c, view{
		Title: "Kettle & Co.", Where: "the origin of the Widget API",
		OtherTitle: "The widget on another site",
		OtherText:  "The same page on another origin, with a strict Content-Security-Policy:",
		OtherURL:   c.SiteURL,
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /demo", p)
	mux.Handle("GET /demo/{$}", http.RedirectHandler("/demo", http.StatusMovedPermanently))
	if c.Phone != nil {
		mux.Handle("/demo/phone", c.Phone)
		mux.Handle("/demo/phone/", c.Phone)
	}
	mux.Handle("GET /demo/assets/", http.StripPrefix("/demo/assets", http.FileServerFS(bot)))
	mux.HandleFunc("GET /demo/favicon.svg", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFileFS(w, r, assets, "assets/favicon.svg")
	})
	return secured(mux), nil
}

// Site serves the page on another origin under /.
func Site(c Config) (http.Handler, error) {
	p, err := newPage(c, view{
		Title:      "Kettle & Co. on another origin",
		Where:      "another origin than the Widget API, with a strict Content-Security-Policy",
		OtherTitle: "The widget on the origin of the Widget API",
		OtherText:  "The same page on the origin of the Widget API:",
		OtherURL:   c.WidgetBaseURL + "/demo",
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", p)
	return secured(mux), nil
}

// view holds the texts of one page.
type view struct {
	Config
	Title, Where                    string
	OtherTitle, OtherText, OtherURL string
	Nonce                           string
	CSS                             string
	Page                            map[string]string
}

// page renders the template with a new nonce for each request.
type page struct {
	template *template.Template
	view     view
}

func newPage(c Config, v view) (*page, error) {
	css, err := assets.ReadFile("assets/page.css")
	if err != nil {
		return nil, fmt.Errorf("opening the demo page: %w", err)
	}
	t, err := template.ParseFS(assets, "assets/page.html")
	if err != nil {
		return nil, fmt.Errorf("reading the demo page: %w", err)
	}
	v.Config, v.CSS = c, string(css)
	v.Page = map[string]string{"clientBaseUrl": c.ClientBaseURL, "tokenCommand": c.TokenCommand}
	return &page{template: t, view: v}, nil
}

// ServeHTTP implements [http.Handler]. The policy is the one that docs/widget.md recommends to site owners.
func (p *page) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	v := p.view
	v.Nonce = rand.Text()
	var body bytes.Buffer
	if err := p.template.Execute(&body, v); err != nil {
		http.Error(w, "The page could not be rendered.", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'nonce-"+v.Nonce+"'"+
		"; connect-src "+v.WidgetBaseURL+"; img-src "+v.WidgetBaseURL+
		"; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Embedder-Policy", "require-corp")
	_, _ = w.Write(body.Bytes()) // the browser may have disconnected
}

func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "cross-origin") // pages of any origin show the bot's picture
		// embedded files have no modification time, and the next build may differ
		h.Set("Cache-Control", "no-cache")
		next.ServeHTTP(w, r)
	})
}
