package e2e

import (
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/parley-chat/parley/testkit/nemesis"
)

// dependency is how a server beside Parley fails, such as a webhook or a language model. The zero value is a server
// that works. A fault begins and ends while the server handles requests.
type dependency struct {
	status atomic.Int64 // with which it fails; 0: it succeeds
	hangs  atomic.Bool  // instead of that
	delay  atomic.Int64 // of each response, as a time.Duration
}

// begin lets the server fail. Half of the dead servers hang instead of answering with a status.
func (d *dependency) begin(f nemesis.Fault, chance *rand.Rand) (end func() error) {
	switch {
	case f.Kind == nemesis.Slow:
		d.delay.Store(int64(time.Duration(f.Arg) * time.Millisecond))
	case chance.IntN(2) == 0:
		d.hangs.Store(true)
	default:
		d.status.Store(int64(f.Arg))
	}
	return func() error {
		d.hangs.Store(false)
		d.status.Store(0)
		d.delay.Store(0)
		return nil
	}
}

// admit lets a request meet the fault. It returns false if nothing more is to be done for the request, of which the
// body has been read.
func (d *dependency) admit(w http.ResponseWriter, r *http.Request) bool {
	time.Sleep(time.Duration(d.delay.Load()))
	if d.hangs.Load() {
		<-r.Context().Done()
		return false
	}
	if status := d.status.Load(); status != 0 {
		w.WriteHeader(int(status))
		return false
	}
	return true
}

// goOn lets a response that has begun meet the fault: it hangs, or its connection breaks.
func (d *dependency) goOn(r *http.Request) {
	if d.hangs.Load() {
		<-r.Context().Done()
	}
	if d.status.Load() != 0 || r.Context().Err() != nil {
		panic(http.ErrAbortHandler)
	}
}
