package parley_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	parley "github.com/parley-chat/parley/clients/go"
	"github.com/parley-chat/parley/clients/go/clientapi"
	"github.com/parley-chat/parley/clients/go/widgetapi"
)

const chatID = "0d9f5c7e-6c1d-4b7a-8f1e-2a3b4c5d6e7f"

// server returns the given responses in order, and records the requests.
type server struct {
	*httptest.Server
	mu      sync.Mutex
	answers []http.HandlerFunc
	asked   []*http.Request
	bodies  []string
}

func serve(t *testing.T, answers ...http.HandlerFunc) *server {
	t.Helper()
	s := &server{answers: answers}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.asked, s.bodies = append(s.asked, r), append(s.bodies, string(body))
		n := len(s.asked)
		s.mu.Unlock()
		if n > len(answers) {
			t.Errorf("%s %s: got request %d, want %d at most", r.Method, r.URL, n, len(answers))
			return
		}
		answers[n-1](w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) client(t *testing.T) *clientapi.ClientWithResponses {
	t.Helper()
	c, err := parley.NewClient(s.URL+"/v1/", "secret", parley.WithRetry(4, time.Millisecond, 10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (s *server) widget(t *testing.T) *widgetapi.ClientWithResponses {
	t.Helper()
	c, err := parley.NewWidget(s.URL, "secret", parley.WithRetry(4, time.Millisecond, 10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func answer(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func problem(status int, code string, headers ...string) http.HandlerFunc {
	body, _ := json.Marshal(map[string]any{
		"statusCode": status, "code": code, "message": "no", "requestId": "r-1", "details": []parley.ErrorField{{Field: "f", Message: "is required"}},
	})
	return answer(status, string(body), headers...)
}

// hangUp closes the connection without a response.
func hangUp(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

func text(t *testing.T) clientapi.SendMessageJSONRequestBody {
	t.Helper()
	var body clientapi.SendMessageJSONRequestBody
	if err := body.FromSendText(clientapi.SendText{ChatId: chatID, Data: clientapi.TextData{Text: "Hello"}}); err != nil {
		t.Fatal(err)
	}
	return body
}

func TestRequest(t *testing.T) {
	t.Parallel()
	s := serve(t, answer(200, `{"chatId":"`+chatID+`"}`), answer(200, `{"message":"sent","messageId":"m"}`), answer(204, ""))
	got, err := s.client(t).GetChatWithResponse(t.Context(), chatID, nil)
	if err != nil || got.JSON200.ChatId != chatID {
		t.Fatalf("got %v, %v, want the chat", got, err)
	}
	if _, err := s.client(t).SendMessageWithResponse(t.Context(), nil, text(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.widget(t).ReadMessageWithResponse(t.Context(), "m", nil); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, r := range s.asked {
		lines = append(lines, r.Method+" "+r.URL.String())
	}
	if want := []string{"GET /v1/chats/" + chatID, "POST /v1/message/send", "POST /message/m/read"}; !slices.Equal(lines, want) {
		t.Errorf("got %q, want %q", lines, want)
	}
	if got := s.asked[1].Header.Get("x-access-token"); got != "secret" {
		t.Errorf("x-access-token: got %q, want the token", got)
	}
	if got := s.asked[2].Header.Get("Authorization"); got != "Bearer secret" {
		t.Errorf("Authorization: got %q, want the token", got)
	}
	if want := `{"chatId":"` + chatID + `","data":{"text":"Hello"},"type":"TEXT"}`; s.bodies[1] != want {
		t.Errorf("got the body %s, want %s", s.bodies[1], want)
	}
}

// A request that is safe to repeat is retried, with the same key and body.
func TestRetriesWithOneKey(t *testing.T) {
	t.Parallel()
	s := serve(t, hangUp, problem(500, "INTERNAL_ERROR"), problem(409, "IDEMPOTENCY_KEY_IN_USE", "Retry-After", "0"), answer(200, `{"message":"sent","messageId":"m"}`))
	if _, err := s.client(t).SendMessageWithResponse(t.Context(), nil, text(t)); err != nil {
		t.Fatal(err)
	}
	key := s.asked[0].Header.Get("Idempotency-Key")
	for i, r := range s.asked {
		if r.Header.Get("Idempotency-Key") != key || key == "" || s.bodies[i] != s.bodies[0] {
			t.Errorf("attempt %d: got the key %q and %s, want %q and %s", i+1, r.Header.Get("Idempotency-Key"), s.bodies[i], key, s.bodies[0])
		}
	}
	if len(s.asked) != 4 {
		t.Errorf("got %d attempts, want 4", len(s.asked))
	}
}

func TestOwnKeyIsSent(t *testing.T) {
	t.Parallel()
	s := serve(t, answer(200, `{"message":"sent","messageId":"m"}`))
	if _, err := s.client(t).SendMessageWithResponse(t.Context(), &clientapi.SendMessageParams{IdempotencyKey: new("order-1")}, text(t)); err != nil {
		t.Fatal(err)
	}
	if got := s.asked[0].Header.Get("Idempotency-Key"); got != "order-1" {
		t.Errorf("got the key %q, want order-1", got)
	}
}

// A request that may have been executed is not retried without a key; 429 and 503 mean that it was not.
func TestWithoutKey(t *testing.T) {
	t.Parallel()
	registration := widgetapi.RegisterJSONRequestBody{AppId: chatID}
	for name, failure := range map[string]http.HandlerFunc{"no answer": hangUp, "500": problem(500, "INTERNAL_ERROR")} {
		s := serve(t, failure)
		if got, err := s.widget(t).RegisterWithResponse(t.Context(), nil, registration); err == nil {
			t.Errorf("%s: got %v, want an error", name, got)
		}
	}
	s := serve(t, problem(503, "UNAVAILABLE", "Retry-After", "0"), problem(429, "RATE_LIMITED", "Retry-After", "0"), answer(200, `{"accessToken":"t"}`))
	got, err := s.widget(t).RegisterWithResponse(t.Context(), nil, registration)
	if err != nil || got.JSON200.AccessToken != "t" || s.asked[0].Header.Get("Idempotency-Key") != "" {
		t.Errorf("got %v, %v, want the third answer, without a key", got, err)
	}
}

// A streaming body is buffered, so that it can be sent again.
func TestUploadIsRepeated(t *testing.T) {
	t.Parallel()
	s := serve(t, hangUp, answer(201, `{}`))
	body := io.MultiReader(strings.NewReader("--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\n"), bytes.NewBufferString("paid\r\n--b--\r\n"))
	if _, err := s.widget(t).SendMessageWithBodyWithResponse(t.Context(), nil, "multipart/form-data; boundary=b", body); err != nil {
		t.Fatal(err)
	}
	if s.bodies[0] != s.bodies[1] || !strings.Contains(s.bodies[1], "paid") {
		t.Errorf("got the bodies %q, want two that are the same", s.bodies)
	}
}

func TestError(t *testing.T) {
	t.Parallel()
	s := serve(t, problem(400, "CHAT_CLOSED"))
	_, err := s.client(t).SendMessageWithResponse(t.Context(), nil, text(t))
	var refused *parley.Error
	if !errors.As(err, &refused) {
		t.Fatalf("got %v, want a *parley.Error", err)
	}
	if refused.StatusCode != http.StatusBadRequest || refused.Code != "CHAT_CLOSED" || refused.RequestID != "r-1" || refused.Message != "no" || len(refused.Details) != 1 || refused.Details[0].Field != "f" {
		t.Errorf("got %+v, want the server's error", refused)
	}
}

func TestAttemptsAreBounded(t *testing.T) {
	t.Parallel()
	proxy := answer(502, "<html>")
	s := serve(t, proxy, proxy, proxy, proxy)
	_, err := s.client(t).ListChatsWithResponse(t.Context(), nil)
	var refused *parley.Error
	if !errors.As(err, &refused) || refused.StatusCode != http.StatusBadGateway || refused.Code != "" || len(s.asked) != 4 {
		t.Errorf("got %v after %d attempts, want a 502 after 4", err, len(s.asked))
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	t.Run("longer than the maximum pause", func(t *testing.T) {
		s := serve(t, problem(503, "UNAVAILABLE", "Retry-After", "11"))
		if _, err := s.client(t).GetChatWithResponse(t.Context(), chatID, nil); err == nil {
			t.Error("got no error, want that of the server")
		}
	})
	t.Run("the context ends", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			problem(503, "UNAVAILABLE", "Retry-After", "10")(w, r)
			time.AfterFunc(10*time.Millisecond, cancel)
		})
		_, err := s.client(t).GetChatWithResponse(ctx, chatID, nil)
		if err == nil || ctx.Err() == nil {
			t.Errorf("got %v, want the wait to end with the context", err)
		}
	})
}

func TestNoRedirect(t *testing.T) {
	t.Parallel()
	other := serve(t)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) })
	_, err := s.client(t).GetChatWithResponse(t.Context(), chatID, nil)
	var refused *parley.Error
	if !errors.As(err, &refused) || refused.StatusCode != http.StatusFound {
		t.Errorf("got %v, want the redirect as an error: the token must not go to another server", err)
	}
}

func TestAllReadsToTheEnd(t *testing.T) {
	t.Parallel()
	s := serve(t,
		answer(200, `[{"chatId":"1"},{"chatId":"2"}]`, "Link", `<?limit=2&after=x%3D>; rel="next"`),
		answer(200, `[]`, "Link", `<?limit=2&after=y>; rel="next"`),
		answer(200, `[{"chatId":"3"}]`))
	client := s.client(t)
	chats := parley.All(func(page clientapi.RequestEditorFn) (http.Header, *[]clientapi.Chat, error) {
		answer, err := client.ListChatsWithResponse(t.Context(), &clientapi.ListChatsParams{Limit: new(2)}, page)
		if err != nil {
			return nil, nil, err
		}
		return answer.HTTPResponse.Header, answer.JSON200, nil
	})
	var seen []string
	for chat, err := range chats {
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, chat.ChatId)
	}
	var queries []string
	for _, r := range s.asked {
		queries = append(queries, r.URL.RawQuery)
	}
	if want := []string{"limit=2", "limit=2&after=x%3D", "limit=2&after=y"}; !slices.Equal(seen, []string{"1", "2", "3"}) || !slices.Equal(queries, want) {
		t.Errorf("got %q with the queries %q, want three with %q", seen, queries, want)
	}
}

func TestBaseURLIsChecked(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"", "api.example.com", "ftp://api.example.com", "https://", "://"} {
		if c, err := parley.NewClient(base, "t"); err == nil {
			t.Errorf("%q: got %v, want an error", base, c)
		}
	}
}
