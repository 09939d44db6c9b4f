package nemesis

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"time"
)

// index is a record, arranged for the rules. It does not change after newIndex.
type index struct {
	*notes
	messages []*message // by their first attempts
	byID     map[string]*message
	byText   map[string]*message
	// questions has the messages that the bot has answered, by the ids of the answers.
	questions map[string]*message
	failures  map[string]*message // the questions, by the ids that their failure texts have
	chats     []*chat             // by id
	clients   []*client
}

// message is what the attempts under one key wrote.
type message struct {
	key      string
	side     Side
	actor    string
	chatID   string // empty: not known to the tester
	text     string
	attempts []Write              // by their beginnings
	answered []string             // the ids of the successes, each once
	seen     map[string]bool      // the ids under which readers have seen the text
	answers  map[string]time.Time // ids of the bot's answers, and when a client first received them; zero: none did
}

// chat is what is known of a chat.
type chat struct {
	id       string
	owners   map[string]bool // the visitors that wrote to it or connected to it
	messages []*message
	views    []*view
	history  *view // the order that the other lists are compared with; nil: no reader had all of the chat
}

// view is a View with the places of its messages.
type view struct {
	View
	place map[string]int // by id
	times map[string]int // how often an id stands in it
}

// client is a client's sessions.
type client struct {
	name     string
	actor    string
	chatID   string
	sessions []*session
}

// session is what a client got between two connects that were not recovered.
type session struct {
	Connect         // the first
	gone       bool // the client left last
	loaded     map[string]bool
	deliveries []Delivery // by time
}

// runText matches what Text returns.
var runText = regexp.MustCompile(`\bw[0-9]+\.`)

func newIndex(n *notes) *index {
	x := &index{
		notes:     n,
		byID:      map[string]*message{},
		byText:    map[string]*message{},
		questions: map[string]*message{},
		failures:  map[string]*message{},
	}
	x.addMessages()
	x.addClients()
	x.addChats()
	isFailure := func(s seen) bool { return s.text == FailureText }
	x.eachSeen(func(s seen) {
		if !isFailure(s) {
			x.addSeen(s)
		}
	})
	x.addFailures() // the ids of all questions are known now
	x.eachSeen(func(s seen) {
		if isFailure(s) {
			x.addSeen(s)
		}
	})
	return x
}

// seen is a message that a reader had in a view, or that a client received.
type seen struct {
	reader string
	chatID string
	id     string
	text   string
	side   Side      // empty: of a delivery
	at     time.Time // of a delivery
}

// eachSeen calls a function for each message of the views, then for each delivery.
func (x *index) eachSeen(do func(seen)) {
	for _, c := range x.chats {
		for _, v := range c.views {
			for _, m := range v.Messages {
				do(seen{reader: v.Reader, chatID: c.id, id: m.ID, text: m.Text, side: m.Side})
			}
		}
	}
	for _, d := range x.Deliveries {
		do(seen{reader: d.Client, chatID: d.ChatID, id: d.MessageID, text: d.Text, at: d.At})
	}
}

func (x *index) addMessages() {
	byKey := map[string]*message{}
	writes := slices.Clone(x.Writes)
	slices.SortStableFunc(writes, func(a, b Write) int { return a.Begun.Compare(b.Begun) })
	for _, w := range writes {
		key := cmp.Or(w.Key, w.Text)
		m := byKey[key]
		if m == nil {
			m = &message{key: key, side: w.Side, actor: w.Actor, text: runText.FindString(w.Text)}
			m.seen, m.answers = map[string]bool{}, map[string]time.Time{}
			byKey[key] = m
			x.byText[m.text] = m
			x.messages = append(x.messages, m)
		}
		m.attempts = append(m.attempts, w)
		m.chatID = cmp.Or(m.chatID, w.ChatID)
		if w.Accepted() && w.MessageID != "" && !slices.Contains(m.answered, w.MessageID) {
			m.answered = append(m.answered, w.MessageID)
			x.byID[w.MessageID] = m
		}
	}
	delete(x.byText, "")
}

func (x *index) addClients() {
	byName := map[string]*client{}
	named := func(name string) *client {
		if byName[name] == nil {
			byName[name] = &client{name: name}
			x.clients = append(x.clients, byName[name])
		}
		return byName[name]
	}
	connects := slices.Clone(x.Connects)
	slices.SortStableFunc(connects, func(a, b Connect) int { return a.At.Compare(b.At) })
	for _, at := range connects {
		c := named(at.Client)
		c.actor = cmp.Or(c.actor, at.Actor)
		c.chatID = cmp.Or(at.ChatID, c.chatID)
		if len(c.sessions) == 0 || !at.Recovered && !at.Gone {
			c.sessions = append(c.sessions, newSession(at))
		}
		c.sessions[len(c.sessions)-1].gone = at.Gone
	}
	deliveries := slices.Clone(x.Deliveries)
	slices.SortStableFunc(deliveries, func(a, b Delivery) int { return a.At.Compare(b.At) })
	for _, d := range deliveries {
		c := named(d.Client)
		c.chatID = cmp.Or(c.chatID, d.ChatID)
		s := c.session(d.At)
		s.deliveries = append(s.deliveries, d)
	}
}

func newSession(at Connect) *session {
	s := &session{Connect: at, loaded: map[string]bool{}}
	for _, id := range at.Loaded {
		s.loaded[id] = true
	}
	return s
}

// session returns the session of a time: the last one that had begun, or the first.
func (c *client) session(at time.Time) *session {
	if len(c.sessions) == 0 {
		c.sessions = append(c.sessions, newSession(Connect{Client: c.name, At: at}))
	}
	for _, s := range slices.Backward(c.sessions) {
		if !s.At.After(at) {
			return s
		}
	}
	return c.sessions[0]
}

func (x *index) addChats() {
	byID := map[string]*chat{}
	named := func(id string) *chat {
		if byID[id] == nil {
			byID[id] = &chat{id: id, owners: map[string]bool{}}
		}
		return byID[id]
	}
	chatOf := x.chatOf()
	for _, m := range x.messages {
		if m.side == Visitor {
			m.chatID = cmp.Or(m.chatID, chatOf[m.actor])
		}
		c := named(m.chatID)
		c.messages = append(c.messages, m)
		if m.side == Visitor && m.accepted() {
			c.owners[m.actor] = true
		}
	}
	for _, at := range x.Connects {
		named(at.ChatID).owners[at.Actor] = true
	}
	for _, v := range x.Views {
		c := named(v.ChatID)
		c.views = append(c.views, newView(v))
	}
	delete(byID, "")
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		c := byID[id]
		delete(c.owners, "")
		c.history = c.chooseHistory()
		x.chats = append(x.chats, c)
	}
}

// chatOf returns the chat of each visitor of which it is known. The first write of a visitor may not know it.
func (x *index) chatOf() map[string]string {
	known := map[string]string{}
	for _, m := range x.messages {
		if m.side == Visitor {
			known[m.actor] = cmp.Or(known[m.actor], m.chatID)
		}
	}
	for _, at := range x.Connects {
		known[at.Actor] = cmp.Or(known[at.Actor], at.ChatID)
	}
	return known
}

func newView(v View) *view {
	known := &view{View: v, place: map[string]int{}, times: map[string]int{}}
	for n, m := range v.Messages {
		known.times[m.ID]++
		if known.times[m.ID] == 1 {
			known.place[m.ID] = n
		}
	}
	return known
}

// timeOf returns when a message of a view entered its chat.
func (v *view) timeOf(id string) (at time.Time, known bool) {
	place, known := v.place[id]
	if !known {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, v.Messages[place].CreatedAt)
	return at, err == nil
}

// since reports whether a view has every message since its first one, and a message of the history is not older.
func (v *view) since(history *view, id string) bool {
	if !v.SinceFirst || len(v.Messages) == 0 {
		return false
	}
	place, known := history.place[id]
	return known && place >= history.place[v.Messages[0].ID]
}

// chooseHistory returns the reader "history", or any other that has the whole chat in the order that it was told.
func (c *chat) chooseHistory() *view {
	var other *view
	for _, v := range c.views {
		switch {
		case !v.Whole || v.Live:
		case v.Reader == "history":
			return v
		case other == nil:
			other = v
		}
	}
	return other
}

// addSeen notes the message that a reader had.
func (x *index) addSeen(s seen) {
	m, isAnswer := x.source(s.id, s.text, s.side)
	switch {
	case m == nil:
	case !isAnswer:
		m.seen[s.id] = true
		x.byID[s.id] = m
	default:
		x.questions[s.id] = m
		if first := m.answers[s.id]; first.IsZero() || !s.at.IsZero() && s.at.Before(first) {
			m.answers[s.id] = s.at
		}
	}
}

// source returns the message that was read under an id: the one that has it, or has its text. Of a visitor's text that
// came from another side it returns the question, and of a failure text too. The side of a delivery is empty: it is
// never the visitor's.
func (x *index) source(id, text string, side Side) (m *message, isAnswer bool) {
	if m := x.byID[id]; m != nil {
		return m, false
	}
	if text == FailureText && side != Visitor {
		m = x.failures[id]
		return m, m != nil
	}
	m = x.byText[runText.FindString(text)]
	if m == nil || m.side != Visitor && side == Visitor {
		return nil, false
	}
	return m, m.side == Visitor && side != Visitor
}

func (m *message) accepted() bool { return slices.ContainsFunc(m.attempts, Write.Accepted) }

// first returns the first attempt.
func (m *message) first() Write { return m.attempts[0] }

// expects reports whether an attempt expected something.
func (m *message) expects(what func(Write) bool) bool { return slices.ContainsFunc(m.attempts, what) }

// id returns the id that was answered. A writer that was told none has that of the readers.
func (m *message) id() string {
	if len(m.answered) > 0 {
		return m.answered[0]
	}
	for _, id := range slices.Sorted(maps.Keys(m.seen)) {
		return id
	}
	return ""
}

// period is when a message may have been published.
type period struct{ from, until time.Time }

func (p period) overlaps(q period) bool { return !p.until.Before(q.from) && !q.until.Before(p.from) }

var (
	always = period{until: farAway}
	// farAway is when a message of which nothing is known may be published.
	farAway = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
)

// written returns when the attempts may have had their effect: at the latest when the first success was answered.
func (m *message) written() period {
	p := period{m.first().Begun, farAway}
	for _, w := range m.attempts {
		if w.Accepted() && w.Ended.Before(p.until) {
			p.until = w.Ended
		}
	}
	return p
}

// concurrent reports whether messages may have been published in either order. The bot answers one by one, in the order
// of the questions.
func (x *index) concurrent(a, b string) bool {
	p, q := x.questions[a], x.questions[b]
	if p != nil && q != nil {
		return p.written().overlaps(q.written())
	}
	return x.published(a).overlaps(x.published(b))
}

// published returns when a message may have been published.
func (x *index) published(id string) period {
	if m := x.byID[id]; m != nil {
		return m.written()
	}
	question := x.questions[id]
	if question == nil {
		return always
	}
	p := period{question.first().Begun, farAway}
	if received := question.answers[id]; !received.IsZero() {
		p.until = received
	}
	return p
}
