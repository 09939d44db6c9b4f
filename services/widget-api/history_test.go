package widgetapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/testkit/httpapitest"
)

// next follows the Link header of a response to path, as a browser would; empty if there is none.
func next(t *testing.T, path string, a httpapitest.Response) string {
	t.Helper()
	link := a.Header.Get("Link")
	if link == "" {
		return ""
	}
	target, ok := strings.CutSuffix(strings.TrimPrefix(link, "<"), `>; rel="next"`)
	if !ok {
		t.Fatalf("got the Link %q, want one to the next page", link)
	}
	base, err := url.Parse(path)
	if err != nil {
		t.Fatal(err)
	}
	to, err := base.Parse(target)
	if err != nil {
		t.Fatalf("the Link %q: %v", link, err)
	}
	return to.String()
}

func (w *world) page(path, token string) (page []record, following string) {
	w.t.Helper()
	got := w.get(path, token)
	if err := json.Unmarshal([]byte(got.Body), &page); err != nil || got.Status != http.StatusOK {
		w.t.Fatalf("GET %s: got %d %s, want 200 and an array", path, got.Status, got.Body)
	}
	return page, next(w.t, path, got)
}

func (w *world) writeText(token, text string) record {
	w.t.Helper()
	got := w.post("/message", token, fmt.Sprintf(`{"type":"TEXT","data":{"text":%q}}`, text))
	var r record
	if err := json.Unmarshal([]byte(got.Body), &r); err != nil || got.Status != http.StatusCreated {
		w.t.Fatalf("POST /message: got %d %s, want 201", got.Status, got.Body)
	}
	return r
}

// Each message of a history names its chat, the same as in the event that announced it.
func TestHistoryNamesTheChat(t *testing.T) {
	t.Parallel()
	w := start(t)
	token := w.register(appID, `"email":"sara@example.com"`)
	v, err := w.store.Visitor(t.Context(), w.claims(token).ChatUserID)
	w.must(err)
	c, err := store.CurrentChat(t.Context(), w.store, v, time.Now())
	w.must(err)
	w.writeText(token, "hi")
	if got := w.get("/message", token); strings.Count(got.Body, `"chatId":"`+c.ID+`"`) != len(w.history(token)) {
		t.Errorf("got %s, want the chat %s at each message", got.Body, c.ID)
	}
}

// The pages together are the whole history, greetings included, even when messages share a timestamp and new
// ones keep arriving.
func TestPagesAreTheHistory(t *testing.T) {
	t.Parallel()
	w := start(t)
	token := w.register(appID, `"email":"sara@example.com"`)
	const count = 118 // more than a bucket
	var wait sync.WaitGroup
	for part := range 4 {
		wait.Go(func() {
			for n := part; n < count; n += 4 {
				w.writeText(token, strconv.Itoa(n))
			}
		})
	}
	wait.Wait()
	want := w.history(token)
	if len(want) != count+2 {
		t.Fatalf("got %d messages, want %d and two greetings", len(want), count)
	}
	for _, limit := range []int{13, 60, 120, 1000} {
		var all []record
		for path := "/message?limit=" + strconv.Itoa(limit); path != ""; {
			page, following := w.page(path, token)
			if len(page) != min(limit, len(want)-len(all)) {
				t.Errorf("GET %s: got %d messages", path, len(page))
			}
			all = slices.Concat(page, all)
			if path = following; limit == 60 {
				w.writeText(token, "new") // new messages do not shift older pages
			}
		}
		if !reflect.DeepEqual(all, want) {
			t.Errorf("limit %d: got %d messages, want the %d of the history", limit, len(all), len(want))
		}
		want = w.history(token)
	}
	page, following := w.page("/message?before="+want[101].ID, token)
	if !reflect.DeepEqual(page, want[1:101]) || !strings.Contains(following, "limit=100") {
		t.Errorf("before alone: got %d messages and the link %q, want 100 of them", len(page), following)
	}
	if page, following := w.page("/message?limit=5&before="+want[0].ID, token); len(page) != 0 || following != "" {
		t.Errorf("before the first: got %v, %q, want an empty page without a link", page, following)
	}
}

// One answer holds 1,000 messages or 2 MiB of data, whichever is less: the newest ones. Link leads to the rest.
func TestOnePageIsBounded(t *testing.T) {
	t.Parallel()
	w := start(t)
	const most, mostBytes = 1000, 2 << 20
	for name, c := range map[string]struct {
		count, bytes int // messages, and bytes of text in each
		query        string
		first        int // messages of the first answer
	}{
		"messages":                 {1050, 2, "", most},
		"messages, asked for more": {1050, 2, "?limit=1000", most},
		"bytes":                    {600, 4000, "", mostBytes / (4000 + len(`{"text":""}`))},
		"bytes, asked for more":    {600, 4000, "?limit=550", mostBytes / (4000 + len(`{"text":""}`))},
		"bytes, asked for less":    {600, 4000, "?limit=7", 7},
	} {
		t.Run(name, func(t *testing.T) {
			token := w.register(bareApp, fmt.Sprintf(`"email":"%s@example.com"`, uuid.NewString()))
			v, err := w.store.Visitor(t.Context(), w.claims(token).ChatUserID)
			w.must(err)
			chatOf, err := store.CurrentChat(t.Context(), w.store, v, time.Now())
			w.must(err)
			begun, want := time.Now().UTC().Truncate(time.Millisecond), make([]string, c.count)
			data := json.RawMessage(`{"text":"` + strings.Repeat("x", c.bytes) + `"}`)
			var writing sync.WaitGroup
			for part := range 8 { // concurrent writes share a commit
				writing.Go(func() {
					for n := part; n < c.count; n += 8 {
						m := chat.Message{ID: uuid.Must(uuid.NewV7()).String(), CreatedAt: begun.Add(time.Duration(n) * time.Millisecond), Type: chat.Text, Data: data}
						want[n] = m.ID
						if err := w.store.AppendMessage(t.Context(), chatOf.ID, m); err != nil {
							t.Error(err)
						}
					}
				})
			}
			writing.Wait()
			first, following := w.page("/message"+c.query, token)
			if len(first) != c.first || following == "" || first[len(first)-1].ID != want[c.count-1] {
				t.Fatalf("got %d messages and the link %q, want the newest %d and a link", len(first), following, c.first)
			}
			all := first
			for following != "" {
				var earlier []record
				earlier, following = w.page(following, token)
				all = slices.Concat(earlier, all)
			}
			for n, r := range all {
				if n >= len(want) || r.ID != want[n] || len(r.Data) != len(data) {
					t.Fatalf("message %d of %d: got %s with %d bytes, want the stored one", n, len(all), r.ID, len(r.Data))
				}
			}
			if len(all) != c.count {
				t.Errorf("got %d messages in all, want %d", len(all), c.count)
			}
		})
	}
}

func TestInvalidPages(t *testing.T) {
	t.Parallel()
	w := start(t)
	token, other := w.register(appID, `"email":"a@example.com"`), w.register(appID, `"email":"b@example.com"`)
	foreign := w.writeText(other, "x")
	for query, field := range map[string]string{
		"Limit=1": "Limit", "limit=0": "limit", "limit=1001": "limit", "limit=x": "limit", "limit=": "limit", "limit=1&limit=2": "limit", "before=": "before", "limit=%zz": "query",
		"before=" + uuid.NewString(): "before", "before=" + foreign.ID: "before", "before=x&limit=5": "before", "before=%ff": "before",
		"before=" + strings.Repeat("x", 300): "before",
	} {
		got := w.get("/message?"+query, token)
		if p := got.Problem(t); got.Status != 400 || p.Code != "VALIDATION_ERROR" || len(p.Details) != 1 || p.Details[0].Name != field {
			t.Errorf("%s: got %d %s, want 400 with the field %s", query, got.Status, got.Body, field)
		}
	}
	if got := w.get("/message?limit=0", ""); got.Status != 401 {
		t.Errorf("without a token: got %d, want 401 before anything else", got.Status)
	}
	closed := w.history(token)[0].ID
	w.closeChat(token)
	if got := w.get("/message?limit=5&before="+closed, token); got.Status != 404 || got.Problem(t).Message != "Chat not found" {
		t.Errorf("with a closed chat: got %d %s, want 404", got.Status, got.Body)
	}
	w.writeText(token, "anew")
	if got := w.get("/message?limit=5&before="+closed, token); got.Status != 400 {
		t.Errorf("before a message of a closed chat: got %d %s, want 400", got.Status, got.Body)
	}
}

// A page of another origin may read the link to the next page.
func TestBrowsersMayReadTheLink(t *testing.T) {
	t.Parallel()
	w := start(t)
	token := w.register(appID, `"email":"a@example.com"`)
	got, err := w.do("GET", "/message?limit=1", "", headers{"Authorization": "Bearer " + token, "Origin": "https://shop.example.com"})
	w.must(err)
	if got.Header.Get("Link") == "" || !strings.Contains(got.Header.Get("Access-Control-Expose-Headers"), "Link") {
		t.Errorf("got %v, want a Link that is exposed", got.Header)
	}
}
