package bot

import (
	"sync"
	"time"

	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/knowledge"
)

// exchange is the state of a message over its tries. Only one handler at a time handles a message, and owns the
// fields.
type exchange struct {
	target   *target // of the first try: a later version of the settings is for later messages
	began    time.Time
	calls    int    // made for the message
	answered bool   // a call has succeeded
	result   Result // of that call, for a retry after a failed publish

	conversation []completionMessage // of the chat, the visitor's message last
	words        string              // that the model has written to search with; empty: none
	passages     []knowledge.Passage // of the company's documents, that the model gets
	messages     []completionMessage // what a language model is asked

	admitted bool             // by the bounds; calls may be made
	usage    usage            // of the company's bounds
	tokens   completionUsage  // of all calls, as the model reports them
	reported bool             // the model reports tokens
	used     *completionUsage // of the last try; nil: not reported

	steps   int            // at which the model has called tools
	uses    []bots.ToolUse // of the last try, for the log of calls
	decided bool           // the message is a visitor's decision, and the model is told what came of it
	asked   *bots.Action   // what the visitor is asked after the answer; nil: nothing

	made   bool // a test whose question no visitor has asked, after the turns of before
	before []bots.Turn

	fromReserve bool // the tokens come from the application's reserve, see [tokenBudget]
}

// exchanges holds the exchanges of the messages that are being answered, from the first try until the message
// is answered or given up. A message that another process has taken over is never forgotten by id; its exchange
// expires.
type exchanges struct {
	mu    sync.Mutex
	byID  map[string]*exchange
	swept time.Time
}

// of returns the exchange of a message; the first call creates it, with the target.
func (x *exchanges) of(id string, t *target, now time.Time) *exchange {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.sweep(now)
	known, ok := x.byID[id]
	if !ok {
		known = &exchange{target: t, began: now}
		if x.byID == nil {
			x.byID = make(map[string]*exchange)
		}
		x.byID[id] = known
	}
	return known
}

// targetOf returns the target of a message that was tried before; nil: none.
func (x *exchanges) targetOf(id string) *target {
	x.mu.Lock()
	defer x.mu.Unlock()
	if known, ok := x.byID[id]; ok {
		return known.target
	}
	return nil
}

// sweepAfter is far above any deadline of a company's bot.
const sweepAfter = 2 * time.Minute

// sweep is called with the lock held.
func (x *exchanges) sweep(now time.Time) {
	if now.Sub(x.swept) < sweepAfter {
		return
	}
	x.swept = now
	for id, e := range x.byID {
		if now.Sub(e.began) > max(sweepAfter, 2*e.target.deadline) {
			delete(x.byID, id)
		}
	}
}

// forget drops the exchange of a message.
func (x *exchanges) forget(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.byID, id)
}

// remaining returns how long the message may still be tried.
func (x *exchange) remaining(now time.Time) time.Duration {
	return x.target.deadline - now.Sub(x.began)
}

// end ends the exchange with a result, which is kept for a retry after a failed publish.
func (x *exchange) end(r Result) Result {
	x.result = r
	x.answered = true
	x.conversation, x.messages, x.passages = nil, nil, nil
	return r
}
