package parleyctl

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/inspect"
)

// watchOptions holds the parameters of watch.
type watchOptions struct {
	filter   inspect.Filter // without the application
	app      string
	streams  []string
	since    string
	noFollow bool
	count    int

	appOfChat map[string]string // cache for events that name only their chat
}

func (a *app) watch() *cobra.Command {
	w := &watchOptions{appOfChat: map[string]string{}}
	c := &cobra.Command{
		Use: "watch", Short: "Print events as they are published", Args: exactArgs(),
		Long: `Print the events of all streams as they are published, one a line, until interrupted. It does not consume events: watch reads with
its own ephemeral consumers. With -o json each line is an object with the event as it was published.`,
		Example: `  parleyctl watch
  parleyctl watch --chat CHAT --since 1h
  parleyctl watch --company COMPANY --kind reply,dead -o json
  parleyctl watch --since 24h --no-follow`,
	}
	a.addCompanyFlag(c, &w.filter.CompanyID, "only this company's")
	addIDFlag(c, &w.app, "app", "only this application's; for events that name only their chat, the store is queried")
	addIDFlag(c, &w.filter.ChatID, "chat", "only this chat's")
	addIDFlag(c, &w.filter.ChatUserID, "visitor", "only this visitor's (chatUserId)")
	addIDFlag(c, &w.filter.MessageID, "message", "only this message's")
	c.Flags().StringSliceVar(&w.filter.Kinds, "kind", nil, "only these kinds, such as visitor-message or reply")
	c.Flags().StringSliceVar(&w.streams, "stream", nil, "only these streams")
	c.Flags().StringVar(&w.since, "since", "",
		"start this long ago (10m, 2d) or at this time (2026-11-21T12:00:00Z); default: now")
	c.Flags().BoolVar(&w.noFollow, "no-follow", false, "end after the stored events")
	c.Flags().IntVarP(&w.count, "count", "n", 0, "end after this many events; 0: never")
	_ = c.RegisterFlagCompletionFunc("kind", fixed(inspect.Kinds()...)) // the flags exist
	_ = c.RegisterFlagCompletionFunc("stream", fixed(inspect.StreamNames()...))
	_ = c.RegisterFlagCompletionFunc("app", a.completeApplications)
	_ = c.RegisterFlagCompletionFunc("chat", a.completeChats)
	var ranges []bus.Range
	checkFirst(c, func() (err error) {
		ranges, err = w.ranges(a)
		return err
	})
	return a.withBus(c, func(ctx context.Context, b *bus.Bus, _ []string) error { return a.follow(ctx, b, w, ranges) })
}

// ranges validates the parameters and returns the selected parts of the streams.
func (w *watchOptions) ranges(a *app) ([]bus.Range, error) {
	for _, k := range w.filter.Kinds {
		if !slices.Contains(inspect.Kinds(), k) {
			return nil, usage("there is no kind " + k + "; see the completion of --kind")
		}
	}
	streams, err := matchStreams(w.streams)
	if err != nil {
		return nil, err
	}
	since, err := parseSince(a.Now(), w.since)
	if err != nil {
		return nil, err
	}
	if since.IsZero() && w.noFollow {
		since = time.Unix(0, 0)
	}
	return inspect.Ranges(streams, since, !w.noFollow), nil
}

// parseSince parses a time in the past; zero if s is empty.
func parseSince(now time.Time, s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := parseDuration(s); err == nil {
		return now.Add(-d), nil
	}
	t, err := parseTime(s)
	if err != nil {
		return time.Time{}, usage(
			"--since must be a duration such as 10m or 2d, or a time such as 2026-11-21T12:00:00Z",
		)
	}
	return t, nil
}

// follow prints until ctx is done, the ranges end, or the count is reached.
func (a *app) follow(ctx context.Context, b *bus.Bus, w *watchOptions, ranges []bus.Range) error {
	printed := 0
	for d, err := range b.Tail(ctx, ranges...) {
		if err != nil {
			return err
		}
		p := inspect.ReadEvent(d)
		wanted, err := w.wants(ctx, a, p)
		if err != nil {
			return err
		}
		if !wanted {
			continue
		}
		if err := a.printEvent(p); err != nil {
			return err
		}
		printed++
		if printed == w.count {
			return nil
		}
	}
	return nil
}

// wants reports whether an event matches the filter and the application. An event that names only its chat is of
// the chat's application.
func (w *watchOptions) wants(ctx context.Context, a *app, p inspect.Event) (bool, error) {
	if !w.filter.Wants(p) {
		return false, nil
	}
	if w.app == "" || p.AppID == w.app {
		return true, nil
	}
	if p.AppID != "" || p.ChatID == "" {
		return false, nil
	}
	app, err := w.application(ctx, a, p.ChatID)
	return app == w.app, err
}

// application returns the application of a chat, which never changes; empty if there is no such chat.
func (w *watchOptions) application(ctx context.Context, a *app, chatID string) (string, error) {
	if known, ok := w.appOfChat[chatID]; ok {
		return known, nil
	}
	s, err := a.openStore(ctx)
	if err != nil {
		return "", err
	}
	c, err := s.Chat(ctx, chatID)
	if apperr.Is(err, apperr.NotFound) {
		return "", nil
	}
	if err == nil {
		w.appOfChat[chatID] = c.AppID
	}
	return c.AppID, err
}

// printEvent prints one line: time, stream, kind, ids and text.
func (a *app) printEvent(p inspect.Event) error {
	if a.wantsJSON() {
		return a.printLine(p)
	}
	place := fmt.Sprintf("%s/%d", p.Stream, p.Sequence)
	parts := []string{p.Time.String(), fmt.Sprintf("%-15s", p.Kind), fmt.Sprintf("%-12s", place)}
	type id struct{ name, value string }
	for _, id := range []id{{"chat", p.ChatID}, {"msg", p.MessageID}, {"template", p.TemplateID}} {
		if id.value != "" {
			parts = append(parts, id.name+"="+clean(id.value))
		}
	}
	if p.ChatID == "" && p.TemplateID == "" {
		parts = append(parts, clean(p.Subject))
	}
	content := clean(strings.TrimSpace(p.MessageType + " " + quoted(p)))
	content = strings.TrimSpace(shorten(content, 120))
	if content != "" {
		parts = append(parts, content)
	}
	_, err := fmt.Fprintln(a.Out, strings.Join(parts, "  "))
	return err
}

func quoted(p inspect.Event) string {
	switch {
	case p.From != "" && p.Text != "":
		return p.From + ": " + p.Text
	case p.From != "":
		return p.From
	}
	return p.Text
}
