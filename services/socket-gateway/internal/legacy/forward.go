package legacy

// In the gateway: requests of old clients, from their check to the child.

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/credential"
)

const (
	maxBody     = 16 << 10 // bytes of a POST or a message, as for newer clients; the library has no limit
	dialTimeout = 2 * time.Second
)

// Tokens verifies the token of a client on a page of an origin. Authenticate returns apperr.Unauthenticated for an
// invalid token and apperr.Invalid for an origin that is not allowed.
type Tokens interface {
	Authenticate(ctx context.Context, token, origin string) (credential.VisitorClaims, error)
}

// Route returns a handler that serves requests of old clients with old and all others with current.
func Route(old, current http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isOld(r) {
			old.ServeHTTP(w, r)
			return
		}
		current.ServeHTTP(w, r)
	})
}

// isOld reports whether an old client sent the request.
func isOld(r *http.Request) bool {
	return strings.Contains(r.URL.RawQuery, "EIO=3") && r.URL.Query().Get("EIO") == "3"
}

// proxy forwards requests to the child.
type proxy struct {
	prefix       string
	tokens       Tokens
	room         func(appID, chatUserID string) string
	unauthorized *unauthorizedLimiter
	reverse      *httputil.ReverseProxy
	log          *slog.Logger
}

// newProxy returns the proxy to the child's Unix socket.
func newProxy(cfg Config) *proxy {
	p := &proxy{
		prefix:       cfg.Setup.SessionPrefix,
		tokens:       cfg.Tokens,
		room:         cfg.Room,
		log:          cfg.Logger,
		unauthorized: newUnauthorizedLimiter(cfg),
	}
	p.reverse = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: "legacy"})
			r.Out.Host = r.In.Host
			r.SetXForwarded()
		},
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "unix", cfg.Setup.Socket)
			},
			MaxIdleConnsPerHost: 1024,
			IdleConnTimeout:     time.Minute,
			DisableCompression:  true,
		},
		ErrorHandler: failed,
		ErrorLog:     slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug),
	}
	return p
}

func (p *proxy) close() { p.reverse.Transport.(*http.Transport).CloseIdleConnections() }

// ServeHTTP serves a request of an old client. Requests that the library would mishandle are answered here.
func (p *Process) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.proxy.serve(w, r) }

// serve answers what the library would mishandle and forwards the rest.
func (p *proxy) serve(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	sid, transport := query.Get("sid"), query.Get("transport")
	switch {
	case r.Method == http.MethodOptions:
		preflight(w, r)
	case transport != "polling" && transport != "websocket":
		refuse(w, r, http.StatusBadRequest, 0, "Transport unknown")
	case sid != "" && !strings.HasPrefix(sid, p.prefix):
		refuse(w, r, http.StatusBadRequest, 1, "Session ID unknown")
	case r.Method != http.MethodGet && (r.Method != http.MethodPost || sid == ""):
		refuse(w, r, http.StatusBadRequest, 2, "Bad handshake method")
	case strings.Trim(query.Get("j"), "0123456789") != "": // the response repeats it in a script
		refuse(w, r, http.StatusBadRequest, 3, "Bad request")
	default:
		p.forward(w, r, query, sid == "" || transport == "websocket")
	}
}

// forward forwards a request to the child, with the visitor if it opens a connection; the child ignores the
// visitor of other requests.
func (p *proxy) forward(w http.ResponseWriter, r *http.Request, query url.Values, opens bool) {
	r = r.Clone(r.Context())
	r.Header.Del(visitorHeader)
	if opens {
		v := p.visitor(r.Context(), query.Get("token"), r.Header.Get("Origin"))
		if v.Refusal != nil && query.Get("sid") == "" && !p.unauthorized.admit(r) {
			w.Header().Set("Retry-After", strconv.Itoa(int(keepRefused/time.Second)))
			refuse(w, r, http.StatusServiceUnavailable, 4, refuseTooMany.Message)
			return
		}
		v.put(r.Header)
	}
	if r.Method == http.MethodPost {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	}
	p.reverse.ServeHTTP(w, r)
}

// visitor returns the visitor of a token, or why the client is refused.
func (p *proxy) visitor(ctx context.Context, token, origin string) visitor {
	claims, err := p.tokens.Authenticate(ctx, token, origin)
	switch {
	case err == nil:
		return visitor{Room: p.room(claims.AppID, claims.ChatUserID), ExpiresAt: claims.ExpiresAt}
	case apperr.Is(err, apperr.Unauthenticated):
		return visitor{Refusal: refuseUnauthorized}
	case apperr.Is(err, apperr.Invalid):
		return visitor{Refusal: refuseOrigin}
	}
	p.log.WarnContext(ctx, "old client refused", "error", err)
	return visitor{Refusal: refuseUnavailable}
}

// failed answers if the child did not. The sessions of a dead child are lost.
func failed(w http.ResponseWriter, r *http.Request, _ error) {
	if r.Context().Err() != nil {
		return // the client has disconnected
	}
	if r.URL.Query().Get("sid") != "" {
		refuse(w, r, http.StatusBadRequest, 1, "Session ID unknown")
		return
	}
	w.Header().Set("Retry-After", "1")
	refuse(w, r, http.StatusServiceUnavailable, 4, refuseUnavailable.Message)
}

// allowOrigin allows pages of any origin. Old clients always send requests with credentials, for which
// browsers require an explicit origin and Allow-Credentials; no cookie is ever set or read.
func allowOrigin(w http.ResponseWriter, r *http.Request) {
	origin := r.Header.Get("Origin")
	if origin == "" {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		return
	}
	w.Header().Set("Access-Control-Allow-Origin", origin)
	w.Header().Set("Access-Control-Allow-Credentials", "true")
	w.Header().Add("Vary", "Origin")
}

// preflight answers an OPTIONS request.
func preflight(w http.ResponseWriter, r *http.Request) {
	allowOrigin(w, r)
	w.Header().Set("Access-Control-Allow-Methods", "GET, POST, OPTIONS")
	w.Header().Set("Access-Control-Allow-Headers", "Content-Type")
	w.WriteHeader(http.StatusNoContent)
}

// refuse answers with an error of Engine.IO.
func refuse(w http.ResponseWriter, r *http.Request, status, code int, message string) {
	allowOrigin(w, r)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"code":%d,"message":%q}`, code, message) // the client may have disconnected
}
