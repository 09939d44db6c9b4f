package http

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/services/panel/internal/live"
)

const (
	// heartbeat keeps proxies from closing a stream, and is the interval of the session check.
	heartbeat = 15 * time.Second
	// writeLimit bounds the write of one event.
	writeLimit = 10 * time.Second
)

// eventStream writes server-sent events (HTML standard, "Server-sent events"). It belongs to one goroutine.
type eventStream struct {
	w *http.ResponseController
	c echo.Context
}

func openEventStream(c echo.Context) (*eventStream, error) {
	h := c.Response().Header()
	h.Set(echo.HeaderContentType, "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	s := &eventStream{w: http.NewResponseController(c.Response()), c: c}
	c.Response().WriteHeader(http.StatusOK)
	return s, s.write([]byte(": connected\n\n"))
}

// write writes the parts one after the other: an event's data is shared by all streams, and up to 64 KiB.
func (s *eventStream) write(parts ...[]byte) error {
	if err := s.w.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	for _, part := range parts {
		if _, err := s.c.Response().Write(part); err != nil {
			return err
		}
	}
	return s.w.Flush()
}

func (s *eventStream) send(e live.Event) error {
	head := "event: " + e.Name + "\ndata: "
	if e.ID != "" {
		head = "id: " + e.ID + "\n" + head
	}
	return s.write([]byte(head), e.Data, []byte("\n\n"))
}

// streaming runs a feed, whose events arrive on one goroutine, with heartbeats in between, until the browser
// disconnects, the session ends, the user loses the permission or the company, or the panel stops. changed
// reports whether the feed must restart.
func (a api) streaming(
	c echo.Context, who caller, needs account.Permission, changed func(context.Context) bool,
	run func(context.Context, func(context.Context, live.Event) error) error,
) error {
	ctx, cancel := context.WithCancel(ctxOf(c))
	defer cancel()
	defer context.AfterFunc(a.Stopping, cancel)()
	out, err := openEventStream(c)
	if err != nil {
		return nil // the browser has disconnected
	}
	events, ended := make(chan live.Event), make(chan error, 1)
	go func() {
		ended <- run(ctx, func(ctx context.Context, e live.Event) error {
			select {
			case events <- e:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	tick := time.NewTicker(cmp.Or(a.Heartbeat, heartbeat))
	defer tick.Stop()
	defer func() { cancel(); drain(events, ended) }()
	for {
		select {
		case e := <-events:
			err = out.send(e)
		case <-tick.C:
			now, gone := a.SignIn.Check(ctx, who.Secret)
			if gone != nil || !(caller{now}).may(needs) || now.User.CompanyID != who.User.CompanyID || changed(ctx) {
				return nil
			}
			err = out.write([]byte(": still here\n\n"))
		case err = <-ended:
			ended <- nil
			if apperr.Is(err, apperr.Unavailable) {
				_ = out.send(live.Event{Name: "offline", Data: []byte("{}")}) // the browser reconnects in any case
			}
			return nil
		case <-ctx.Done():
			return nil
		}
		if err != nil {
			return nil // the browser has disconnected
		}
	}
}

// drain waits until the feed has ended.
func drain(events <-chan live.Event, ended <-chan error) {
	for {
		select {
		case <-events:
		case err := <-ended:
			_ = err // logged already, or the browser has disconnected
			return
		}
	}
}

// getEvents streams the events of the company's chats to a browser.
func (a api) getEvents(c echo.Context, who caller) error {
	company, err := a.companyOf(c, who)
	if err != nil {
		return err
	}
	apps, err := a.appIDs(ctxOf(c), company)
	if err != nil {
		return err
	}
	browser := live.Browser{CompanyID: company, UserID: who.User.ID, AppIDs: apps}
	id := c.Request().Header.Get("Last-Event-ID")
	if id == "" {
		id = c.QueryParam("lastEventId")
	}
	if id != "" {
		from := live.ParseCursor(id)
		browser.From = &from
	}
	a.setOnline(ctxOf(c), company, who.User.ID)
	changed := func(ctx context.Context) bool {
		a.setOnline(ctx, company, who.User.ID)
		now, err := a.appIDs(ctx, company)
		return err == nil && !slices.Equal(now, apps)
	}
	return a.streaming(c, who, account.Inbox, changed,
		func(ctx context.Context, send func(context.Context, live.Event) error) error {
			return a.hub.Run(ctx, browser, send)
		})
}

// appIDs returns the sorted ids of the company's applications.
func (a api) appIDs(ctx context.Context, company string) (ids []string, err error) {
	read := func(ctx context.Context, p store.Page) ([]string, error) {
		return a.Store.IDs(ctx, store.IDFilter{ApplicationsOf: company}, p)
	}
	for id, err := range store.All(ctx, read, func(id string) string { return id }) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}
