package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

const (
	// mostHistoryRSS is the maximum memory of the Widget API while it serves all histories.
	mostHistoryRSS = 256 << 20

	smallText, largeText = 2 << 10, 64 << 10 // bytes of a message
	onePage              = 1000              // small messages, about as many bytes as one answer holds
)

// readers returns the number of concurrent visitors, how many of them have a long chat, and its length.
func readers() (visitors, long, longBytes int) {
	if longForm() {
		return 200, 4, 100 << 20
	}
	return 6, 1, 8 << 20
}

func longForm() bool { return os.Getenv("PARLEY_FAULTS") == "long" }

// reader is a visitor with a chat that does not fit into one answer.
type reader struct{ token, newest string }

// TestLoadOfLongHistories lets all visitors request their chats concurrently. Each gets the newest part, and
// the process's memory stays small.
func TestLoadOfLongHistories(t *testing.T) {
	f := newDeployment(t, 0)
	f.services = []string{"widget-api"}
	for _, name := range []string{"seed", "nats", "redis", "widget-api"} {
		f.start(t, name)
	}
	f.awaitReady(t, http.StatusOK, f.services...)
	visitors, long, longBytes := readers()
	began := time.Now()
	all := seedReaders(t, openStore(t, f.place), f.place, visitors, long, longBytes)
	pid := f.run["widget-api"].cmd.Process.Pid
	t.Logf("%d chats, %d of them of %d MiB, in %v; the Widget API's peak RSS is %d MiB",
		visitors, long, longBytes>>20, time.Since(began).Round(time.Millisecond), peakRSS(t, pid)>>20)

	var sites [8]*http.Client // one would have a small part of the places of those that wait
	for n := range sites {
		from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+n))}}
		transport := &http.Transport{DialContext: from.DialContext}
		t.Cleanup(transport.CloseIdleConnections)
		sites[n] = &http.Client{Transport: transport, Timeout: 4 * limit}
	}
	var answered, again, received atomic.Int64
	var asking sync.WaitGroup
	began = time.Now()
	for i, r := range all {
		asking.Go(func() {
			for tries := 0; ; tries++ {
				status, n, err := r.ask(sites[i%len(sites)], f.WidgetBaseURL)
				switch {
				case err != nil:
					t.Error(err)
				case status == http.StatusServiceUnavailable && tries < 10: // as every client does
					again.Add(1)
					time.Sleep(5 * time.Second) // its Retry-After
					continue
				case status != http.StatusOK:
					t.Errorf("got %d, want 200", status)
				default:
					answered.Add(1)
					received.Add(n)
				}
				return
			}
		})
	}
	asking.Wait()
	peak := peakRSS(t, pid)
	t.Logf("%d answers with %d MiB in %v, %d after a 503; the Widget API's peak RSS is %d MiB",
		answered.Load(), received.Load()>>20, time.Since(began).Round(time.Millisecond), again.Load(), peak>>20)
	if peak > mostHistoryRSS {
		t.Errorf("got a peak RSS of %d MiB, want at most %d", peak>>20, mostHistoryRSS>>20)
	}
}

// ask checks that the answer is the newest part of the chat with a link to the rest.
func (r reader) ask(client *http.Client, base string) (status int, n int64, err error) {
	req, err := http.NewRequest(http.MethodGet, base+"/message", nil)
	if err != nil {
		return 0, 0, err
	}
	req.Header.Set("Authorization", "Bearer "+r.token)
	answer, err := client.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return answer.StatusCode, 0, err
	}
	const most = 3 << 20 // 2 MiB of data and the records around them
	end := body[max(0, len(body)-2*smallText):]
	if len(body) < onePage*smallText/2 || len(body) > most || !bytes.Contains(end, []byte(r.newest)) || answer.Header.Get("Link") == "" {
		return answer.StatusCode, 0, fmt.Errorf("got %d bytes with the link %q, want the newest messages and a link", len(body), answer.Header.Get("Link"))
	}
	return answer.StatusCode, int64(len(body)), nil
}

// seedReaders writes the chats directly into the database: large messages, and then a page of small ones.
func seedReaders(t *testing.T, s store.Store, p place, visitors, long, longBytes int) []reader {
	t.Helper()
	readers := make([]reader, visitors)
	large := []byte(`{"text":"` + strings.Repeat("x", largeText) + `"}`)
	small := []byte(`{"text":"` + strings.Repeat("x", smallText) + `"}`)
	for n := range readers {
		opened := time.Now().Add(-time.Hour).UTC().Truncate(time.Millisecond)
		c := openChat(t, s, p, opened)
		bulk := 1 << 20 / largeText // more than a page
		if n < long {
			bulk = longBytes / largeText
		}
		newest := uuid.Must(uuid.NewV7()).String()
		readers[n] = reader{token: sign(t, p, claims(p, c.ChatUserID)), newest: newest}
		var writing sync.WaitGroup
		for part := range 64 { // concurrent writes share a commit
			writing.Go(func() {
				for k := part; k < bulk+onePage; k += 64 {
					m := chat.Message{ID: uuid.NewString(), CreatedAt: opened.Add(time.Duration(k) * time.Millisecond), Type: chat.Text, Data: small}
					if k < bulk {
						m.Data = large
					}
					if k == bulk+onePage-1 {
						m.ID = newest
					}
					err := s.AppendMessage(t.Context(), c.ID, m)
					for try := 1; try < 5 && apperr.Is(err, apperr.Unavailable); try++ { // a busy disk
						err = s.AppendMessage(t.Context(), c.ID, m)
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		writing.Wait()
	}
	return readers
}
