package nemesis

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"
)

// Record is what happened in a run. The Add methods are safe for concurrent use; [Check] and [WriteReport] read it when
// the run is over.
type Record struct {
	mu sync.Mutex // guards notes
	notes
}

// notes is the content of a record, each list in the order in which it was noted. It is the JSON of a record.
type notes struct {
	Writes     []Write
	Connects   []Connect
	Deliveries []Delivery
	Views      []View
	Statuses   []Status
	Unread     []Unread
	Webhooks   []Webhook
	Faults     []FaultSpan

	Completions []Completion `json:",omitempty"`
	Drafts      []Draft      `json:",omitempty"`
	Events      []Event      `json:",omitempty"`
	Turns       []Turn       `json:",omitempty"`
}

// AddWrite notes a request to write a message, after its end.
func (r *Record) AddWrite(w Write) { add(r, &r.Writes, w) }

// AddConnect notes that a client has connected, or has left.
func (r *Record) AddConnect(c Connect) { add(r, &r.Connects, c) }

// AddDelivery notes a message that a client has received. The deliveries of one client are noted in their order.
func (r *Record) AddDelivery(d Delivery) { add(r, &r.Deliveries, d) }

// AddView notes a list of messages at the end of the run.
func (r *Record) AddView(v View) { add(r, &r.Views, v) }

// AddStatus notes a status of a message.
func (r *Record) AddStatus(s Status) { add(r, &r.Statuses, s) }

// AddUnread notes a count of unread messages at the end of the run.
func (r *Record) AddUnread(u Unread) { add(r, &r.Unread, u) }

// AddWebhook notes a request that a webhook has received and answered with a success.
func (r *Record) AddWebhook(w Webhook) { add(r, &r.Webhooks, w) }

// AddFault notes a fault, after its end.
func (r *Record) AddFault(f FaultSpan) { add(r, &r.Faults, f) }

// AddCompletion notes an answer of the model, after its end.
func (r *Record) AddCompletion(c Completion) { add(r, &r.Completions, c) }

// AddTurn notes a request to give a chat to a side, after its end.
func (r *Record) AddTurn(t Turn) { add(r, &r.Turns, t) }

// AddDraft notes a message that a client has put together from its parts.
func (r *Record) AddDraft(d Draft) { add(r, &r.Drafts, d) }

// AddEvent notes an event of a stream at the end of the run.
func (r *Record) AddEvent(e Event) { add(r, &r.Events, e) }

func add[T any](r *Record, to *[]T, note T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*to = append(*to, note)
}

// Save writes the record to a file, as JSON.
func (r *Record) Save(path string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	text, err := json.Marshal(&r.notes)
	if err != nil {
		return fmt.Errorf("encoding a record: %w", err)
	}
	return os.WriteFile(path, text, 0o600)
}

// Load reads a record that [Record.Save] has written.
func Load(path string) (*Record, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &Record{}
	if err := json.Unmarshal(text, &r.notes); err != nil {
		return nil, fmt.Errorf("decoding the record %s: %w", path, err)
	}
	return r, nil
}

// Side is the side of a chat that wrote a message.
type Side string

// The sides.
const (
	Visitor Side = "visitor"
	Company Side = "company" // through the Client API
	Agent   Side = "agent"   // in the panel
	Bot     Side = "bot"
)

// Text returns the text of the n-th message of a run, such as "w12.".
func Text(n int) string { return fmt.Sprintf("w%d.", n) }

// FindText returns what [Text] returned for a message that contains it; empty: it has no such text.
func FindText(message string) string { return runText.FindString(message) }

// Write is one request to write a message. Requests with the same key are attempts of the same message.
type Write struct {
	Side      Side
	Actor     string // the visitor, access token or agent
	ChatID    string
	Key       string // the Idempotency-Key
	Text      string // from [Text], unique in the run; the bot's answer contains it
	Begun     time.Time
	Ended     time.Time
	Status    int      // of the response; 0: none
	MessageID string   // of a success
	SeenIDs   []string // what the actor's client had received when it began, newest last, at most the last few

	AnswerExpected bool // the bot answers this message if it is accepted
	// A webhook for message.received was registered when the write began, or for message.status if the company writes.
	WebhookExpected bool
}

// Accepted reports whether the write was answered with a success.
func (w Write) Accepted() bool { return w.Status >= 200 && w.Status < 300 }

// Turn is one request to give a chat to the agents or to the bot.
type Turn struct {
	ChatID string
	Agent  bool // otherwise to the bot
	Begun  time.Time
	Ended  time.Time
	Done   bool // it was answered with a success; otherwise it may have had an effect or none
}

// Connect begins a session of a client: what it has received before is void, unless it is recovered. Or the client has
// left: then nothing is owed to it until it connects again.
type Connect struct {
	Client    string
	Actor     string // the visitor
	ChatID    string
	At        time.Time
	Recovered bool
	Loaded    []string // ids of the history that the client loaded after the connect; nil: it loaded nothing
	Part      bool     // Loaded lacks what is older than its first message
	Gone      bool     // the client has left on purpose
}

// Delivery is a message that a client received.
type Delivery struct {
	Client    string
	ChatID    string
	MessageID string
	Text      string
	At        time.Time
}

// View is a list of a chat's messages as one reader sees it at the end of the run.
type View struct {
	Reader     string // "history", "export", "panel history", "panel live agent-1", "client visitor-3/1", ...
	ChatID     string
	Owner      string // the visitor; empty: not known to the reader
	Company    string
	Whole      bool // it has every message of the chat; otherwise a part
	SinceFirst bool // it has every message since the first one that it has
	Live       bool // its order is that of arrival at the reader; otherwise the reader was told the order
	Messages   []ViewedMessage
}

// ViewedMessage is a message in a view.
type ViewedMessage struct {
	ID        string
	Side      Side
	Text      string
	CreatedAt string // as the API writes it

	FinishReason string `json:",omitempty"` // why an answer ended early; empty: it did not
}

// Status is a status of a message that an API or a webhook has reported. The reports of one source come in order, but
// for repetitions, unless they are unordered. The API reports all statuses at the end of the run.
type Status struct {
	MessageID string
	Name      string    // accepted, stored, delivered, read, failed
	At        time.Time // when the report arrived: the time that it names would hide that it came late
	Source    string
	ReportID  string `json:",omitempty"` // the header webhook-id, which a repetition has too; empty: the API reports it

	Unordered bool `json:",omitempty"` // of a webhook: two of its reports may overtake each other
}

// Unread is a count of unread messages that an API reported at the end of the run, and what the views imply.
type Unread struct {
	ChatID  string
	Reader  string
	Counted int
	Actual  int
}

// Webhook is a request that a webhook received and answered with a success.
type Webhook struct {
	Endpoint  string
	Type      string // message.received, ...
	WebhookID string // the header webhook-id
	MessageID string
	Text      string
	At        time.Time
}

// Completion is what the model wrote to a question at one call. It may have written more than arrived.
type Completion struct {
	Question string // the text, from [Text]
	Text     string
	Ended    bool // it wrote all that it wanted to
}

// Draft is a message as a client has put it together from its parts, before it received the message, or when the last
// part had come.
type Draft struct {
	Client    string
	ChatID    string
	MessageID string
	Text      string
	Whole     bool // all parts came, up to the last one
	At        time.Time
}

// Event is an event that a stream has.
type Event struct {
	Stream string
	ID     string // the header Nats-Msg-Id
}

// FaultSpan is a fault that was injected.
type FaultSpan struct {
	Fault Fault
	Begun time.Time
	Ended time.Time
	Err   string // why it could not be injected or ended
}
