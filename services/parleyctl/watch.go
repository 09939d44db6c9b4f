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
	company, app, chat, visitor, message string
	kinds, streams                       []string
	since                                string
	noFollow                             bool
	count                                int

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
	a.addCompanyFlag(c, &w.company, "only this company's")
	addIDFlag(c, &w.app, "app", "only this application's; for events that name only their chat, the store is queried")
	addIDFlag(c, &w.chat, "chat", "only this chat's")
	addIDFlag(c, &w.visitor, "visitor", "only this visitor's (chatUserId)")
	addIDFlag(c, &w.message, "message", "only this message's")
	c.Flags().StringSliceVar(&w.kinds, "kind", nil, "only these kinds, such as visitor-message or reply")
	c.Flags().StringSliceVar(&w.streams, "stream", nil, "only these streams")
	c.Flags().
		StringVar(&w.since, "since", "", "start this long ago (10m, 2d) or at this time (2026-11-21T12:00:00Z); default: now")
	c.Flags().BoolVar(&w.noFollow, "no-follow", false, "end after the stored events")
	c.Flags().IntVarP(&w.count, "count", "n", 0, "end after this many events; 0: never")
	_ = c.RegisterFlagCompletionFunc("kind", fixed(inspect.Kinds()...)) // the flags exist
	_ = c.RegisterFlagCompletionFunc("stream", fixed(inspect.StreamNames()...))
	_ = c.RegisterFlagCompletionFunc("app", a.completeApplications)
	_ = c.RegisterFlagCompletionFunc("chat", a.completeChats)
	var spans []bus.Range
	checkFirst(c, func() (err error) {
		spans, err = w.spans(a)
		return err
	})
	return a.withBus(c, func(ctx context.Context, b *bus.Bus, _ []string) error { return a.follow(ctx, b, w, spans) })
}

// spans validates the parameters and returns the selected parts of the streams.
func (w *watchOptions) spans(a *app) ([]bus.Range, error) {
	for _, k := range w.kinds {
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
	var spans []bus.Range
	for _, stream := range streams {
		spans = append(spans, bus.Range{Stream: stream, Since: since, New: since.IsZero(), Follow: !w.noFollow})
	}
	return spans, nil
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
		return time.Time{}, usage("--since must be a duration such as 10m or 2d, or a time such as 2026-11-21T12:00:00Z")
	}
	return t, nil
}

// follow prints until ctx is done, the spans end, or the count is reached.
func (a *app) follow(ctx context.Context, b *bus.Bus, w *watchOptions, spans []bus.Range) error {
	printed := 0
	for d, err := range b.Tail(ctx, spans...) {
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
		if printed++; printed == w.count {
			return nil
		}
	}
	return nil
}

func (w *watchOptions) wants(ctx context.Context, a *app, p inspect.Event) (bool, error) {
	for _, f := range []struct{ wanted, got string }{
		{w.company, p.CompanyID}, {w.chat, p.ChatID}, {w.visitor, p.ChatUserID}, {w.message, p.MessageID},
	} {
		if f.wanted != "" && f.wanted != f.got {
			return false, nil
		}
	}
	if len(w.kinds) > 0 && !slices.Contains(w.kinds, p.Kind) {
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
	parts := []string{
		p.Time.String(), fmt.Sprintf("%-15s", p.Kind), fmt.Sprintf("%-12s", fmt.Sprintf("%s/%d", p.Stream, p.Sequence)),
	}
	for _, id := range []struct{ name, value string }{{"chat", p.ChatID}, {"msg", p.MessageID}, {"template", p.TemplateID}} {
		if id.value != "" {
			parts = append(parts, id.name+"="+clean(id.value))
		}
	}
	if p.ChatID == "" && p.TemplateID == "" {
		parts = append(parts, clean(p.Subject))
	}
	if content := strings.TrimSpace(shorten(clean(strings.TrimSpace(p.MessageType+" "+quoted(p))), 120)); content != "" {
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
