package redisadapter_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/socketio"
	"github.com/parley-chat/parley/pkg/socketio/redisadapter"
)

// counter is a namespace that counts deliveries.
type counter struct {
	socketio.Local
	delivered atomic.Int64
	done      chan struct{} // gets a value when want have come
	want      int64
}

func (*counter) Name() string { return "/message" }

func (c *counter) HandleBroadcast(*socketio.Broadcast) int {
	if c.delivered.Add(1) == c.want {
		c.done <- struct{}{}
	}
	return 1
}

var reply = []byte(`["message",{"id":"0194f0b5-7a3c-7e11-8d4f-2f6a1b9c0d21","type":"TEXT","data":{"text":"hello there, how are you?"},"isFromSupport":true,"createdAt":"2026-11-21T10:00:00.000Z"},"12345"]`)

// cpuTime returns the CPU time of this process.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkReply sends events from one node to another through Redis, each to a separate room. The
// relevant result is cpu-ns/op, the CPU time of both nodes without Redis.
func BenchmarkReply(b *testing.B) {
	for name, pace := range map[string]time.Duration{"5000-a-second": time.Second / 5000, "flat-out": 0} {
		for _, sharded := range []bool{false, true} {
			format := "/classic"
			if sharded {
				format = "/sharded"
			}
			b.Run(name+format, func(b *testing.B) { benchmarkReply(b, pace, redisadapter.Options{Sharded: sharded}) })
		}
	}
}

func benchmarkReply(b *testing.B, pace time.Duration, opts redisadapter.Options) {
	const rooms, senders = 1000, 64
	client := startRedis(b).client()
	from, to := &counter{}, &counter{want: int64(b.N), done: make(chan struct{}, 1)}
	sender, receiver := redisadapter.New(client, opts)(from), redisadapter.New(client, opts)(to)
	b.Cleanup(func() {
		_, _, _ = sender.Close(), receiver.Close(), client.Close()
	})
	names := make([]string, rooms)
	for i := range names {
		names[i] = "0194f0b5-app-" + strconv.Itoa(i)
	}
	if err := receiver.Subscribe(context.Background(), names...); err != nil {
		b.Fatal(err)
	}
	work := make(chan int, senders)
	var wg sync.WaitGroup
	for range senders {
		wg.Go(func() {
			for i := range work {
				msg := &socketio.Broadcast{Selection: socketio.Selection{Rooms: names[i%rooms : i%rooms+1]}, Data: reply}
				if err := sender.Publish(context.Background(), msg); err != nil {
					b.Error(err)
				}
			}
		})
	}
	b.ReportAllocs()
	b.ResetTimer()
	start, cpu := time.Now(), cpuTime()
	for i := range b.N {
		if i%10 == 0 {
			time.Sleep(time.Until(start.Add(time.Duration(i) * pace)))
		}
		work <- i
	}
	close(work)
	wg.Wait()
	<-to.done
	b.StopTimer()
	b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N), "cpu-ns/op")
}
