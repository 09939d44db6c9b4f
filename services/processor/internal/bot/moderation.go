package bot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/event"
)

const (
	// maxUnmoderated is the maximum number of characters held back before a moderation; the end of a sentence
	// triggers one earlier.
	maxUnmoderated    = 200
	moderationTimeout = 5 * time.Second
)

// moderator sends a text to another server for review before the visitor sees it.
type moderator struct {
	url    string
	client *http.Client
	checks *prometheus.CounterVec
}

func newModerator(url string, c CallConfig) *moderator {
	m := &moderator{
		url:    url,
		client: newClient(max(c.Concurrency, defaultConcurrency)),
		checks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parley_bot_llm_moderations_total",
			Help: "Texts checked by the moderation hook, by result: allow, replace, failed.",
		}, []string{"result"}),
	}
	for _, result := range []string{actionAllow, actionReplace, "failed"} {
		m.checks.WithLabelValues(result)
	}
	if c.Registerer != nil {
		// Register fails only if another bot of the process has registered the same metrics.
		_ = c.Registerer.Register(m.checks)
	}
	return m
}

// moderationRequest is the hook's request: the visitor's message, and the whole answer so far.
type moderationRequest struct {
	AppID     string `json:"appId"`
	ChatID    string `json:"chatId"`
	MessageID string `json:"messageId"`
	Text      string `json:"text"`
}

const (
	actionAllow   = "allow"
	actionReplace = "replace"
)

type moderationAnswer struct {
	Action string `json:"action"`
	Text   string `json:"text"`
}

// moderate returns the pieces of next that the hook has allowed, each checked with all text before it. A
// replacement is the last piece. Text that the hook has not checked, for example because it failed, is not
// returned.
func (m *moderator) moderate(
	ctx context.Context,
	e event.VisitorMessageAccepted,
	next func() (piece, error),
) func() (piece, error) {
	read, held := "", ""
	return func() (piece, error) {
		for {
			p, err := next()
			held += p.text
			switch {
			case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errFull):
				return piece{}, err
			case err == nil && !p.alive && !sentence(held):
				continue
			case held == "":
				return piece{alive: p.alive}, err
			}
			answer, checkErr := m.check(ctx, moderationRequest{e.AppID, e.ChatID, e.Message.ID, read + held})
			if checkErr != nil {
				return piece{}, checkErr
			}
			if answer.Action == actionReplace {
				return piece{text: answer.Text, replace: true}, io.EOF
			}
			p.text = held
			read += held
			held = ""
			return p, err
		}
	}
}

// sentence reports whether a text is due for a check.
func sentence(s string) bool {
	return strings.HasSuffix(s, "\n") || strings.ContainsAny(lastRune(strings.TrimRight(s, " ")), ".!?。！？") ||
		utf8.RuneCountInString(s) >= maxUnmoderated
}

func lastRune(s string) string {
	_, size := utf8.DecodeLastRuneInString(s)
	return s[len(s)-size:]
}

func (m *moderator) check(ctx context.Context, r moderationRequest) (moderationAnswer, error) {
	answer, err := m.ask(ctx, r)
	if err != nil {
		m.checks.WithLabelValues("failed").Inc()
		unavailable := apperr.Unreachable("moderation hook", err)
		unavailable.RetryAfter = 0
		return answer, unavailable
	}
	m.checks.WithLabelValues(answer.Action).Inc()
	return answer, nil
}

func (m *moderator) ask(ctx context.Context, r moderationRequest) (answer moderationAnswer, err error) {
	ctx, cancel := context.WithTimeout(ctx, moderationTimeout)
	defer cancel()
	body, err := json.Marshal(r)
	if err != nil {
		return answer, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url, bytes.NewReader(body))
	if err != nil {
		return answer, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "Parley-LLM/1.0")
	response, err := do(m.client, request)
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return answer, err
	}
	if response.StatusCode != http.StatusOK {
		return answer, fmt.Errorf("the hook answered %d", response.StatusCode)
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return answer, err
	}
	if answer.Action != actionAllow && answer.Action != actionReplace {
		return answer, fmt.Errorf("the hook answered with the action %q", answer.Action)
	}
	return answer, nil
}
