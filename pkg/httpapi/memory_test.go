package httpapi_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/httpapi"
)

// slowClient sends a body but for its last byte, or reads nothing, until its connection ends.
type slowClient struct {
	*httptest.ResponseRecorder
	left   int
	ended  chan struct{}
	end    sync.Once
	active *atomic.Int64 // clients whose body or answer is in memory
	most   *atomic.Int64
}

func (c *slowClient) stall() error {
	now := c.active.Add(1)
	for most := c.most.Load(); now > most && !c.most.CompareAndSwap(most, now); most = c.most.Load() {
	}
	select {
	case <-c.ended:
	case <-time.After(time.Minute): // the server's timeout
	}
	c.active.Add(-1)
	return os.ErrDeadlineExceeded
}

func (c *slowClient) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, c.stall()
	}
	n := min(len(p), c.left)
	c.left -= n
	return copy(p, strings.Repeat(" ", n)), nil
}

func (c *slowClient) Write(p []byte) (int, error) {
	if len(p) < 4<<10 { // the connection takes it
		return c.ResponseRecorder.Write(p)
	}
	return 0, c.stall()
}

// SetReadDeadline ends the connection of a client that is cut off. Other deadlines are those of stall.
func (c *slowClient) SetReadDeadline(t time.Time) error {
	if !t.IsZero() && !t.After(time.Now()) {
		c.end.Do(func() { close(c.ended) })
	}
	return nil
}
func (c *slowClient) SetWriteDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// memoryAPI has a route that reads a body and one with a large answer. Memory has room for four of each: a
// company may hold two.
func memoryAPI() *echo.Echo {
	const large = 64 << 10
	const maxBody = large + 1024
	e := httpapi.New(httpapi.Config{MaxBody: maxBody, Memory: httpapi.NewMemory(4*4*maxBody, 4*large)})
	e.POST("/body", func(c echo.Context) error {
		httpapi.HoldFor(c, httpapi.Owner{Company: c.Request().Header.Get("Company")})
		var body struct{}
		if err := httpapi.Decode(c, &body); err != nil {
			return err
		}
		return c.NoContent(http.StatusOK)
	})
	e.GET("/answer", func(c echo.Context) error {
		httpapi.HoldFor(c, httpapi.Owner{Company: c.Request().Header.Get("Company")})
		if _, err := httpapi.HoldAnswer(c, large); err != nil {
			return err
		}
		return httpapi.WriteArray(c, 1, func(to []byte, _ int) []byte {
			return append(to, strings.Repeat("1", large)...)
		})
	})
	return e
}

// do answers a request and returns its status, Retry-After, and how long it took.
func do(e *echo.Echo, w http.ResponseWriter, method, path, company string, body io.Reader, size int64) time.Duration {
	r := httptest.NewRequest(method, path, body)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Company", company)
	r.ContentLength = size
	began := time.Now()
	e.ServeHTTP(w, r)
	return time.Since(began)
}

// Clients of one company that stall hold no more memory than its part. Others are served at once, small bodies
// too, and those of the company in their turn: the slow clients are cut off.
func TestSlowClientsHoldAPartOfTheMemory(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		method, path string
		sends        int64
		unknown      bool // the length of the body
	}{
		"bodies":                   {"POST", "/body", 64 << 10, false},
		"bodies of unknown length": {"POST", "/body", 64 << 10, true},
		"answers":                  {"GET", "/answer", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const most = 2
				e := memoryAPI()
				var active, seen atomic.Int64
				var clients sync.WaitGroup
				status := map[int]int{}
				var mu sync.Mutex
				for range 1000 {
					w := &slowClient{
						ResponseRecorder: httptest.NewRecorder(), left: max(int(test.sends)-1, 0),
						ended: make(chan struct{}), active: &active, most: &seen,
					}
					clients.Go(func() {
						size := test.sends
						if test.unknown {
							size = -1
						}
						do(e, w, test.method, test.path, "a", w, size)
						mu.Lock()
						defer mu.Unlock()
						status[w.Code]++
						if w.Code == http.StatusTooManyRequests && w.Header().Get("Retry-After") == "" {
							t.Errorf("got %v, want Retry-After", w.Header())
						}
					})
				}
				synctest.Wait()
				whole := "{}" + strings.Repeat(" ", 64<<10)
				for company, body := range map[string]string{"b": whole, "a": "{}"} {
					w := httptest.NewRecorder()
					took := do(e, w, "POST", "/body", company, strings.NewReader(body), int64(len(body)))
					if w.Code != http.StatusOK || took > 0 {
						t.Errorf("%s's body of %d bytes: got %d after %v, want 200 at once", company, len(body), w.Code, took)
					}
				}
				w := httptest.NewRecorder()
				if took := do(e, w, "GET", "/answer", "b", nil, 0); w.Code != http.StatusOK || took > 0 {
					t.Errorf("b's answer: got %d after %v, want 200 at once", w.Code, took)
				}
				began := time.Now()
				clients.Wait()
				if took := time.Since(began); took > 2*time.Minute || seen.Load() > most {
					t.Errorf("got %d clients in memory, all ended after %v; want %d", seen.Load(), took, most)
				}
				if status[http.StatusTooManyRequests] == 0 {
					t.Errorf("got %v, want that some are refused", status)
				}
				w = httptest.NewRecorder()
				if took := do(e, w, "POST", "/body", "a", strings.NewReader(whole), int64(len(whole))); w.Code != 200 || took > 0 {
					t.Errorf("afterwards: got %d after %v, want 200 at once", w.Code, took)
				}
			})
		})
	}
}

// Two companies whose requests wait in large numbers leave others a place to wait.
func TestACrowdLeavesPlacesToWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const large = 64 << 10
		e := memoryAPI()
		var active, seen atomic.Int64
		var clients sync.WaitGroup
		for n := range 600 {
			w := &slowClient{
				ResponseRecorder: httptest.NewRecorder(), left: large - 1,
				ended: make(chan struct{}), active: &active, most: &seen,
			}
			clients.Go(func() { do(e, w, "POST", "/body", []string{"a", "b"}[n%2], w, large) })
		}
		synctest.Wait()
		if holding := active.Load(); holding != 4 {
			t.Fatalf("got %d clients that hold memory, want all of it in use", holding)
		}
		w, body := httptest.NewRecorder(), "{}"+strings.Repeat(" ", large)
		if do(e, w, "POST", "/body", "c", strings.NewReader(body), int64(len(body))); w.Code != http.StatusOK {
			t.Errorf("another company: got %d, want 200 when a slow client has been cut off", w.Code)
		}
		clients.Wait()
	})
}

// Strangers share by address, by the network of a site, and by application.
func TestMemoryOfStrangers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		address func(n int) string
		owner   httpapi.Owner
		most    int64 // of 64
	}{
		"an address":     {func(int) string { return "192.0.2.1" }, httpapi.Owner{}, 8},
		"a site":         {func(n int) string { return "[2001:db8:1:" + strconv.FormatInt(int64(n), 16) + "::1]" }, httpapi.Owner{}, 16},
		"an application": {func(n int) string { return "192.0.2." + strconv.Itoa(n) }, httpapi.Owner{Application: "a"}, 32},
		"a visitor":      {func(n int) string { return "192.0.2." + strconv.Itoa(n) }, httpapi.Owner{Application: "a", Visitor: "v"}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const large = 64 << 10
				e := httpapi.New(httpapi.Config{Memory: httpapi.NewMemory(64*4*large, 0)})
				e.POST("/", func(c echo.Context) error {
					httpapi.HoldFor(c, test.owner)
					return httpapi.Decode(c, new(struct{}))
				})
				var active, seen atomic.Int64
				var clients sync.WaitGroup
				for n := range 100 {
					w := &slowClient{
						ResponseRecorder: httptest.NewRecorder(), left: large - 1,
						ended: make(chan struct{}), active: &active, most: &seen,
					}
					r := httptest.NewRequest(http.MethodPost, "/", w)
					r.Header.Set("Content-Type", "application/json")
					r.ContentLength, r.RemoteAddr = large, test.address(n)+":1"
					clients.Go(func() { e.ServeHTTP(w, r) })
				}
				clients.Wait()
				if got := seen.Load(); got != test.most {
					t.Errorf("got %d bodies in memory, want %d", got, test.most)
				}
			})
		})
	}
}
