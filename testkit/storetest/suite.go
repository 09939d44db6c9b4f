package storetest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

// Opener returns an empty store for a test, closed when it ends. It is called from parallel tests.
type Opener func(t testing.TB, options ...Options) store.Store

// Run runs the contract suite on a store. [Engine] has the part that needs more than an open store.
func Run(t *testing.T, open Opener) {
	for name, test := range map[string]func(*testing.T, Opener){
		"companies":    testCompanies,
		"accessTokens": testAccessTokens,
		"applications": testApplications,
		"templates":    testTemplates,
		"visitors":     testVisitors,
		"identities":   testIdentities,
		"registration": testRegistration,
		"chats":        testChats,
		"messages":     testMessages,
		"history":      testHistory,
		"statuses":     testStatuses,
		"receipts":     testReceipts,
		"unread":       testUnread,
		"unread order": testUnreadOrder,
		"idempotency":  testIdempotency,
		"files":        testFiles,
		"users":        testUsers,
		"sessions":     testSessions,
		"audit":        testAudit,
		"control":      testControl,
		"inbox":        testInbox,
		"support":      testSupport,
		"ratings":      testRatings,
		"erase":        testErase,
		"pages":        testPages,
		"max page":     testMaxPage,
		"endpoints":    testWebhookEndpoints,
		"deliveries":   testWebhookDeliveries,
		"examined":     testExamined,
		"order":        testWebhookOrder,
		"streams":      testStreams,
		"bots":         testBots,
		"connections":  testModelConnections,
		"bot usage":    testBotUsage,
		"bot bounds":   testBotBounds,
		"bot calls":    testBotCalls,
		"bot actions":  testBotActions,
		"erase bots":   testEraseBots,
		"documents":    testDocuments,
		"fetches":      testDocumentFetches,
		"races":        testDocumentRaces,
		"search":       testSearch,
		"others":       testSearchOfOthers,
		"search terms": testSearchTerms,
		"copied":       testCopiedPassages,
		"knowledge":    testKnowledgeSettings,
		"embeddings":   testEmbeddings,
		"portable":     testPortable,
		"callers":      testCallers,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open)
		})
	}
}

// noon has a finer resolution than engines store: microseconds for messages, otherwise milliseconds.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 7_654_321, time.UTC)

// at returns a time of the tests as stored.
func at(after time.Duration) time.Time { return store.UTC(noon.Add(after)) }

// entered returns the time of a message as stored.
func entered(after time.Duration) time.Time { return chat.EnteredAt(noon.Add(after)) }

func newID() string { return uuid.NewString() }

func text(id string, created time.Time) chat.Message {
	return chat.Message{
		ID: id, CreatedAt: created, Type: chat.Text, Data: json.RawMessage(`{"text":"` + fmt.Sprintf("%x", id) + `"}`), NameOfSender: "Ada",
	}
}

func fromCompany(id string, created time.Time) chat.Message {
	m := text(id, created)
	m.IsFromSupport = true
	return m
}

// stored returns a message as stored.
func stored(m chat.Message) chat.Message {
	m.CreatedAt = chat.EnteredAt(m.CreatedAt)
	return m
}

// must fails the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("got error %v, want none", err)
	}
}

// get is must for calls that also return a value.
func get[V any](t testing.TB) func(V, error) V {
	return func(v V, err error) V {
		t.Helper()
		must(t, err)
		return v
	}
}

// errorOf returns the error of a call that also returns a value.
func errorOf[V any](_ V, err error) error { return err }

func want[V any](t testing.TB, what string, got, want V) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\ngot  %+v\nwant %+v", what, got, want)
	}
}

func wantCode(t testing.TB, what string, err error, code apperr.Code) {
	t.Helper()
	if !apperr.Is(err, code) {
		t.Errorf("%s: got %v, want code %s", what, err, code)
	}
}

func wantReason(t testing.TB, what string, err error, code apperr.Code, reason string) {
	t.Helper()
	if !apperr.Is(err, code) || apperr.ReasonOf(err) != reason {
		t.Errorf("%s: got %v (%s), want %s, %s", what, err, apperr.ReasonOf(err), code, reason)
	}
}

// together runs n concurrent calls and returns their results.
func together[V any](t testing.TB, n int, call func(n int) (V, error)) []V {
	t.Helper()
	results, failures := make([]V, n), make([]error, n)
	var group sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		group.Go(func() {
			<-start
			results[i], failures[i] = call(i)
		})
	}
	close(start)
	group.Wait()
	for i, err := range failures {
		if err != nil {
			t.Fatalf("call %d of %d: got error %v, want none", i, n, err)
		}
	}
	return results
}

// wantOneOf fails unless all values are equal, and returns the value.
func wantOneOf[V comparable](t testing.TB, what string, values []V) V {
	t.Helper()
	for _, v := range values {
		if v != values[0] {
			t.Fatalf("%s: got %v and %v, want all alike", what, values[0], v)
		}
	}
	return values[0]
}

func count(values []bool) (n int) {
	for _, v := range values {
		if v {
			n++
		}
	}
	return n
}

// save creates a visitor or saves the profile, without a chat.
func save(t testing.TB, s store.Store, v chat.Visitor) chat.Visitor {
	t.Helper()
	return get[store.Registered](t)(s.Register(t.Context(), store.Registration{Visitor: v})).Visitor
}

// openChat returns a new chat of a new visitor.
func openChat(t testing.TB, s store.Store, greetings ...chat.Message) chat.Chat {
	t.Helper()
	v := save(t, s, chat.Visitor{ID: newID(), CompanyID: newID(), AppID: newID()})
	c, opened, err := s.OpenChat(t.Context(), v, store.NewChat{Channel: chat.ChannelWidget, Now: noon, Greetings: greetings})
	must(t, err)
	if !opened {
		t.Fatal("a new visitor's chat: got one that was open, want a new one")
	}
	return c
}

// ids returns the ids of messages, in their order.
func ids(messages []chat.Message) []string {
	all := []string{}
	for _, m := range messages {
		all = append(all, m.ID)
	}
	return all
}

// message returns a message of the chat.
func message(t testing.TB, s store.Store, chatID, id string) chat.Message {
	t.Helper()
	at, m, err := s.FindMessage(t.Context(), id)
	must(t, err)
	want(t, "the chat of message "+id, at, chatID)
	return m
}

// appendAll appends messages one after the other.
func appendAll(t testing.TB, s store.Store, chatID string, messages ...chat.Message) {
	t.Helper()
	for _, m := range messages {
		must(t, s.AppendMessage(t.Context(), chatID, m))
	}
}

// walk returns the whole history in pages, from its end to its beginning.
func walk(t testing.TB, s store.Store, chatID string, q store.HistoryQuery) (all []chat.Message) {
	t.Helper()
	for {
		page, more, err := s.History(t.Context(), chatID, q)
		must(t, err)
		all = slices.Concat(page, all)
		if !more {
			return all
		}
		if len(page) == 0 {
			t.Fatal("a page: got no message and more, want at least one")
		}
		q.Before = page[0].ID
	}
}
