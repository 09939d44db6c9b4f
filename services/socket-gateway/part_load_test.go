package socketgateway_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/event"
)

// partRate is how many parts a second a bot publishes.
const partRate = 16

// TestPartsLoad lets bots write for many visitors at once through one gateway in a process of its own. Every
// socket ends with all of its text. It logs what a part costs the gateway and how long it takes from the
// bot's publish to the socket; PARLEY_FAULTS=long is larger.
func TestPartsLoad(t *testing.T) {
	visitors, lasts := 40, 2*time.Second
	if os.Getenv("PARLEY_FAULTS") == "long" {
		visitors, lasts = 200, 20*time.Second
	}
	w := newFaultWorld(t)
	g := w.startChild()
	type reader struct {
		visitor
		*client
	}
	var readers []reader
	for range visitors {
		v := w.visitor()
		c := connect(t, g.url, v.token)
		c.await("connect")
		readers = append(readers, reader{v, c})
	}
	used := cpuTime(t, g.command.Process.Pid)
	began := time.Now()
	var mu sync.Mutex
	var took []time.Duration
	var all sync.WaitGroup
	perVisitor := int(lasts.Seconds() * partRate)
	for _, r := range readers {
		all.Go(func() {
			tick := time.NewTicker(time.Second / partRate)
			defer tick.Stop()
			id, offset := "", 0
			for n := range perVisitor {
				if n%100 == 0 { // the length of a message is limited
					id, offset = uuid.Must(uuid.NewV7()).String(), 0
				}
				text := fmt.Sprintf("%d and a few words more. ", time.Now().UnixNano())
				err := w.bus.Publish(t.Context(), event.Derived(), event.MessagePart{
					CompanyID: "company", AppID: r.appID, ChatUserID: r.chatUserID, ChatID: r.chatID, MessageID: id, N: int32(n % 100), Offset: int32(offset),
					Text: text, CreatedAt: time.Now().UTC(),
				})
				if err != nil {
					t.Errorf("publishing: %v", err)
					return
				}
				offset += len(text)
				<-tick.C
			}
		})
		all.Go(func() {
			for n := range perVisitor {
				var p event.MessagePart
				var h happening
				select {
				case h = <-r.happens:
				case <-time.After(limit):
				}
				if err := json.Unmarshal(h.Data, &p); err != nil || int(p.N) != n%100 {
					t.Errorf("got %+v and %v, want part %d", p, err, n)
					return
				}
				sent, _, _ := strings.Cut(p.Text, " ")
				at, err := strconv.ParseInt(sent, 10, 64)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				took = append(took, time.Since(time.Unix(0, at)))
				mu.Unlock()
			}
		})
	}
	all.Wait()
	parts, wall := visitors*perVisitor, time.Since(began)
	slices.Sort(took)
	if len(took) == parts {
		t.Logf("%d sockets, %.0f parts/s: p50 %s, p99 %s from publish to socket, %.0f µs of the gateway's CPU for each part of a socket",
			visitors, float64(parts)/wall.Seconds(), took[parts/2].Round(time.Millisecond/10), took[parts*99/100].Round(time.Millisecond/10),
			float64((cpuTime(t, g.command.Process.Pid)-used).Microseconds())/float64(parts))
	}
}

// cpuTime is what a process has used; 0 where the system does not tell.
func cpuTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond // clock ticks of 100 Hz
}
