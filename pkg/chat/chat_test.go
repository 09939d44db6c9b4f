package chat_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/chat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestStatusIsDerivedFromTimes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		chat chat.Chat
		want chat.Status
		open bool
	}{
		"registered":               {chat.Chat{CreatedAt: noon, WindowStartedAt: noon}, chat.Pending, true},
		"visitor wrote":            {chat.Chat{VisitorWroteAt: noon}, chat.Active, true},
		"closed before any word":   {chat.Chat{ClosedAt: noon}, chat.Closed, false},
		"closed after a word":      {chat.Chat{VisitorWroteAt: noon, ClosedAt: noon.Add(1)}, chat.Closed, false},
		"a word late, after close": {chat.Chat{VisitorWroteAt: noon.Add(1), ClosedAt: noon}, chat.Closed, false},
	} {
		if got := test.chat.Status(noon.Add(time.Hour)); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
		if got := test.chat.Open(noon.Add(time.Hour)); got != test.open {
			t.Errorf("%s: Open: got %v, want %v", name, got, test.open)
		}
	}
}

// An idle chat is closed in any state, from one nanosecond after the limit.
func TestIdleChatsAreClosed(t *testing.T) {
	t.Parallel()
	edge := noon.Add(30 * 24 * time.Hour)
	for name, test := range map[string]struct {
		chat chat.Chat
		now  time.Time
		want chat.Status
	}{
		"before the edge":                      {chat.Chat{VisitorWroteAt: noon, IdleClosesAt: edge}, edge.Add(-1), chat.Active},
		"at the edge":                          {chat.Chat{VisitorWroteAt: noon, IdleClosesAt: edge}, edge, chat.Active},
		"after the edge":                       {chat.Chat{VisitorWroteAt: noon, IdleClosesAt: edge}, edge.Add(1), chat.Closed},
		"pending at the edge":                  {chat.Chat{IdleClosesAt: edge}, edge, chat.Pending},
		"pending after the edge":               {chat.Chat{IdleClosesAt: edge}, edge.Add(1), chat.Closed},
		"never idle":                           {chat.Chat{VisitorWroteAt: noon}, edge.Add(1000 * time.Hour), chat.Active},
		"closed, as a slower clock sees it":    {chat.Chat{IdleClosesAt: edge, ClosedAt: edge}, edge.Add(-time.Second), chat.Closed},
		"idle, the window would still be open": {chat.Chat{WindowStartedAt: edge, IdleClosesAt: edge}, edge.Add(1), chat.Closed},
	} {
		if got := test.chat.Status(test.now); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
		if test.want == chat.Closed && (test.chat.Open(test.now) || test.chat.InWindow(test.now)) {
			t.Errorf("%s: got it open, want no way to write into it", name)
		}
	}
}

func TestWindowIncludesExactly24Hours(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		after  time.Duration
		closed bool
		want   bool
	}{
		"at its start":            {0, false, true},
		"a millisecond before":    {24*time.Hour - time.Millisecond, false, true},
		"exactly 24 hours":        {24 * time.Hour, false, true},
		"a nanosecond later":      {24*time.Hour + 1, false, false},
		"a millisecond later":     {24*time.Hour + time.Millisecond, false, false},
		"clocks that differ":      {-time.Second, false, true},
		"inside, but closed":      {time.Hour, true, false},
		"exactly 24 h and closed": {24 * time.Hour, true, false},
	} {
		c := chat.Chat{WindowStartedAt: noon}
		if test.closed {
			c.ClosedAt = noon
		}
		if got := c.InWindow(noon.Add(test.after)); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
	// Neither the time zone nor a change to summer time affects the window.
	berlin := time.FixedZone("CEST", 2*60*60)
	c := chat.Chat{WindowStartedAt: noon.In(berlin)}
	if got := c.WindowExpiresAt(); !got.Equal(noon.Add(24 * time.Hour)) {
		t.Errorf("WindowExpiresAt: got %v, want 24 hours after %v", got, noon)
	}
}

func TestAccessTokenIsValidUntilItExpiresOrIsRevoked(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		token chat.AccessToken
		want  bool
	}{
		"no end":         {chat.AccessToken{}, true},
		"expires later":  {chat.AccessToken{ExpiresAt: noon.Add(1)}, true},
		"expires now":    {chat.AccessToken{ExpiresAt: noon}, false},
		"expired":        {chat.AccessToken{ExpiresAt: noon.Add(-1)}, false},
		"revoked":        {chat.AccessToken{RevokedAt: noon.Add(-1)}, false},
		"revoked, fresh": {chat.AccessToken{RevokedAt: noon, ExpiresAt: noon.Add(time.Hour)}, false},
	} {
		if got := test.token.Valid(noon); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

func TestVisitorName(t *testing.T) {
	t.Parallel()
	for want, visitor := range map[string]chat.Visitor{
		"Ada Lovelace": {FirstName: "Ada", LastName: "Lovelace"},
		"Ada":          {FirstName: "Ada"},
		"Lovelace":     {LastName: "Lovelace", Email: "ada@example.com"},
		"Visitor":      {Email: "ada@example.com", Phone: "49123456789", UserID: "7"},
	} {
		if got := visitor.Name(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestWidgetRules(t *testing.T) {
	t.Parallel()
	rules, err := chat.Application{WidgetConfigs: []byte(
		`{"requiredFields":["email","firstName"],"greetingMessages":[{"content":"Hi!"},{"content":""}],"primaryTextColor":"#fff","x":[1e999]}`,
	)}.Rules()
	if err != nil {
		t.Fatal(err)
	}
	if len(rules.RequiredFields) != 2 || rules.RequiredFields[1] != "firstName" ||
		len(rules.GreetingMessages) != 2 || rules.GreetingMessages[0].Content != "Hi!" {
		t.Errorf("got %+v, want two required fields and two greetings", rules)
	}
	if rules, err := (chat.Application{}).Rules(); err != nil || len(rules.RequiredFields) != 0 {
		t.Errorf("no widgetConfigs: got %+v, %v, want no rules", rules, err)
	}
	if _, err := (chat.Application{WidgetConfigs: []byte(`{"requiredFields":"email"}`)}).Rules(); err == nil {
		t.Error("requiredFields that is no list: got no error, want one")
	}
}
