package abusetest

import (
	"iter"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
)

// Config describes the server's data.
type Config struct {
	Seed uint64
	// Tokens are valid credentials; Ghosts are valid ones without any data; Foreign are invalid ones: expired, revoked, of
	// another API.
	// An empty one sends no credential.
	Tokens, Ghosts, Foreign []string
	// Derived returns what a security scheme sends instead of the token itself, by the scheme's name: a CSRF token.
	Derived map[string]func(token string) string
	// Live maps values in the document's examples, such as ids, to existing ones. Paths are paths of existing
	// resources by the document's path: /files/{id}/{name}.
	Live  map[string]string
	Paths map[string][]string
	// LiveOneIn is the ratio of all changing requests to those with existing ids and a valid token. The
	// others use unknown ids and tokens without data: they reach the same code, and change nothing.
	LiveOneIn int
}

// Mutator generates requests. It is not safe for concurrent use.
type Mutator struct {
	rng       *rand.Rand
	cfg       Config
	live      map[string][]string
	replacer  *strings.Replacer
	operation Operation
	example   example // the example of the current request
	isLive    bool
}

// New returns a Mutator. The same configuration generates the same requests.
func New(cfg Config) *Mutator {
	var pairs []string
	for _, from := range slices.Backward(sortedKeys(cfg.Live)) { // a longer value before its prefix
		pairs = append(pairs, from, cfg.Live[from])
	}
	return &Mutator{
		// a deterministic generator is intended
		rng: rand.New(rand.NewPCG(cfg.Seed, cfg.Seed)), cfg: cfg, live: cfg.Paths, replacer: strings.NewReplacer(pairs...),
	}
}

// bending is a mutation of a request.
type bending struct {
	weight int
	name   string
	bend   func(m *Mutator, r *Request)
}

// bendings lists all mutations.
var bendings = []bending{
	{30, "a member of the body", (*Mutator).mutateMember},
	{12, "bytes of the body", (*Mutator).mutateBytes},
	{8, "the form", (*Mutator).mutateForm},
	{2, "the size of the body", (*Mutator).mutateSize},
	{3, "the framing of the body", (*Mutator).mutateFraming},
	{8, "the media type", (*Mutator).mutateMediaType},
	{12, "a header", (*Mutator).mutateHeader},
	{10, "the query", (*Mutator).mutateQuery},
	{8, "the path", (*Mutator).mutatePath},
	{4, "the method", (*Mutator).mutateMethod},
	{8, "the credential", (*Mutator).mutateCredential},
}

// Next returns a request to the operation with one to four mutations.
func (m *Mutator) Next(o Operation) Request {
	m.operation, m.example, m.isLive = o, example{}, m.oneIn(max(1, m.cfg.LiveOneIn)) || o.Method == http.MethodGet && m.oneIn(8)
	r := m.valid(o)
	for n := 1 + min(m.rng.IntN(4), m.rng.IntN(4)); n > 0; n-- {
		m.draw().bend(m, &r)
	}
	return r
}

func (m *Mutator) draw() bending {
	total := 0
	for _, b := range bendings {
		total += b.weight
	}
	at := m.rng.IntN(total)
	for _, b := range bendings {
		if at -= b.weight; at < 0 {
			return b
		}
	}
	panic("unreachable")
}

// token returns a valid token, of a user with data or of a ghost.
func (m *Mutator) token() string {
	if m.isLive || len(m.cfg.Ghosts) == 0 {
		return m.pick(m.cfg.Tokens)
	}
	return m.pick(m.cfg.Ghosts)
}

// authorize sends a token with all schemes that the operation needs.
func (m *Mutator) authorize(h http.Header, token string) {
	if token == "" {
		return
	}
	for _, s := range m.operation.schemes {
		value := token
		if derive := m.cfg.Derived[s.name]; derive != nil {
			value = derive(token)
		}
		s.set(h, value)
	}
}

// replaced replaces values of the document's examples by existing ones, in live requests.
func (m *Mutator) replaced(s string) string {
	if m.isLive {
		return m.replacer.Replace(s)
	}
	return s
}

func (m *Mutator) oneIn(n int) bool { return m.rng.IntN(n) == 0 }

func (m *Mutator) pick(from []string) string {
	if len(from) == 0 {
		return ""
	}
	return from[m.rng.IntN(len(from))]
}

func keysOf[V any](of map[string]V) iter.Seq[string] { return maps.Keys(of) }

func sortedKeys[V any](of map[string]V) []string { return slices.Sorted(keysOf(of)) }
