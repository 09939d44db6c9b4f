package abusetest

import (
	"bytes"
	"net/url"
	"slices"
	"strings"
)

func (m *Mutator) mutateMethod(r *Request) { r.Method = m.pick(methods) }

// mutateMediaType declares a wrong media type.
func (m *Mutator) mutateMediaType(r *Request) {
	switch m.rng.IntN(8) {
	case 0:
		r.Header.Del("Content-Type")
	case 1:
		r.Header.Add("Content-Type", m.pick(mediaTypes))
	case 2:
		r.Header.Set("Content-Encoding", m.pick([]string{"gzip", "identity", "br", "", "gzip, gzip"}))
	default:
		r.Header.Set("Content-Type", m.pick(mediaTypes))
	}
}

// mutateHeader sets, adds or removes a header that some code reads.
func (m *Mutator) mutateHeader(r *Request) {
	name := m.pick(headerNames)
	for _, p := range m.operation.parameters {
		if p.In == "header" && m.oneIn(3) {
			name = p.Name
		}
	}
	value := m.pick(headerValues)
	if m.oneIn(3) {
		value = printable(m.pick(words))
	}
	switch m.rng.IntN(6) {
	case 0:
		r.Header.Del(name)
	case 1:
		r.Header.Add(name, value)
	default:
		r.Header.Set(name, value)
	}
}

// mutateCredential sends no, two, a foreign or a malformed credential.
func (m *Mutator) mutateCredential(r *Request) {
	if len(m.operation.schemes) == 0 {
		return
	}
	set := m.operation.schemes[m.rng.IntN(len(m.operation.schemes))].set
	token := m.token()
	switch m.rng.IntN(8) {
	case 0:
		set(r.Header, "")
	case 1:
		set(r.Header, m.pick(headerValues))
	case 2:
		set(r.Header, token[:m.rng.IntN(len(token)+1)])
	case 3:
		broken := []byte(token + "=")
		broken[m.rng.IntN(len(broken))] ^= 1
		set(r.Header, printable(string(broken)))
	case 4:
		for _, name := range []string{"Authorization", "X-Access-Token", "Cookie", "X-Csrf-Token"} {
			if values := r.Header[name]; len(values) > 0 {
				r.Header[name] = slices.Concat(values, values)
			}
		}
	case 5:
		r.Header.Set("Authorization", m.pick([]string{"Basic eDp5", "Bearer", "bearer " + token, "Bearer  " + token, token, "Bearer " + token + " x", "Bearer " + token + "." + token}))
	default:
		m.authorize(r.Header, m.pick(m.cfg.Foreign))
	}
}

// mutateQuery adds parameters, some of them known to the operation, with valid or invalid escapes.
func (m *Mutator) mutateQuery(r *Request) {
	name := m.pick(words)
	for _, p := range m.operation.parameters {
		if p.In == "query" && m.oneIn(2) {
			name = p.Name
		}
	}
	pair := url.QueryEscape(name) + "=" + url.QueryEscape(m.pick(slices.Concat(words, likely)))
	switch m.rng.IntN(8) {
	case 0:
		pair += "&" + pair
	case 1:
		pair = name + "=" + m.pick(words)
	case 2:
		pair = m.pick([]string{"%", "%zz=1", "limit=%", "a;b", "&&&", "=", "a[]=1", "dryRun", "limit", strings.Repeat("a=1&", 500)})
	}
	joint := "?"
	if strings.Contains(r.Target, "?") {
		joint = "&"
	}
	r.Target += joint + strings.ReplaceAll(pair, "#", "%23")
}

// mutatePath requests another path, or another spelling of the same one.
func (m *Mutator) mutatePath(r *Request) {
	path, query, asked := strings.Cut(r.Target, "?")
	at := m.rng.IntN(len(path)) + 1
	word := url.PathEscape(m.pick(words))
	switch m.rng.IntN(11) {
	case 0:
		path += "/"
	case 1:
		path = path[:at]
	case 2:
		path = path[:at] + word + path[at:]
	case 3:
		path += "/" + word
	case 4:
		path = strings.Replace(path, "/", "//", 1+m.rng.IntN(2))
	case 5:
		path = "/x/.." + path
	case 6:
		path = path[:strings.LastIndex(path, "/")+1] + word
	case 7:
		path = strings.ToUpper(path)
	case 8:
		path = path[:at] + m.pick([]string{"%2f", "%2F", "%2e%2e", "%00", "%ff", "%25", "%20", "%c3%a9", ";x=1", "\\", "*", ":"}) + path[at:]
	case 9:
		path = path[:at-1] + strings.ToUpper(url.PathEscape(path[at-1:at])) + path[at:]
	case 10:
		path = m.pick([]string{"/", "/favicon.ico", "/robots.txt", "/.env", "/.git/config", "/admin", "/docs/", "/docs/swagger-ui.css", "/docs/..%2f", "/files", "/message", "/message/send/", "/api", "/api/", "/api/chats/../users", "/metrics", "/debug/pprof/", "/readyz", "*"})
	}
	r.Target = path
	if asked {
		r.Target += "?" + query
	}
}

// printable drops bytes that net/http would reject in a header.
func printable(s string) string {
	return string(bytes.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return -1
		}
		return c
	}, []byte(s)))
}
