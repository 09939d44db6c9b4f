package phone

import (
	"crypto/rand"
	_ "embed" // the page
	"encoding/json"
	"html/template"
	"net/http"
	"strconv"
	"time"
)

var (
	//go:embed assets/phone.html
	html string
	//go:embed assets/phone.css
	css  string
	page = template.Must(template.New("phone").Parse(html))
)

// Handler serves the page under /demo/phone, and its messages under /demo/phone/messages.
func (p *Phone) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /demo/phone", show)
	mux.HandleFunc("GET /demo/phone/messages", p.list)
	return mux
}

func show(w http.ResponseWriter, _ *http.Request) {
	nonce := rand.Text()
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'nonce-"+nonce+"'"+
		"; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'")
	_ = page.Execute(w, map[string]string{"Nonce": nonce, "CSS": css}) // the browser may have disconnected
}

// longestWait bounds how long an answer waits for a message.
const longestWait = 20 * time.Second

// list answers with the messages from the number in the query on, as soon as there are any, and with none after a
// while.
func (p *Phone) list(w http.ResponseWriter, r *http.Request) {
	from, _ := strconv.Atoi(r.URL.Query().Get("from")) // 0 without a number: all
	late := time.NewTimer(longestWait)
	defer late.Stop()
	messages, changed := p.show(from)
	if len(messages) == 0 {
		select {
		case <-changed:
			messages, _ = p.show(from)
		case <-late.C:
		case <-p.ended:
		case <-r.Context().Done():
			return
		}
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(messages) // the browser may have disconnected
}
