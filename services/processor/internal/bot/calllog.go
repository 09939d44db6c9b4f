package bot

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/services/processor/internal/guard"
)

const (
	// callsWaiting is the number of calls that wait to be stored: of at most 64 KiB each.
	callsWaiting = 256
	// callBatch calls, or those of callInterval, are stored together: a store writes them at once, and the visitors' own
	// messages wait for fewer writes.
	callBatch    = 64
	callInterval = time.Second
	// callTimeout bounds the storing of a batch.
	callTimeout = 10 * time.Second
)

// Calls stores calls; see [store.BotCalls].
type Calls interface {
	Usage
	AppendBotCall(ctx context.Context, c bots.Call) error
}

// CallLog stores the calls of companies' bots in the background, so that no visitor waits for it, and counts the
// questions that no bound has counted. A call for which no room is left, as when the store is slow, is not logged. A nil
// CallLog logs nothing.
type CallLog struct {
	calls   Calls
	now     func() time.Time
	dropped prometheus.Counter
	ended   chan struct{}

	mu     sync.Mutex // guards closed, and sends to queue
	closed bool
	queue  chan callEntry
}

// callEntry is a call to be stored.
type callEntry struct {
	call    bots.Call
	counts  bots.Amount // what it adds to the usage of the day
	ordinal int         // of the application's questions of the day, if it adds none
}

// usageOf returns what the entry counts for.
func (e callEntry) usageOf() bots.UsageOf {
	return bots.UsageOf{AppID: e.call.AppID, Day: bots.Day(e.call.At)}
}

// NewCallLog starts a log. Close ends it.
func NewCallLog(calls Calls, now func() time.Time, registerer prometheus.Registerer) *CallLog {
	l := &CallLog{
		calls: calls, now: now,
		queue: make(chan callEntry, callsWaiting),
		ended: make(chan struct{}),
	}
	l.dropped = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "parley_bot_calls_not_logged_total",
		Help: "Calls of companies' bots that are missing in their log, because the store was slow or away.",
	})
	if registerer != nil {
		_ = registerer.Register(l.dropped) // fails only if another bot of the process has registered it
	}
	go l.run()
	return l
}

// Close stores the calls that wait.
func (l *CallLog) Close() {
	l.mu.Lock()
	l.closed = true
	close(l.queue)
	l.mu.Unlock()
	<-l.ended
}

func (l *CallLog) run() {
	defer close(l.ended)
	for {
		batch := l.next()
		if len(batch) == 0 {
			return
		}
		l.store(batch)
	}
}

// next returns the next calls to store; none when the log has been closed.
func (l *CallLog) next() []callEntry {
	first, open := <-l.queue
	if !open {
		return nil
	}
	batch := []callEntry{first}
	due := time.After(callInterval)
	for len(batch) < callBatch {
		select {
		case entry, open := <-l.queue:
			if !open {
				return batch
			}
			batch = append(batch, entry)
		case <-due:
			return batch
		}
	}
	return batch
}

// store counts the questions of a batch, once for each application and day, and adds its calls.
func (l *CallLog) store(batch []callEntry) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	counts := map[bots.UsageOf]bots.Amount{}
	for _, entry := range batch {
		counts[entry.usageOf()] = counts[entry.usageOf()].Add(entry.counts)
	}
	ordinals := map[bots.UsageOf]int{}
	for of, amount := range counts {
		if amount == (bots.Amount{}) {
			continue
		}
		after, _, err := l.calls.SpendBot(ctx, of, amount, bots.Amount{})
		if err == nil {
			ordinals[of] = after.Questions
		}
	}
	var writing sync.WaitGroup
	for _, entry := range batch {
		if max(entry.ordinal, ordinals[entry.usageOf()]) > bots.MaxCallsOfDay {
			continue
		}
		writing.Go(func() {
			if l.calls.AppendBotCall(ctx, entry.call) != nil {
				l.dropped.Inc()
			}
		})
	}
	writing.Wait()
}

// outcome is what a call has led to.
type outcome struct {
	result Result
	err    error // also if the visitor has read a part of the answer
	took   time.Duration
}

// add logs a call of a company's bot.
func (l *CallLog) add(ctx context.Context, x *exchange, e event.VisitorMessageAccepted, o outcome) {
	isLogged := x.target.url != "" && (x.target.version > 0 || x.target.test)
	if l == nil || !isLogged {
		return
	}
	entry := callEntry{call: x.describe(e, o, l.now()), ordinal: x.usage.ordinal}
	if !x.usage.counted {
		entry.counts.Tokens = entry.call.InputTokens + entry.call.OutputTokens
		if x.calls <= 1 {
			entry.counts.Questions = 1
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	select {
	case l.queue <- entry:
	default:
		l.dropped.Inc()
	}
}

// describe returns the last call of an exchange as the company sees it: of the operator's server what visitors see.
func (x *exchange) describe(e event.VisitorMessageAccepted, o outcome, at time.Time) bots.Call {
	t := x.target
	c := bots.Call{
		ID:           chat.NewID(),
		CompanyID:    e.CompanyID,
		AppID:        e.AppID,
		ChatID:       e.ChatID,
		MessageID:    e.Message.ID,
		At:           at.Add(-o.took).UTC(),
		Version:      t.version,
		Kind:         t.kind,
		Sent:         x.sent(e),
		Answer:       shortened(spokenAll(o.result.Messages), bots.MaxAnswer),
		Handover:     o.result.Handover != nil,
		Citations:    o.result.citations,
		Milliseconds: o.took.Milliseconds(),
		Failure:      t.failure(o.err),
	}
	c.Unanswered = t.model.Knowledge.Passages > 0 && c.Failure == nil && len(c.Citations) == 0 && len(x.uses) == 0
	c.SearchWords = x.words
	c.Tools = x.uses
	if x.made {
		c.ChatID, c.MessageID = "", ""
	}
	if t.own {
		c.Server = t.shown()
		c.Model = t.model.Model
	}
	if u := x.used; u != nil {
		c.InputTokens, c.OutputTokens = u.Input, u.Output
	}
	if prices := t.model.Prices; prices != (bots.Prices{}) {
		c.Cost = prices.Cost(c.InputTokens, c.OutputTokens)
		c.Currency = prices.Currency
	}
	return c
}

// sent returns what was sent to the server, without the operator's prompt.
func (x *exchange) sent(e event.VisitorMessageAccepted) []bots.Turn {
	if x.target.kind == bots.Webhook {
		return []bots.Turn{{Role: bots.RoleBody, Text: shortened(string(e.AppendJSON(nil)), bots.MaxSent)}}
	}
	turns := make([]bots.Turn, 0, len(x.messages))
	left := bots.MaxSent
	for _, m := range x.messages {
		isOfTool := m.Role == roleTool || len(m.ToolCalls) > 0 // which the log has by themselves
		if isOfTool || m.Role == bots.RoleSystem && !x.target.own {
			continue
		}
		said := shortened(m.Content, left)
		left -= len(said)
		turns = append(turns, bots.Turn{Role: m.Role, Text: said})
	}
	return turns
}

// shortened returns the first bytes of a text.
func shortened(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "")
}

// spokenAll returns messages as plain text.
func spokenAll(messages []Answer) string {
	var texts []string
	for _, m := range messages {
		texts = append(texts, spoken(chat.Message{Type: m.Type, Data: m.Data}))
	}
	return strings.Join(texts, "\n\n")
}

// failure returns why a call has no whole answer, for the company. The cause of a failed connection is told of its own
// servers only: it may have addresses of the operator's network.
func (t *target) failure(err error) *bots.CallFailure {
	if err == nil {
		return nil
	}
	f := &bots.CallFailure{Reason: apperr.ReasonOf(err), Message: err.Error()}
	if at, ok := errors.AsType[*fieldError](err); ok {
		f.Field = at.field
	}
	if coded, ok := errors.AsType[*apperr.Error](err); ok {
		f.Message = coded.Message
		if cause := coded.Unwrap(); cause != nil && t.own && coded.Reason == apperr.ServiceUnavailable.Reason {
			f.Message = "No answer: " + t.printable(guard.Reason(cause))
		}
	}
	return f
}

// shown returns the address of the server.
func (t *target) shown() string {
	u, err := url.Parse(t.url)
	if err != nil {
		return ""
	}
	return shownURL(u)
}

// shownURL returns an address without what may be secret.
func shownURL(u *url.URL) string {
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	return shown.String()
}
