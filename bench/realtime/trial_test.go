package main

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMarkRoundTrip(t *testing.T) {
	t.Parallel()
	sent := mark{trial: 3, room: 14_999, sequence: 80_000, planned: 12345678 * time.Microsecond}
	if got, ok := parseMark(deliveryPacket(sent)); !ok || got != sent {
		t.Errorf("got %+v, %t, want %+v", got, ok, sent)
	}
	v, d := &visitor{companyID: "c", appID: "a", id: "u", chatID: "k"}, draft{}
	for n := range 2*partsOfDraft + 1 {
		sent.sequence = n + 1
		part := d.next(v, sent, time.Now())
		if got, ok := parseMark(part.AppendShown([]byte(`42/message,["message.part",`))); !ok || got != sent {
			t.Errorf("in a part: got %+v, %t, want %+v", got, ok, sent)
		}
		if first := n%partsOfDraft == 0; first != (part.Offset == 0) || first != (part.N == 0) {
			t.Errorf("part %d: got n %d at %d, want another message after %d parts", n, part.N, part.Offset, partsOfDraft)
		}
	}
	for _, packet := range []string{``, `42/message,["message",{}]`, `"mark":"1.2.3`, `"mark":"1.2.3.x."`} {
		if got, ok := parseMark([]byte(packet)); ok {
			t.Errorf("%q: got %+v, want no mark", packet, got)
		}
	}
}

func TestTrialClassifiesDeliveries(t *testing.T) {
	t.Parallel()
	own := func(sequence int) mark { return mark{trial: 2, room: 7, sequence: sequence} }
	foreign, straggler := mark{trial: 2, room: 8, sequence: 3}, mark{trial: 1, room: 7, sequence: 9}
	tests := []struct {
		name        string
		marks       []mark
		want        outcome
		wantLost    int
		wantEndless bool // whether p99 is
	}{
		{"in order", []mark{own(1), own(2), own(3)}, outcome{expected: 3, delivered: 3}, 0, false},
		{"one is lost", []mark{own(1), own(3)}, outcome{expected: 3, delivered: 2}, 1, true},
		{"one comes late", []mark{own(1), own(3), own(2)}, outcome{expected: 3, delivered: 3, disordered: 1}, 0, false},
		{"one comes twice", []mark{own(1), own(2), own(2), own(3)}, outcome{expected: 3, delivered: 3, doubled: 1}, 0, false},
		{"one of another room", []mark{own(1), own(2), own(3), foreign}, outcome{expected: 3, delivered: 3, astray: 1}, 0, false},
		{"one that was never sent", []mark{own(1), own(2), own(3), own(4)}, outcome{expected: 3, delivered: 3, astray: 1}, 0, false},
		{"a straggler of an earlier trial", []mark{own(1), straggler, own(2), own(3)}, outcome{expected: 3, delivered: 3}, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			trial := newTrial(2, 1, 3, 3, start)
			for _, m := range tt.marks {
				trial.note(&client{room: 7}, deliveryPacket(m))
			}
			got := trial.outcome(3, start)
			if endlessly := got.p99 == endless; endlessly != tt.wantEndless {
				t.Errorf("got p99 %v, want endless: %t", got.p99, tt.wantEndless)
			}
			if got.lost() != tt.wantLost {
				t.Errorf("got %d lost, want %d", got.lost(), tt.wantLost)
			}
			got.p50, got.p99, got.took = 0, 0, 0
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestLatencyCountsFromThePlannedMoment(t *testing.T) {
	t.Parallel()
	trial := newTrial(1, 1, 1, 1, time.Now().Add(-time.Second))
	trial.note(&client{}, deliveryPacket(mark{trial: 1, sequence: 1, planned: 400 * time.Millisecond}))
	got := trial.outcome(1, time.Now()).p50
	if got < 600*time.Millisecond || got > 5*time.Second {
		t.Errorf("got %v, want 600ms or a little more", got)
	}
}

// TestClientReadsWhateverTheCut splits a whole conversation at every position.
func TestClientReadsSplitInput(t *testing.T) {
	t.Parallel()
	long := bytes.Repeat([]byte("x"), 70_000)
	talk := []byte("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n")
	packets := []string{`0{"sid":"a"}`, `40/message,{"sid":"b"}`, `2`, `42/message,["message",1]`, `42/message,["` + string(long) + `"]`}
	for _, packet := range packets {
		talk = appendServerFrame(talk, []byte(packet))
	}
	for cut := 0; cut <= len(talk); cut += 1 + cut/400 {
		c := &client{state: upgrading, hello: &hello{connect: []byte("token")}}
		var events int
		var sent []byte
		for _, part := range [][]byte{talk[:cut], talk[cut:]} {
			out, err := c.read(bytes.Clone(part), func(*client, []byte) { events++ })
			if err != nil {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			sent = append(sent, out...)
		}
		if events != 2 || c.state != joined || len(c.rest) != 0 {
			t.Fatalf("cut at %d: got %d events, state %d, %d bytes left, want 2, %d, 0", cut, events, c.state, len(c.rest), joined)
		}
		if !bytes.HasSuffix(sent, pong) {
			t.Fatalf("cut at %d: got %q sent, want the pong at its end", cut, sent)
		}
	}
}

func TestClientRejectsInvalidInput(t *testing.T) {
	t.Parallel()
	tests := map[string][]byte{
		"another status":      []byte("HTTP/1.1 503 Service Unavailable\r\n\r\n"),
		"a refused namespace": appendServerFrame([]byte("HTTP/1.1 101 Switching Protocols\r\n\r\n"), []byte(`44/message,{"message":"Unauthorized"}`)),
		"a close frame":       append([]byte("HTTP/1.1 101 Switching Protocols\r\n\r\n"), final|opClose, 0),
		"a fragment":          append([]byte("HTTP/1.1 101 Switching Protocols\r\n\r\n"), opText, 1, 'x'),
	}
	for name, talk := range tests {
		c := &client{state: upgrading, hello: &hello{}}
		if _, err := c.read(talk, nil); err == nil {
			t.Errorf("%s: got no error, want one", name)
		}
	}
}

// TestPoolCountsEveryDelivery runs the generator against the bare loop.
func TestPoolCountsEveryDelivery(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := new(bare)
	served := make(chan error, 1)
	go func() { served <- server.serve(ln) }()
	defer func() {
		ln.Close()
		<-served
	}()
	s := &stage{visitors: []*visitor{{connect: connectFrame("token")}}, epoch: time.Now()}
	if err := s.joinBare(ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	defer s.close()
	const crowd, events = 250, 70
	a, err := s.join(t.Context(), 0, crowd, func(int) int { return 0 })
	if err != nil || a.lost() != 0 {
		t.Fatalf("got %+v, %v, want all of %d", a, err, crowd)
	}
	for range 2 {
		got, err := s.replies(t.Context(), 1, 0, events, 5*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		got.p50, got.p99, got.took, got.cpu = 0, 0, 0, 0
		if want := (outcome{expected: crowd * events, delivered: crowd * events}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	server.dropOne()
	if _, err := s.replies(t.Context(), 1, 0, events, 300*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if got := s.pool.closed.Load(); got != 1 {
		t.Errorf("got %d closed, want the one connection that was dropped", got)
	}
}

// dropOne closes one connection of the bare loop.
func (b *bare) dropOne() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conns[0].Close()
}

func TestConnectingToAClosedPortFails(t *testing.T) {
	f, err := newPool()
	if err != nil {
		t.Fatal(err)
	}
	defer f.stop()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	nobody := netip.MustParseAddrPort("127.0.0.1:1")
	joined, _, err := f.connect(ctx, []dial{{to: nobody, hello: &hello{}}})
	if joined != 0 || err == nil {
		t.Errorf("got %d joined, %v, want none and the reason", joined, err)
	}
}

func TestCeilingIsFoundBetweenTheRates(t *testing.T) {
	t.Parallel()
	for _, want := range []int{1999, 2000, 4700, 9400, 63_000, 100_000} {
		holds := func(rate int) (bool, error) { return rate <= want, nil }
		got, err := searchCeiling(2000, holds)
		if err != nil {
			t.Fatal(err)
		}
		if want < 2000 && got != 0 || want >= 2000 && (got > want || float64(got)*1.1 < float64(min(want, highestRate/2))) {
			t.Errorf("got %d, want %d or at most 10%% less", got, want)
		}
	}
}
