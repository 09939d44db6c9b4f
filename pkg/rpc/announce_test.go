package rpc_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-chat/parley/pkg/rpc"
	"github.com/parley-chat/parley/testkit/bustest"
)

// note is an announcement with a text.
type note struct {
	Topic string `json:"-"`
	Text  string `json:"text"`
}

func (n note) Subject() string { return "parley.test." + n.Topic }

func (n note) AppendJSON(dst []byte) []byte {
	text, _ := json.Marshal(n)
	return append(dst, text...)
}

// raw is an announcement with a malformed payload.
type raw string

func (raw) Subject() string                { return "parley.test.a" }
func (r raw) AppendJSON(dst []byte) []byte { return append(dst, r...) }

// Only what is of a reasonable size and well formed reaches the listener.
func TestListenDropsWhatItCannotDecode(t *testing.T) {
	t.Parallel()
	c := bustest.Open(t, bustest.Start(t).URL()).RPC()
	heard := make(chan string, 10)
	stop, err := rpc.Listen(c, "parley.test.*", "", rpc.DecodeJSON[note], func(n note) { heard <- n.Text })
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []rpc.Announcement{
		raw("{"),
		note{Topic: "a", Text: strings.Repeat("x", 100<<10)},
		note{Topic: "b", Text: "one"},
		note{Topic: "a", Text: "two"},
	} {
		if err := c.Announce(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"one", "two"} {
		if got := receive(t, want, heard); got != want {
			t.Errorf("got %.20q, want %q", got, want)
		}
	}
	for _, topic := range []string{"", "*", "a b"} {
		if err := c.Signal(note{Topic: topic}); err == nil {
			t.Errorf("topic %q: got no error, want one", topic)
		}
	}
	stop()
}
