package http

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/admin/view"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/inspect"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/services/panel/internal/live"
)

type streamView struct {
	Name         string         `json:"name"`
	Messages     uint64         `json:"messages"`
	Bytes        uint64         `json:"bytes"`
	MaxBytes     int64          `json:"maxBytes"`
	FirstAt      chat.Time      `json:"firstAt,omitzero"`
	LastAt       chat.Time      `json:"lastAt,omitzero"`
	LastSequence uint64         `json:"lastSequence"`
	Consumers    []consumerView `json:"consumers"`
}

type consumerView struct {
	Name string `json:"name"`
	positionView
	DeliveredSequence uint64          `json:"deliveredSequence"`
	AckFloor          uint64          `json:"ackFloor"`
	Partitions        []partitionView `json:"partitions"`
}

type partitionView struct {
	Partition int `json:"partition"`
	positionView
}

// positionView is the position of a consumer, in one partition or in all.
type positionView struct {
	Pending     uint64    `json:"pending"`
	AckPending  int       `json:"ackPending"`
	Redelivered int       `json:"redelivered"`
	OldestAge   int64     `json:"oldestAgeSeconds"` // of its first pending event; 0: none is pending
	ActiveAt    chat.Time `json:"activeAt,omitzero"`
	Read        bool      `json:"read"`
}

// position looks up when the stream stored the first event after the partition's ack floor: an upper bound of
// the oldest age, exact if the stream has one partition.
func (a api) position(
	ctx context.Context,
	stream string,
	p bus.PartitionInfo,
	taken map[uint64]time.Time,
) positionView {
	v := positionView{
		Pending:     p.Pending,
		AckPending:  p.AckPending,
		Redelivered: p.Redelivered,
		ActiveAt:    chat.Time(p.Active),
		Read:        p.Read,
	}
	if p.Pending == 0 && p.AckPending == 0 {
		return v
	}
	at, known := taken[p.AckFloor]
	if !known {
		if d, err := a.Streams.Get(ctx, stream, p.AckFloor+1); err == nil {
			at = d.Time
		}
		taken[p.AckFloor] = at
	}
	if !at.IsZero() {
		v.OldestAge = int64(max(0, a.Now().Sub(at)) / time.Second)
	}
	return v
}

// maxWaiting bounds the list of what waits for channels.
const maxWaiting = 100

func (a api) getStreams(c echo.Context, _ caller) error {
	ctx := ctxOf(c)
	streams, err := inspect.Streams(ctx, a.Streams)
	if err != nil {
		return err
	}
	rows := []streamView{}
	for _, s := range streams {
		row := streamView{
			Name:         s.Name,
			Messages:     s.Messages,
			Bytes:        s.Bytes,
			MaxBytes:     s.MaxBytes,
			FirstAt:      s.FirstTime,
			LastAt:       s.LastTime,
			LastSequence: s.LastSeq,
			Consumers:    []consumerView{},
		}
		groups, err := a.Streams.Groups(ctx, s.Name)
		if err != nil && !apperr.Is(err, apperr.NotFound) {
			return err
		}
		taken := map[uint64]time.Time{}
		for _, g := range groups {
			total := g.Total()
			consumer := consumerView{
				Name:              g.Name,
				positionView:      a.position(ctx, s.Name, total, taken),
				DeliveredSequence: total.Delivered,
				AckFloor:          total.AckFloor,
				Partitions:        []partitionView{},
			}
			for _, p := range g.Partitions {
				position := a.position(ctx, s.Name, p, taken)
				consumer.Partitions = append(consumer.Partitions, partitionView{p.Partition, position})
			}
			row.Consumers = append(row.Consumers, consumer)
		}
		rows = append(rows, row)
	}
	waiting, err := inspect.WaitingForChannels(ctx, a.Streams, a.Now())
	if err != nil && !apperr.Is(err, apperr.NotFound) {
		return err
	}
	waiting = append([]inspect.Waiting{}, waiting[:min(len(waiting), maxWaiting)]...)
	return c.JSON(http.StatusOK, map[string]any{"at": chat.Time(a.Now()), "streams": rows, "waiting": waiting})
}

type deadLetterView struct {
	Sequence         uint64              `json:"sequence"`
	Time             chat.Time           `json:"time"`
	Stream           string              `json:"stream"`
	Consumer         string              `json:"consumer"`
	Subject          string              `json:"subject"`
	OriginalSequence uint64              `json:"originalSequence"`
	EventID          string              `json:"eventId"`
	EventType        string              `json:"eventType"`
	Attempts         int                 `json:"attempts"`
	Reason           string              `json:"reason"`
	CompanyID        string              `json:"companyId,omitempty"`
	ChatID           string              `json:"chatId,omitempty"`
	MessageID        string              `json:"messageId,omitempty"`
	Headers          map[string][]string `json:"headers,omitempty"`
	Payload          json.RawMessage     `json:"payload,omitempty"`
}

func viewOfDeadLetter(l inspect.DeadLetter) deadLetterView {
	return deadLetterView{
		Sequence:         l.Sequence,
		Time:             l.Time,
		Stream:           l.Stream,
		Consumer:         l.Consumer,
		Subject:          l.Subject,
		OriginalSequence: l.Original,
		EventID:          l.MessageID,
		EventType:        l.Type,
		Attempts:         l.Attempts,
		Reason:           l.Reason,
		CompanyID:        l.CompanyID,
		ChatID:           l.ChatID,
		MessageID:        l.MessageID,
	}
}

func (a api) getDeadLetters(c echo.Context, _ caller) error {
	filter := inspect.DeadLetterFilter{Stream: c.QueryParam("stream"), Consumer: c.QueryParam("consumer")}
	read := func(ctx context.Context, p store.Page) ([]inspect.DeadLetter, error) {
		return a.deadLetters(ctx, filter, p)
	}
	return answerList(c, "letters", read, deadLetterID, viewOfDeadLetter, nil)
}

// deadLetters reads a page of the dead letters that match a filter.
func (a api) deadLetters(
	ctx context.Context,
	f inspect.DeadLetterFilter,
	p store.Page,
) ([]inspect.DeadLetter, error) {
	if p.After != "" {
		after, err := strconv.ParseUint(p.After, 10, 63)
		if err != nil {
			return nil, errCursor()
		}
		f.After = after
	}
	return inspect.DeadLetters(ctx, a.Streams, f, p.Limit)
}

func deadLetterID(l inspect.DeadLetter) string { return strconv.FormatUint(l.Sequence, 10) }

func (a api) getDeadLetter(c echo.Context, _ caller) error {
	sequence, err := strconv.ParseUint(c.Param("sequence"), 10, 64)
	if err != nil || sequence == 0 {
		return apperr.MessageNotFound.New()
	}
	l, err := a.Streams.DeadLetter(ctxOf(c), sequence)
	if err != nil {
		return err
	}
	d := inspect.DetailOf(l)
	v := viewOfDeadLetter(d.DeadLetter)
	v.Headers = d.Header
	v.Payload = d.Event
	if v.Payload == nil {
		v.Payload, err = json.Marshal(d.Text)
		if err != nil {
			return err
		}
	}
	return answerJSON(c, http.StatusOK, v)
}

type deadLettersRequest struct {
	Sequences []uint64 `json:"sequences"`
	Stream    string   `json:"stream"`
	Consumer  string   `json:"consumer"`
	Cursor    string   `json:"cursor"`
	DryRun    bool     `json:"dryRun"`
}

// maxDeadLetters bounds the dead letters of one request.
const maxDeadLetters = 1000

func (a api) redriveDeadLetters(c echo.Context, who caller) error {
	return a.actOnDeadLetters(c, who, "dead-letter.redrive", "would be redriven", "redriven", true, a.Streams.Replay)
}

func (a api) dropDeadLetters(c echo.Context, who caller) error {
	return a.actOnDeadLetters(c, who, "dead-letter.drop", "would be dropped", "dropped", false,
		func(ctx context.Context, l bus.DeadLetter) error { return a.Streams.DropDeadLetter(ctx, l.Sequence) })
}

// actOnDeadLetters applies an action to the given dead letters, or, if allowed, to a page of those that match
// the filter.
func (a api) actOnDeadLetters(
	c echo.Context, who caller, action, would, done string, all bool, do func(context.Context, bus.DeadLetter) error,
) error {
	r, err := decoded[deadLettersRequest](c)
	if err != nil {
		return err
	}
	ctx := ctxOf(c)
	if len(r.Sequences) > maxDeadLetters || len(r.Sequences) == 0 && !all {
		return apperr.Fields{{Name: "sequences", Message: "must be 1 to 1000"}}.Err()
	}
	sequences, next, err := a.selectDeadLetters(ctx, r)
	if err != nil {
		return err
	}
	if r.DryRun {
		do = func(context.Context, bus.DeadLetter) error { return nil }
		done = would
	}
	outcomes, _ := inspect.Act(ctx, a.Streams, sequences, inspect.Action{
		Do: func(l bus.DeadLetter) error { return do(ctx, l) }, Done: done, Describe: apperr.LogText,
	})
	if !r.DryRun {
		if err := a.Admin.AuditDeadLetters(ctx, who.actor(), action, len(outcomes), r.Stream, r.Consumer); err != nil {
			return err
		}
	}
	return answerPage(c, next, map[string]any{"dryRun": r.DryRun, "results": view.ListOf(outcomes, viewOfOutcome)})
}

type resultView struct {
	Sequence  uint64 `json:"sequence"`
	EventType string `json:"eventType"`
	Consumer  string `json:"consumer"`
	Result    string `json:"result"`
	Error     string `json:"error,omitempty"`
}

func viewOfOutcome(o inspect.Outcome) resultView {
	return resultView{o.Sequence, o.Type, o.Consumer, o.Result, o.Error}
}

// selectDeadLetters returns the sequences of a request, or of a page of the dead letters that match its
// filter and the cursor of the next page, or "".
func (a api) selectDeadLetters(ctx context.Context, r deadLettersRequest) (sequences []uint64, next string, err error) {
	if len(r.Sequences) > 0 {
		return r.Sequences, "", nil
	}
	filter := inspect.DeadLetterFilter{Stream: r.Stream, Consumer: r.Consumer}
	found, err := a.deadLetters(ctx, filter, store.Page{After: r.Cursor, Limit: maxDeadLetters})
	if len(found) == maxDeadLetters {
		next = deadLetterID(found[maxDeadLetters-1])
	}
	return view.ListOf(found, func(l inspect.DeadLetter) uint64 { return l.Sequence }), next, err
}

// traceWithin is how long after a message's creation the streams are searched if its company is unknown.
const traceWithin = time.Hour

func (a api) getTrace(c echo.Context, _ caller) error {
	id, ok := chat.ParseID(c.Param("id"))
	if !ok {
		return apperr.MessageNotFound.New()
	}
	trace, err := inspect.TraceMessage(ctxOf(c), a.Streams, a.Store, id, traceWithin)
	if err != nil {
		return err
	}
	return answerJSON(c, http.StatusOK, trace)
}

// getTail streams events as they are published.
func (a api) getTail(c echo.Context, who caller) error {
	names := inspect.StreamNames()
	if stream := strings.ToUpper(c.QueryParam("stream")); stream != "" {
		if !slices.Contains(names, stream) {
			return apperr.Fields{{Name: "stream", Message: "must be one of " + strings.Join(names, ", ")}}.Err()
		}
		names = []string{stream}
	}
	var since time.Time
	if text := c.QueryParam("since"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return apperr.Fields{{Name: "since", Message: "must be a duration such as 10m"}}.Err()
		}
		since = a.Now().Add(-d)
	}
	filter := inspect.Filter{
		CompanyID: c.QueryParam("companyId"),
		AppID:     c.QueryParam("appId"),
		ChatID:    c.QueryParam("chatId"),
	}
	if kind := c.QueryParam("kind"); kind != "" {
		filter.Kinds = []string{kind}
	}
	ranges := inspect.Ranges(names, since, true)
	send := func(ctx context.Context, send func(context.Context, live.Event) error) error {
		return a.tail(ctx, ranges, filter, send)
	}
	changed := func(context.Context) bool { return false }
	return a.streaming(c, who, account.Streams, changed, send)
}

// tail sends the events that match a filter until ctx is done.
func (a api) tail(
	ctx context.Context,
	ranges []bus.Range,
	filter inspect.Filter,
	send func(context.Context, live.Event) error,
) error {
	for d, err := range a.Streams.Tail(ctx, ranges...) {
		if err != nil {
			return err
		}
		e := inspect.ReadEvent(d)
		if !filter.Wants(e) {
			continue
		}
		data, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if err := send(ctx, live.Event{Name: "event", Data: data}); err != nil {
			return err
		}
	}
	return nil
}
