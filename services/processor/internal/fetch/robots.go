package fetch

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/temoto/robotstxt"

	"github.com/parley-chat/parley/pkg/knowledge"
)

const (
	// userAgent is the name that robots.txt may have rules for.
	userAgent = "Parley-Documents"
	// robotsBytes is how much of a robots.txt is read (RFC 9309, 2.5: at least 500 KiB).
	robotsBytes = 512 << 10
	// robotsRedirects is how often a robots.txt may be redirected, also to other hosts (RFC 9309, 2.3.1.2).
	robotsRedirects = 5
	// robotsAge is how long rules are kept, robotsRetry how long it is remembered that they could not be read.
	robotsAge   = time.Hour
	robotsRetry = time.Minute
	// maxOrigins bounds the rules that are kept.
	maxOrigins = 1000
)

// rules are those of an origin, until they expire.
type rules struct {
	group   *robotstxt.Group // nil: they could not be read
	expires time.Time
}

// robots has the rules of origins. It is safe for concurrent use.
type robots struct {
	mu sync.Mutex
	of map[string]rules // by scheme and host
}

func newRobots() *robots { return &robots{of: map[string]rules{}} }

func (r *robots) known(origin string, now time.Time) (rules, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok := r.of[origin]
	return known, ok && now.Before(known.expires)
}

func (r *robots) keep(origin string, read rules) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.of) >= maxOrigins {
		clear(r.of)
	}
	r.of[origin] = read
}

// allowed returns the failure of an address that robots.txt forbids, or whose robots.txt cannot be read.
func (c *client) allowed(ctx context.Context, address *url.URL) error {
	origin := address.Scheme + "://" + address.Host
	current, known := c.robots.known(origin, c.now())
	if !known {
		var err error
		current, err = c.readRules(ctx, origin)
		if err != nil {
			return err
		}
		c.robots.keep(origin, current)
	}
	if current.group == nil {
		return fail(knowledge.FetchNoRobots, "The site's robots.txt cannot be read, so nothing may be fetched for now")
	}
	if !current.group.Test(address.RequestURI()) {
		return fail(knowledge.FetchRobots, "The site's robots.txt forbids "+userAgent+" to fetch this address")
	}
	return nil
}

// readRules fetches the robots.txt of an origin. A status of 4xx means that there are no rules, any other failure that
// nothing may be fetched for now (RFC 9309, 2.3.1.3 and 2.3.1.4). Its error is one that has nothing to do with robots.txt: an
// address that is not allowed, or the end of ctx.
func (c *client) readRules(ctx context.Context, origin string) (rules, error) {
	address, err := url.Parse(origin + "/robots.txt")
	if err != nil {
		return rules{}, err
	}
	unread := rules{expires: c.now().Add(robotsRetry)}
	var r *http.Response
	for range robotsRedirects + 1 {
		r, err = c.send(ctx, address, nil)
		if isNotAllowed(err) || ctx.Err() != nil {
			return rules{}, err
		}
		if err != nil {
			return unread, nil
		}
		defer r.Body.Close()
		next := redirection(r)
		if next == nil {
			break
		}
		address = next
	}
	read := rules{expires: c.now().Add(robotsAge)}
	switch r.StatusCode / 100 {
	case 2:
		body, err := readAtMost(r.Body, robotsBytes)
		if err != nil {
			return unread, nil
		}
		read.group = groupOf(body)
	case 3, 4: // redirected too often: as if there were none
		read.group = new(robotstxt.Group)
	default:
		return unread, nil
	}
	return read, nil
}

// groupOf returns the rules for us.
func groupOf(text []byte) *robotstxt.Group {
	data, err := robotstxt.FromBytes(usable(text))
	if err != nil {
		return nil
	}
	return data.FindGroup(userAgent)
}

// usable returns the lines of a robots.txt from the first group on. The parser gives up on rules before it, and on
// a Crawl-delay that is no number; RFC 9309 (2.2) asks to ignore such lines.
func usable(text []byte) []byte {
	var lines []byte
	isInGroup := false
	for line := range bytes.Lines(bytes.ToValidUTF8(text, []byte("?"))) {
		key, _, _ := strings.Cut(strings.ToLower(string(line)), ":")
		key = strings.Trim(key, " \t\uFEFF")
		isInGroup = isInGroup || key == "user-agent"
		if isInGroup && key != "crawl-delay" {
			lines = append(lines, bytes.TrimPrefix(line, []byte("\uFEFF"))...)
		}
	}
	return lines
}
