package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/config"
	widgetapi "github.com/parley-chat/parley/services/widget-api"
	"github.com/parley-chat/parley/testkit/servicetest"
)

// flooding is the rate and the size of the messages of one application's visitors.
const (
	floodRate  = 400
	floodBytes = 4000
)

// TestLoadOfOneApplication floods one application. Its visitors exceed its budget; all messages of others are
// accepted. Their latency is logged, and asserted in the long form only: other tests and the flood itself
// share the processors.
func TestLoadOfOneApplication(t *testing.T) {
	f := newDeployment(t, 0)
	f.services = []string{"client-api", "widget-api"}
	requests, budget := 200, 2 // of the others, and MiB of an application in an hour
	if longForm() {
		requests, budget = 2000, 16
	}
	for _, name := range []string{"seed", "nats", "redis", "client-api"} {
		f.start(t, name)
	}
	f.runWidgetAPI(t, config.Rate{Count: 8 * budget << 20, Per: 168 * time.Hour}) // an eighth of it in an hour
	f.awaitReady(t, http.StatusOK, f.services...)
	other := newBystander(t, f.place)
	other.send(t, requests/4) // fills caches and pools
	before := other.send(t, requests)

	api := f.widgetAPI(t)
	var flooders []*visitor
	for range 16 {
		flooders = append(flooders, register(t, f.place, api))
	}
	var accepted, refused, strange atomic.Int64
	stop := make(chan struct{})
	var flooding sync.WaitGroup
	body := fmt.Sprintf(`{"type":"TEXT","data":{"text":%q}}`, strings.Repeat("x", floodBytes))
	for _, v := range flooders {
		flooding.Go(func() {
			tick := time.NewTicker(time.Duration(len(flooders)) * time.Second / floodRate)
			defer tick.Stop()
			for {
				select {
				case <-stop:
					return
				case <-tick.C:
				}
				switch got, err := api.try(http.MethodPost, "/message", body, bearer(v.token)); {
				case err == nil && got.Status == http.StatusCreated:
					accepted.Add(1)
				case err == nil && got.Status == http.StatusTooManyRequests:
					refused.Add(1)
				default:
					strange.Add(1)
				}
			}
		})
	}
	eventually(t, "the application reaches its budget", func() error {
		if refused.Load() == 0 {
			return fmt.Errorf("got %d accepted and none refused", accepted.Load())
		}
		return nil
	})
	during := other.send(t, requests)
	close(stop)
	flooding.Wait()
	t.Logf("the flood: %d accepted, %d refused with 429, %d others", accepted.Load(), refused.Load(), strange.Load())
	for n, name := range []string{"POST /message/send", "POST /message"} {
		wantUnharmed(t, name, before[n], during[n])
	}
	if strange.Load() > 0 || accepted.Load()*floodBytes > int64(budget)<<20 {
		t.Errorf("got %d accepted and %d neither accepted nor 429, want the application at its own limit", accepted.Load(), strange.Load())
	}
}

// runWidgetAPI runs the Widget API in this process: no profile has such a small budget of an application.
func (f *deployment) runWidgetAPI(t *testing.T, application config.Rate) {
	t.Helper()
	cfg := widgetConfig(t)
	cfg.HTTPAddr, cfg.OpsAddr = f.addr["widget-api"], f.ops["widget-api"]
	cfg.NATSURL, cfg.RedisURL = f.natsURL("widget-api"), f.redisURL("widget-api")
	cfg.Storage.SQLitePath, cfg.VisitorKeysFile, cfg.SecretsKeyFile = f.SQLitePath, f.KeysFile, f.Secrets
	cfg.BytesApplication, cfg.BytesAddress = application, config.Rate{} // all clients share one address
	s, err := widgetapi.New(cfg)
	check(t, err)
	servicetest.Run(t, s.Run)
}

// wantUnharmed logs the latency of others' calls, and checks in the long form that a flood at most doubles it.
func wantUnharmed(t *testing.T, call string, before, during latencies) {
	t.Helper()
	t.Logf("others' %s: p50 %v and p99 %v before, p50 %v and p99 %v under the flood", call, before.at(50), before.at(99), during.at(50), during.at(99))
	const unrest = 50 * time.Millisecond // of a machine with other work
	if most := 2*before.at(99) + unrest; longForm() && during.at(99) > most {
		t.Errorf("others' %s: got a p99 of %v, want at most %v", call, during.at(99), most)
	}
}

// bystander is a company outside the flood, and one of its visitors.
type bystander struct {
	client         *api
	secret, chatID string
	visitor        *visitor
}

func newBystander(t *testing.T, p place) *bystander {
	t.Helper()
	s := openStore(t, p)
	app, _, secret := putCompany(t, s)
	p.AppID, p.CompanyID = app.ID, app.CompanyID
	c := openChat(t, s, p, time.Now().Add(-time.Minute))
	v := &visitor{place: p, api: p.widgetAPI(t), token: sign(t, p, claims(p, c.ChatUserID))}
	return &bystander{client: p.clientAPI(t), secret: secret, chatID: c.ID, visitor: v}
}

// latencies are sorted.
type latencies []time.Duration

func (l latencies) at(percent int) time.Duration {
	return l[min(len(l)-1, len(l)*percent/100)].Round(10 * time.Microsecond)
}

// send lets the company and its visitor send n messages each, one after the other. All must be accepted.
func (b *bystander) send(t *testing.T, n int) [2]latencies {
	t.Helper()
	var took [2]latencies
	for range n {
		began := time.Now()
		want[sent](t, http.StatusOK, b.client.call(t, http.MethodPost, "/message/send",
			`{"type":"TEXT","data":{"text":"of another company"},"chatId":"`+b.chatID+`"}`, accessToken(b.secret)))
		took[0] = append(took[0], time.Since(began))
		began = time.Now()
		b.visitor.write(t, "of another company's visitor")
		took[1] = append(took[1], time.Since(began))
	}
	slices.Sort(took[0])
	slices.Sort(took[1])
	return took
}
