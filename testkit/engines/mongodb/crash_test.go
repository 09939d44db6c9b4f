package mongodb_test

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/mongodb"
	testkit "github.com/parley-chat/parley/testkit/engines/mongodb"
)

// These tests put the documents into the state that a crash between two writes leaves.

func byID(id string) bson.D { return bson.D{{Key: "_id", Value: id}} }

func TestCrashWhileOpeningAChat(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, e testkit.Engine) {
		database := e.Database(t)
		s, raw := e.Open(t, database), e.Raw(t, database)
		readers := map[string]func(c chat.Chat, v chat.Visitor) error{
			"chat": func(c chat.Chat, _ chat.Visitor) error { _, err := s.Chat(t.Context(), c.ID); return err },
			"current chat": func(_ chat.Chat, v chat.Visitor) error {
				_, err := store.CurrentChat(t.Context(), s, v, at(0))
				return err
			},
			"open chat": func(_ chat.Chat, v chat.Visitor) error {
				other := text(uuid.NewString(), at(0), true)
				_, opened, err := s.OpenChat(t.Context(), v, store.NewChat{Now: at(1), Greetings: []chat.Message{other}})
				if opened {
					t.Error("open chat: got a second chat")
				}
				return err
			},
			"list": func(_ chat.Chat, v chat.Visitor) error {
				_, err := s.Chats(t.Context(), store.ChatFilter{ChatUserID: v.ID}, store.Page{})
				return err
			},
			"records": func(chat.Chat, chat.Visitor) error {
				_, err := s.ReadRecords(t.Context(), "chats", "", 1000)
				return err
			},
		}
		for name, read := range readers {
			v, hello := newVisitor(t, s), text(uuid.NewString(), at(0), true)
			c, _, err := s.OpenChat(t.Context(), v, store.NewChat{Channel: chat.ChannelWidget, Now: at(0), Greetings: []chat.Message{hello}})
			ok(t, err)
			var greeting bson.D
			ok(t, raw.Collection("messages").FindOneAndDelete(t.Context(), byID(hello.ID)).Decode(&greeting))
			_, err = raw.Collection("chats").UpdateOne(t.Context(), byID(c.ID), bson.D{{Key: "$set", Value: bson.D{{Key: "greetings", Value: bson.A{greeting}}}}})
			ok(t, err)

			ok(t, read(c, v))
			history, _, err := s.History(t.Context(), c.ID, store.HistoryQuery{})
			if err != nil || len(history) != 1 || string(history[0].AppendJSON(nil)) != string(hello.AppendJSON(nil)) {
				t.Errorf("after %s: got %v, %v, want the greeting of the call that created the chat", name, history, err)
			}
			var left bson.M
			ok(t, raw.Collection("chats").FindOne(t.Context(), byID(c.ID)).Decode(&left))
			if _, there := left["greetings"]; there {
				t.Errorf("after %s: got greetings in the chat, want them moved", name)
			}
		}
	})
}

func TestCrashWhileResolvingAVisitor(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, e testkit.Engine) {
		database := e.Database(t)
		s, raw := e.Open(t, database), e.Raw(t, database)
		identity := store.Identity{Scope: "app", Kind: store.KindPhone, Value: "+4912345"}
		resolve := func() (string, bool) {
			t.Helper()
			r, err := s.Register(t.Context(), store.Registration{Identities: []store.Identity{identity}})
			ok(t, err)
			return r.Visitor.ID, r.Created
		}
		forget := func(id string) {
			t.Helper()
			_, err := raw.Collection("identityOwners").DeleteOne(t.Context(), byID(id))
			ok(t, err)
		}
		first, _ := resolve()
		forget(first)
		if id, err := s.FindVisitor(t.Context(), identity); !apperr.Is(err, apperr.NotFound) {
			t.Errorf("an id that no call has returned: got %q, %v, want NotFound", id, err)
		}
		if id, created := resolve(); id != first || !created {
			t.Errorf("got %q, created %v, want %q, created", id, created, first)
		}
		forget(first)
		records, err := s.ReadRecords(t.Context(), "identities", "", 10)
		if err != nil || len(records) != 1 {
			t.Fatalf("got %v, %v, want one record", records, err)
		}
		if id, created := resolve(); id != first || created {
			t.Errorf("after the copy: got %q, created %v, want %q, which the copy made a visitor's", id, created, first)
		}
	})
}

// TestCrashBeforeTheWindowMoves repeats the append of a visitor's message whose first append crashed after its insert.
func TestCrashBeforeTheWindowMoves(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, e testkit.Engine) {
		database := e.Database(t)
		s, raw := e.Open(t, database), e.Raw(t, database)
		c, m := newChat(t, s), text(uuid.NewString(), at(1000), false)
		ok(t, s.AppendMessage(t.Context(), c.ID, m))
		_, err := raw.Collection("chats").UpdateOne(t.Context(), byID(c.ID), bson.D{
			{Key: "$set", Value: bson.D{{Key: "windowStartedAt", Value: at(0)}}}, {Key: "$unset", Value: bson.D{{Key: "visitorWroteAt", Value: ""}}},
		})
		ok(t, err)
		later := m
		later.CreatedAt = at(9000) // the first stays
		ok(t, s.AppendMessage(t.Context(), c.ID, later))
		got, err := s.Chat(t.Context(), c.ID)
		if err != nil || !got.WindowStartedAt.Equal(at(1000)) || !got.VisitorWroteAt.Equal(at(1000)) {
			t.Errorf("got %+v, %v, want the window of the stored message, %v", got, err, at(1000))
		}
	})
}

// TestAppendToNoChat appends a message to an unknown chat. While it is removed again, another call creates
// the chat and appends it too: the acknowledged message stays.
func TestAppendToNoChat(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, e testkit.Engine) {
		database := e.Database(t)
		s, raw := e.Open(t, database), e.Raw(t, database)
		for _, fromSupport := range []bool{false, true} {
			m, chatID := text(uuid.NewString(), at(1), fromSupport), uuid.NewString()
			for range 2 {
				if err := s.AppendMessage(t.Context(), chatID, m); !apperr.Is(err, apperr.NotFound) {
					t.Fatalf("got %v, want NotFound", err)
				}
				if _, _, err := s.FindMessage(t.Context(), m.ID); !apperr.Is(err, apperr.NotFound) {
					t.Fatalf("got %v, want no message left", err)
				}
			}

			interfere := beforeDelete(func() {
				_, err := raw.Collection("chats").InsertOne(t.Context(), bson.D{{Key: "_id", Value: chatID}, {Key: "createdAt", Value: at(0)}})
				ok(t, err)
				ok(t, s.AppendMessage(t.Context(), chatID, m))
			})
			err := e.Open(t, database, interfere).AppendMessage(t.Context(), chatID, m)
			if !apperr.Is(err, apperr.NotFound) {
				t.Errorf("the call that saw no chat: got %v, want NotFound", err)
			}
			if _, _, err := s.FindMessage(t.Context(), m.ID); err != nil {
				t.Errorf("got %v, want the message that the other call acknowledged", err)
			}
		}
	})
}

// beforeDelete calls back before the store deletes a message.
func beforeDelete(call func()) func(*mongodb.Config) {
	return func(c *mongodb.Config) {
		c.Monitor = &event.CommandMonitor{
			Started: func(_ context.Context, e *event.CommandStartedEvent) {
				if e.CommandName == "delete" {
					call()
				}
			},
			Succeeded: func(context.Context, *event.CommandSucceededEvent) {},
			Failed:    func(context.Context, *event.CommandFailedEvent) {},
		}
	}
}

// TestCrashWhileWritingADocument leaves passages of other writes, as a crash does before the document is written, or
// before the passages of before are removed.
func TestCrashWhileWritingADocument(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, e testkit.Engine) {
		database := e.Database(t)
		s, raw := e.Open(t, database), e.Raw(t, database)
		d := knowledge.Document{ID: uuid.NewString(), CompanyID: uuid.NewString(), Title: "Guide", Text: "ladder"}
		ladder := []knowledge.Passage{{DocumentID: d.ID, CompanyID: d.CompanyID, Number: 1, Text: d.Text}}
		leave := func(revision int64) {
			t.Helper()
			version := uuid.NewString()
			_, err := raw.Collection("passages").InsertOne(t.Context(), bson.D{
				{Key: "_id", Value: version + "|1"}, {Key: "documentId", Value: d.ID}, {Key: "companyId", Value: d.CompanyID},
				{Key: "revision", Value: revision}, {Key: "version", Value: version},
				{Key: "terms", Value: bson.A{"left"}}, {Key: "weights", Value: bson.A{1}}, {Key: "length", Value: 1},
			})
			ok(t, err)
		}
		wantLeft := func(what string, want int64) {
			t.Helper()
			left, err := raw.Collection("passages").CountDocuments(t.Context(), bson.D{{Key: "terms", Value: "left"}})
			if err != nil || left != want {
				t.Errorf("%s: got %d passages of other writes, %v, want %d", what, left, err, want)
			}
			found, err := s.SearchPassages(t.Context(), d.CompanyID, []string{"left"}, 9)
			if err != nil || len(found) != 0 {
				t.Errorf("%s: found %d of them, %v, want none", what, len(found), err)
			}
		}
		leave(1)
		wantLeft("a new document that was not written", 1)
		ok(t, s.PutDocument(t.Context(), d, ladder))
		wantLeft("a repeat of a new document", 0)
		leave(1)
		leave(2)
		leave(3)
		d.Revision = 1
		ok(t, s.PutDocument(t.Context(), d, ladder))
		wantLeft("a change, while one of the next revision begins", 1)
		leave(1)
		if err := s.PutDocument(t.Context(), d, ladder); !apperr.Is(err, apperr.Conflict) {
			t.Errorf("a repeat of a change: got %v, want Conflict", err)
		}
		wantLeft("a repeat of a change", 1)
		d.Revision = 2
		ok(t, s.PutDocument(t.Context(), d, ladder))
		wantLeft("the next change", 0)
		ok(t, s.DeleteDocument(t.Context(), d.ID))
		leave(3)
		if err := s.DeleteDocument(t.Context(), d.ID); !apperr.Is(err, apperr.NotFound) {
			t.Errorf("a repeat of a deletion: got %v, want NotFound", err)
		}
		wantLeft("a repeat of a deletion", 0)
	})
}

// TestDocuments checks the documents that an operator sees with mongosh: plain fields beside the data.
func TestDocuments(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, e testkit.Engine) {
		database := e.Database(t)
		s, raw := e.Open(t, database), e.Raw(t, database)
		c, m := newChat(t, s), text("m.$1", at(1), false)
		m.Data = []byte(`{"text":"Wo ist meine Bestellung?\u0000", "n": 1e999}`)
		ok(t, s.AppendMessage(t.Context(), c.ID, m))
		want := bson.M{
			"_id": m.ID, "chatId": c.ID, "order": "2026-11-21T12:00:00.001000Z m.$1", "createdAt": bson.NewDateTimeFromTime(at(1)),
			"type": "TEXT", "text": "Wo ist meine Bestellung?", "nameOfSender": "Ada", "isFromSupport": false, "data": string(m.Data),
		}
		wantDocument(t, raw.Collection("messages"), m.ID, want)

		_, err := s.AwaitReceipts(t.Context(), c.ID, m, true)
		ok(t, err)
		wantDocument(t, raw.Collection("receipts"), c.ID, bson.M{
			"_id": c.ID, "awaited": int32(1), "toRead": bson.D{{Key: "m%2E%241", Value: "2026-11-21T12:00:00.001000Z m.$1"}},
		})
	})
}

func wantDocument(t *testing.T, c *mongo.Collection, id string, want bson.M) {
	t.Helper()
	var got bson.M
	ok(t, c.FindOne(t.Context(), byID(id)).Decode(&got))
	gotText, _ := bson.MarshalExtJSON(bson.D{{Key: "d", Value: ordered(got)}}, false, false)
	wantText, _ := bson.MarshalExtJSON(bson.D{{Key: "d", Value: ordered(want)}}, false, false)
	if string(gotText) != string(wantText) {
		t.Errorf("got  %s\nwant %s", gotText, wantText)
	}
}

// ordered returns a document with its fields sorted by name.
func ordered(m bson.M) (d bson.D) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		d = append(d, bson.E{Key: name, Value: m[name]})
	}
	return d
}
