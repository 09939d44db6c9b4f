package httpapitest

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
)

// Codes runs the tests of a package and then checks that their responses had every error code of the
// document's examples: an example that never occurs may be wrong. It checks nothing if only some of the tests
// run.
type Codes struct {
	M *testing.M
	// Except lists errors that the tests of the package cannot cause, such as "500 INTERNAL_ERROR".
	Except []string

	mu        sync.Mutex
	documents []*Document
}

// Add includes the responses of a document. It returns the document.
func (c *Codes) Add(d *Document) *Document {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.documents = append(c.documents, d)
	return d
}

// Run runs the tests, for [goleak.VerifyTestMain].
func (c *Codes) Run() int {
	code := c.M.Run()
	for _, name := range []string{"test.run", "test.skip", "test.list", "test.fuzz"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != "" {
			return code
		}
	}
	if unseen := c.unseen(); code == 0 && len(unseen) > 0 {
		fmt.Fprintf(os.Stderr, "documented errors that no test got: %q\n", unseen)
		return 1
	}
	return code
}

// unseen returns the errors that did not occur with any document.
func (c *Codes) unseen() (unseen []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, d := range c.documents {
		now := d.UnseenCodes()
		if i == 0 {
			unseen = now
		}
		unseen = slices.DeleteFunc(unseen, func(e string) bool { return !slices.Contains(now, e) })
	}
	return slices.DeleteFunc(unseen, func(e string) bool { return slices.Contains(c.Except, e) })
}
