package bustest_test

import (
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/testkit/bustest"
)

func TestCollectEndsOmitsProgressAcknowledgements(t *testing.T) {
	t.Parallel()
	url := bustest.Start(t).URL()
	ends := bustest.CollectEnds(t, url, "REPLIES", "recorder")
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for _, ack := range []string{"+WPI", "+ACK", "+WPI", "-NAK", "+TERM"} {
		if err := nc.Publish("$JS.ACK.REPLIES.recorder.1.1.1.1.0", []byte(ack)); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"+ACK", "+TERM"} {
		if got := string(ends.Next().Data); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
