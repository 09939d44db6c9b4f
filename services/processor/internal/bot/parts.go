package bot

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
)

const (
	// partInterval is the minimum time between two parts of a message: about 16 a second.
	partInterval = 60 * time.Millisecond
	// wholeInterval is how often a part repeats the whole text, so that a reader that has missed a part recovers.
	wholeInterval = 5 * time.Second
	// partTimeout bounds the publishing of one part.
	partTimeout = 2 * time.Second
	// defaultSilence is how long a streamed answer may be silent before it is interrupted.
	defaultSilence = 30 * time.Second
)

// Why a text ended early: the member finishReason of the message's data.
const (
	finishStopped     = "stopped"     // the visitor has stopped it
	finishInterrupted = "interrupted" // the source failed, or was silent for too long
	finishLength      = "length"      // the text has reached the maximum length of a message
)

// Begin starts to stream a TEXT message of a format to the visitor. stop is called at most once, when the visitor stops
// the message. Begin returns nil if the visitor must not see it: an agent has the chat.
type Begin func(ctx context.Context, format chat.Format, stop func()) (*PartWriter, error)

// firstPart returns the number of the first part of a text that begins some time after its question. It is above those
// of a process that has died since: that published at most one part in each partInterval. The stream of parts does not
// tell, because a power cut takes parts that clients have.
func firstPart(sinceQuestion time.Duration) int32 {
	return int32(max(0, sinceQuestion) / (partInterval / 2))
}

// PartWriter publishes a growing text in parts. It belongs to one goroutine.
type PartWriter struct {
	publisher event.Publisher
	now       func() time.Time
	first     event.MessagePart // a part without n, offset and text
	release   func()            // the visitor can no longer stop it

	citations []bots.Citation // of the text; belongs to the writing goroutine

	mu    sync.Mutex
	text  strings.Builder
	runes int
	whole bool // the next part has the whole text

	// These belong to run, and to the code after it.
	n       int32
	sent    int       // published bytes of text
	units   int       // the same in UTF-16 code units
	wholeAt time.Time // when a part last had the whole text

	wake   chan struct{} // capacity 1: there is new text
	ending chan struct{}
	ended  chan struct{}
	done   sync.Once
}

func newPartWriter(
	p event.Publisher,
	now func() time.Time,
	first event.MessagePart,
	n int32,
	release func(),
) *PartWriter {
	w := &PartWriter{
		publisher: p, now: now, first: first, n: n, release: release, whole: true,
		wake: make(chan struct{}, 1), ending: make(chan struct{}), ended: make(chan struct{}),
	}
	go w.run()
	return w
}

// Write appends to the text. It reports false when the message is full, and then keeps what fits.
func (w *PartWriter) Write(text string) (more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text = strings.ToValidUTF8(text, "\uFFFD")
	n := utf8.RuneCountInString(text)
	more = w.runes+n <= chat.MaxTextLength
	if !more {
		text = string([]rune(text)[:chat.MaxTextLength-w.runes])
		n = chat.MaxTextLength - w.runes
	}
	w.text.WriteString(text)
	w.runes += n
	w.awake()
	return more
}

// Replace replaces the text.
func (w *PartWriter) Replace(text string) {
	w.mu.Lock()
	w.text.Reset()
	w.runes = 0
	w.whole = true
	w.mu.Unlock()
	w.Write(text)
}

func (w *PartWriter) awake() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// run publishes new text, at most every partInterval.
func (w *PartWriter) run() {
	defer close(w.ended)
	for {
		select {
		case <-w.wake:
		case <-w.ending:
			return
		}
		w.flush()
		select {
		case <-time.After(partInterval):
		case <-w.ending:
			return
		}
	}
}

// flush publishes one part. After a failed publish the next part has the whole text, since the failed one may
// be in the stream.
func (w *PartWriter) flush() {
	w.mu.Lock()
	text, whole := w.text.String(), w.whole
	w.mu.Unlock()
	now := w.now()
	if len(text) == w.sent && !whole || text == "" {
		return
	}
	whole = whole || now.Sub(w.wholeAt) >= wholeInterval
	part := w.first
	part.N = w.n
	part.Text = text
	if !whole {
		part.Offset = int32(w.units)
		part.Text = text[w.sent:]
		part.NameOfSender = ""
		part.Format = ""
	}
	w.n++
	if err := w.publish(part); err != nil {
		w.mu.Lock()
		w.whole = true
		w.awake()
		w.mu.Unlock()
		return
	}
	w.mu.Lock()
	w.whole = w.whole && !strings.HasPrefix(w.text.String(), text) // replaced in the meantime
	w.mu.Unlock()
	if whole {
		w.wholeAt = now
		w.units = 0
		w.sent = 0
	}
	w.units += event.UTF16Length(text[w.sent:])
	w.sent = len(text)
}

func (w *PartWriter) publish(part event.MessagePart) error {
	ctx, cancel := context.WithTimeout(context.Background(), partTimeout)
	defer cancel()
	return w.publisher.Publish(ctx, event.Derived(), part)
}

// end publishes the remaining text and returns the text.
func (w *PartWriter) end() string {
	w.release()
	close(w.ending)
	<-w.ended
	w.flush()
	return w.text.String()
}

// End ends the text and returns the result with its message, or without one if the text is blank. reason is why it
// ended early; empty: it did not.
func (w *PartWriter) End(reason string) Result {
	text := w.end()
	if strings.TrimSpace(text) == "" {
		w.Done()
		return Result{}
	}
	message := Answer{Type: chat.Text, Data: textData(text, w.first.Format, reason, w.citations)}
	return Result{Messages: []Answer{message}, stream: w, citations: w.citations}
}

// Abandon ends a text without a message. The visible text stays: another process will stream it again.
func (w *PartWriter) Abandon() { w.end() }

// Done publishes that no more parts follow: the message is published, or will not be. It may be called repeatedly.
func (w *PartWriter) Done() {
	w.done.Do(func() {
		part := w.first
		part.N = w.n
		part.Offset = int32(w.units)
		part.NameOfSender = ""
		part.Format = ""
		part.Done = true
		_ = w.publish(part) // readers that miss it get the message, or drop a text that is silent for long
	})
}

func textData(text string, format chat.Format, reason string, citations []bots.Citation) json.RawMessage {
	return newAnswer(chat.Text, struct {
		Text         string          `json:"text"`
		Format       chat.Format     `json:"format"`
		FinishReason string          `json:"finishReason,omitempty"`
		Citations    []bots.Citation `json:"citations,omitempty"`
	}{text, format, reason, citations}).Data
}

// writers holds the messages that are being streamed, by the subject on which they can be stopped.
type writers struct {
	mu     sync.Mutex
	byStop map[string]func()
}

func (w *writers) add(stopSubject string, stop func()) (release func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byStop == nil {
		w.byStop = make(map[string]func())
	}
	w.byStop[stopSubject] = stop
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.byStop, stopSubject)
	}
}

// stop reports whether the message was being streamed.
func (w *writers) stop(stopSubject string) bool {
	w.mu.Lock()
	stop, ok := w.byStop[stopSubject]
	delete(w.byStop, stopSubject)
	w.mu.Unlock()
	if ok {
		stop()
	}
	return ok
}

// Stop ends a message that is being streamed to a visitor: the text so far becomes the message. It reports
// whether this bot was streaming it.
func (b *Bot) Stop(appID, chatUserID, messageID string) bool {
	return b.writers.stop(subject.Stop(appID, chatUserID, messageID))
}

// Why reading a text was cancelled.
var (
	errStopped = errors.New("the visitor has stopped the answer")
	errSilent  = errors.New("no text came for too long")
	errFull    = errors.New("the answer is longer than a message, or than the model may write")
)

// interruptedError ends a text of which the visitor has read a part.
type interruptedError struct{ cause error }

func (e *interruptedError) Error() string { return "interrupted: " + e.cause.Error() }
func (e *interruptedError) Unwrap() error { return e.cause }

// piece is a piece of text from a source.
type piece struct {
	text string
	// replace replaces the text so far by this piece.
	replace bool
	// format is that of the whole text, in its first piece; empty: Markdown, which models write.
	format chat.Format
	// alive reports that a source that is silent for long goes on.
	alive bool
	// citations are those of the text so far. A replacement has none.
	citations []bots.Citation
}

// show streams a text from next, until io.EOF. Other errors of next after the first piece interrupt the text,
// which keeps the pieces before. next must end when ctx does, and cancel ends ctx.
func show(
	ctx context.Context,
	cancel context.CancelCauseFunc,
	begin Begin,
	silence time.Duration,
	next func() (piece, error),
) (Result, error) {
	var w *PartWriter
	watch := time.AfterFunc(time.Hour, func() { cancel(errSilent) })
	watch.Stop()
	defer watch.Stop()
	for {
		p, err := next()
		if p.text != "" && w == nil {
			format := cmp.Or(p.format, chat.Markdown)
			began, beginErr := begin(ctx, format, func() { cancel(errStopped) })
			if beginErr != nil || began == nil {
				return Result{}, beginErr
			}
			w = began
		}
		switch {
		case p.replace && w != nil:
			w.Replace(p.text)
		case p.text != "":
			watch.Reset(silence)
			if !w.Write(p.text) {
				err = errFull
			}
		}
		if w != nil && p.alive {
			watch.Reset(silence)
		}
		if w != nil && p.text != "" {
			w.citations = p.citations
		}
		if err != nil {
			return finish(ctx, w, err)
		}
	}
}

// finish ends a text; w is nil if nothing of it was streamed.
func finish(ctx context.Context, w *PartWriter, err error) (Result, error) {
	cause := context.Cause(ctx)
	switch {
	case w == nil && (errors.Is(err, io.EOF) || errors.Is(err, errFull)):
		return Result{}, nil
	case w == nil:
		return Result{}, err
	case errors.Is(err, io.EOF):
		return w.End(""), nil
	case errors.Is(err, errFull):
		return w.End(finishLength), nil
	case errors.Is(cause, errStopped):
		return w.End(finishStopped), nil
	case errors.Is(cause, context.Canceled):
		w.Abandon()
		return Result{}, err
	}
	return w.End(finishInterrupted), &interruptedError{err}
}
