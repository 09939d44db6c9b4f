package nemesis

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// simulation is a system that keeps its promises, with one chat: writers that retry, a bot, and clients that lose
// sessions, recover and leave. It shows that the rules accept what may happen.
type simulation struct {
	*rand.Rand
	record *Record
	stream []published // by the time of publication
}

// published is a message of the simulated stream.
type published struct {
	ViewedMessage
	created, at float64 // seconds
}

func simulate(seed uint64) *Record {
	s := &simulation{Rand: rand.New(rand.NewPCG(seed, 0)), record: &Record{}}
	for n := range 60 {
		s.write(n)
	}
	byTime := func(a, b published) int { return cmp.Compare(a.at, b.at) }
	slices.SortFunc(s.stream, byTime)
	s.answer()
	slices.SortFunc(s.stream, byTime)
	for n := range 3 {
		s.client(fmt.Sprintf("ann/%d", n))
	}
	for _, reader := range []string{"history", "export"} {
		s.record.AddView(View{Reader: reader, ChatID: "chat", Owner: "ann", Whole: true, Messages: s.load(1000)})
	}
	return s.record
}

// write writes a message at up to three attempts. Each attempt without a success may have had its effect.
func (s *simulation) write(n int) {
	w := Write{Side: []Side{Visitor, Company}[n%2], ChatID: "chat", Key: Text(n), Text: Text(n)}
	w.Actor = map[Side]string{Visitor: "ann", Company: "api"}[w.Side]
	w.AnswerExpected = w.Side == Visitor
	begun := 100 * s.Float64()
	created := 0.0 // when the first attempt began that had an effect
	for range 1 + s.IntN(3) {
		took := s.Float64()
		w.Begun, w.Ended = at(begun), at(begun+took)
		succeeds := s.IntN(3) > 0
		if created == 0 && (succeeds || s.IntN(2) == 0) {
			created = begun
			m := ViewedMessage{ID: fmt.Sprintf("m%d", n), Side: w.Side, Text: w.Text}
			p := published{m, created, begun + took/2}
			if w.Side == Company {
				p.created = p.at // by the stream
			}
			s.stream = append(s.stream, p)
		}
		if succeeds {
			w.Status, w.MessageID = 200, fmt.Sprintf("m%d", n)
		}
		s.record.AddWrite(w)
		begun += took + s.Float64()
		if succeeds {
			return
		}
	}
}

// answer lets the bot answer all questions, one by one. To some it gives the failure text.
func (s *simulation) answer() {
	now := 0.0
	for _, p := range s.stream {
		if p.Side == Visitor {
			now = max(now, p.at) + s.Float64()/10
			m := ViewedMessage{ID: "a" + p.ID, Side: Bot, Text: "You said: " + p.Text}
			if s.IntN(5) == 0 {
				m.ID, m.Text = failureID(p.ID), FailureText
			}
			s.stream = append(s.stream, published{m, now, now})
		}
	}
}

// load returns the history at a time.
func (s *simulation) load(seconds float64) (history []ViewedMessage) {
	stored := slices.DeleteFunc(slices.Clone(s.stream), func(p published) bool { return p.at > seconds })
	slices.SortStableFunc(stored, func(a, b published) int { return cmp.Compare(a.created, b.created) })
	for _, p := range stored {
		history = append(history, p.ViewedMessage)
	}
	return history
}

// client lets a client connect until the end, or until it leaves.
func (s *simulation) client(name string) {
	c := Connect{Client: name, Actor: "ann", ChatID: "chat"}
	connected := 50 * s.Float64()
	for since := connected; connected < 200; {
		c.At, c.Loaded = at(connected), nil
		if !c.Recovered {
			since = connected
			c.Loaded = []string{}
			for _, m := range s.load(connected + s.Float64()) {
				c.Loaded = append(c.Loaded, m.ID)
			}
		}
		s.record.AddConnect(c)
		until := connected + 60*s.Float64()
		if connected > 100 {
			until = 300
		}
		for _, p := range s.stream {
			if p.Side != Visitor && p.at > since && p.at <= until {
				received := at(max(connected, p.at) + 0.001)
				s.record.AddDelivery(Delivery{name, "chat", p.ID, p.Text, received})
			}
		}
		since = until
		connected = until + 0.01 + 5*s.Float64()
		c.Recovered = s.IntN(2) == 0
		if s.IntN(10) == 0 && until < 300 {
			c.At, c.Gone = at(until+0.005), true
			s.record.AddConnect(c)
			return
		}
	}
}

func TestCheckOfSimulatedRuns(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		for _, v := range Check(simulate(seed)) {
			t.Fatalf("seed %d: got %s: %s\n%v", seed, v.Rule, v.Detail, v.History)
		}
	}
}

func TestCheckOfSimulatedLosses(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		r := simulate(seed)
		history := &r.Views[0]
		n := int(seed) % len(history.Messages)
		lost := history.Messages[n].ID
		history.Messages = slices.Delete(history.Messages, n, n+1)

		isLost := func(w Write) bool {
			effects := []string{w.MessageID, "a" + w.MessageID, failureID(w.MessageID)}
			return w.MessageID != "" && slices.Contains(effects, lost)
		}
		want := slices.ContainsFunc(r.Writes, isLost)
		if got := len(Check(r)) > 0; got != want {
			t.Errorf("seed %d without %s: got broken %t, want %t", seed, lost, got, want)
		}
	}
}
