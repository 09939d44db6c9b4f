package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/testkit/needs"
	"github.com/parley-chat/parley/testkit/servicetest"
)

// TestServicesThroughClusterOutages kills the servers of a cluster and cuts their power under the services, while a
// visitor with a connected client and the company write. What an API accepted is in the history once, the bot answers
// it once, and the client receives each message once, in order.
func TestServicesThroughClusterOutages(t *testing.T) {
	needs.FUSE(t)
	seed := setting(t, "SEED", uint64(time.Now().UnixNano()))
	t.Logf("SEED=%d", seed)
	t.Setenv("STREAM_REPLICAS", "3") // of parleyctl streams apply
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	cluster := newNATSCluster(t)
	f := newDeployment(t, 1)
	f.addr["nats"] = strings.TrimPrefix(cluster.url(), "nats://")
	f.start(t, "seed")
	f.start(t, "redis")
	f.applyStreams(t)
	for _, name := range f.services {
		f.start(t, name)
	}
	f.awaitReady(t, http.StatusOK, f.services...)
	d := newDialogue(t, f)
	chance := rand.New(rand.NewPCG(seed, 0))
	for _, n := range chance.Perm(len(outages))[:1+rounds()] {
		o := outages[n]
		t.Run(o.name, func(t *testing.T) {
			d.awaitMore(t, 5+chance.IntN(20))
			cluster.suffer(t, chance, o, func() { d.awaitMore(t, 2) })
		})
	}
	d.awaitMore(t, 10)
	d.stop()
	d.check(t)
	for _, name := range f.services {
		select {
		case <-f.run[name].ended:
			t.Errorf("%s ended with code %d, want it to run through all outages", name, f.run[name].code())
		default:
		}
	}
}

// dialogue is a visitor with a connected client, and the company, which write until stop. Each repeats a message with
// its Idempotency-Key until it is accepted.
type dialogue struct {
	of       *deployment
	visitor  *visitor
	chatID   string
	client   *socket
	company  *api
	stop     func()
	stopRead func()

	mu       sync.Mutex          // guards the rest
	accepted map[string][]string // ids of the "visitor" and the "company", in order
	failed   int                 // attempts
	received []string            // ids, by the client
}

func newDialogue(t *testing.T, f *deployment) *dialogue {
	t.Helper()
	d := &dialogue{of: f, visitor: register(t, f.place, f.widgetAPI(t)), company: f.clientAPI(t)}
	d.accepted = map[string][]string{}
	_, d.chatID = f.chatUser(t, d.visitor)
	d.client = connected(t, f.SocketURLs[0], d.visitor.token, "websocket")
	d.stopRead = servicetest.Run(t, d.read)
	d.stop = servicetest.Run(t, func(ctx context.Context) error {
		var writing sync.WaitGroup
		for _, side := range []string{"visitor", "company"} {
			writing.Go(func() { d.write(ctx, side) })
		}
		writing.Wait()
		return nil
	})
	return d
}

// read records what the client receives.
func (d *dialogue) read(ctx context.Context) error {
	for {
		select {
		case e := <-d.client.events:
			if e.Kind != "event" || e.Event != "message" {
				continue
			}
			var m delivery
			if err := json.Unmarshal(e.Args[0], &m); err != nil {
				return err
			}
			d.mu.Lock()
			d.received = append(d.received, m.ID)
			d.mu.Unlock()
		case <-ctx.Done():
			return nil
		}
	}
}

func (d *dialogue) write(ctx context.Context, side string) {
	for n := 0; ctx.Err() == nil; n++ {
		key := header{"Idempotency-Key", uuid.NewString()}
		id, err := d.send(side, fmt.Sprintf("number %d.", n), key)
		for err != nil {
			d.mu.Lock()
			d.failed++
			d.mu.Unlock()
			time.Sleep(50 * time.Millisecond) // as a caller with a pause between its attempts
			id, err = d.send(side, fmt.Sprintf("number %d.", n), key)
		}
		d.mu.Lock()
		d.accepted[side] = append(d.accepted[side], id)
		d.mu.Unlock()
		time.Sleep(20 * time.Millisecond) // as people write, and so that the history stays short
	}
}

// send sends a message and returns its id.
func (d *dialogue) send(side, text string, key header) (id string, err error) {
	body := map[string]any{"type": "TEXT", "data": map[string]string{"text": text}}
	api, path, success, credential := d.visitor.api, "/message", http.StatusCreated, bearer(d.visitor.token)
	if side == "company" {
		body["chatId"] = d.chatID
		api, path, success, credential = d.company, "/message/send", http.StatusOK, accessToken(d.of.AccessToken)
	}
	got, err := api.try(http.MethodPost, path, body, credential, key)
	if err != nil {
		return "", err
	}
	if got.Status != success {
		return "", fmt.Errorf("POST %s: got %d %s", path, got.Status, got.Body)
	}
	var answer struct{ ID, MessageID string }
	err = json.Unmarshal([]byte(got.Body), &answer)
	return answer.ID + answer.MessageID, err // one of them
}

// awaitMore waits until both sides have had more messages accepted.
func (d *dialogue) awaitMore(t *testing.T, more int) {
	t.Helper()
	counts := func() (visitor, company int) {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.accepted["visitor"]), len(d.accepted["company"])
	}
	visitor, company := counts()
	for end := time.Now().Add(clusterRecovery); ; time.Sleep(5 * time.Millisecond) {
		v, c := counts()
		if v >= visitor+more && c >= company+more {
			return
		}
		if time.Now().After(end) {
			t.Fatalf(
				"got %d and %d messages accepted in %v, want %d of each side",
				v-visitor, c-company, clusterRecovery, more,
			)
		}
	}
}

// check checks the history, then what the client has received of it.
func (d *dialogue) check(t *testing.T) {
	t.Helper()
	var said map[string][]string // ids of each side in the history
	eventually(t, "the history is complete", func() (err error) {
		said, err = d.history(t)
		return err
	})
	t.Logf("the history has %d messages of the visitor, %d of the company and %d of the bot; %d attempts failed",
		len(said["visitor"]), len(said["company"]), len(said["bot"]), d.failed)
	for side, ids := range d.accepted {
		if !slices.Equal(said[side], ids) {
			t.Errorf("the history has %d messages of the %s, want the %d accepted ones in order",
				len(said[side]), side, len(ids))
		}
	}
	for _, side := range []string{"company", "bot"} {
		eventually(t, "the client has received all of the "+side, func() error { return d.checkReceived(said[side]) })
	}
	d.stopRead()
}

// history returns the ids of each side. The error says what is missing, or there twice.
func (d *dialogue) history(t *testing.T) (said map[string][]string, err error) {
	said = map[string][]string{}
	texts := map[string]int{}
	for _, r := range d.visitor.history(t) {
		text := r.member(t, "text")
		at := strings.Index(text, "number ")
		if at < 0 {
			continue // a greeting
		}
		side := "visitor"
		if r.IsFromSupport && at == 0 {
			side = "company"
		}
		if r.IsFromSupport && at > 0 {
			side = "bot"
		}
		said[side] = append(said[side], r.ID)
		texts[side+" "+text[at:strings.Index(text, ".")]]++
	}
	for side, count := range map[string]int{
		"visitor": len(d.accepted["visitor"]), "company": len(d.accepted["company"]), "bot": len(d.accepted["visitor"]),
	} {
		for n := range count {
			text := fmt.Sprintf("%s number %d", side, n)
			if times := texts[text]; times != 1 {
				return said, fmt.Errorf("%q is in the history %d times, want once; it has %d of the visitor, %d of the company "+
					"and %d of the bot", text, times, len(said["visitor"]), len(said["company"]), len(said["bot"]))
			}
		}
	}
	return said, nil
}

// checkReceived checks that the client has received the messages once, in order.
func (d *dialogue) checkReceived(want []string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var got []string
	for _, id := range d.received {
		if slices.Contains(want, id) {
			got = append(got, id)
		}
	}
	if !slices.Equal(got, want) {
		distinct := len(slices.Compact(slices.Sorted(slices.Values(got))))
		return fmt.Errorf(
			"got %d messages, %d distinct, want %d in the order of the history", len(got), distinct, len(want),
		)
	}
	return nil
}
