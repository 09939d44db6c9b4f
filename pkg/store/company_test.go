package store_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store/storetest"
)

// trickyJSON is what a decoder and encoder on the way would change: number forms, key order, duplicate keys, spaces, escapes.
const trickyJSON = `{ "z":1, "a" : 12345678901234567890123,  "e":1.0e+2,"n":-0.0,"z":2,
	"html":"<b>&amp;</b>","u":"\u00e9 é \ud83d\ude00 😀 \u0000","$set":{"a.b":null},"deep":[[[{"x":[]}]]], "":"" }`

func TestCompany(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	if _, err := s.Company(t.Context(), "nobody"); !apperr.Is(err, apperr.NotFound) {
		t.Fatalf("a company that is not there: got %v, want NotFound", err)
	}
	want := chat.Company{ID: uuid.NewString(), Name: "Ärzte & Söhne"}
	if err := s.PutCompany(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	want.Name = "Renamed"
	if err := s.PutCompany(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	got, err := s.Company(t.Context(), want.ID)
	if err != nil || got != want {
		t.Fatalf("got %+v, %v, want %+v", got, err, want)
	}
}

func TestApplicationKeepsWidgetConfigs(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	for _, configs := range []string{trickyJSON, `{}`, ``} {
		want := chat.Application{
			ID: uuid.NewString(), CompanyID: uuid.NewString(), Provider: chat.ProviderWidget, BotName: "Бот", Name: "Shop",
			WidgetConfigs: json.RawMessage(configs), AllowedOrigins: []string{"https://a.example", "https://b.example"},
			FileRetention: 30 * 24 * time.Hour,
		}
		if err := s.PutApplication(t.Context(), want); err != nil {
			t.Fatal(err)
		}
		got, err := s.Application(t.Context(), want.ID)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, %v, want %+v", got, err, want)
		}
	}
	if _, err := s.Application(t.Context(), uuid.NewString()); !apperr.Is(err, apperr.NotFound) {
		t.Fatalf("an unknown application: got %v, want NotFound", err)
	}
	err := s.PutApplication(t.Context(), chat.Application{ID: "x", WidgetConfigs: json.RawMessage(`{"a":`)})
	if !apperr.Is(err, apperr.Invalid) {
		t.Fatalf("widgetConfigs that are not JSON: got %v, want Invalid", err)
	}
	err = s.PutApplication(t.Context(), chat.Application{ID: "x", WidgetConfigs: json.RawMessage(`{"requiredFields":[1]}`)})
	if !apperr.Is(err, apperr.Invalid) || !strings.Contains(err.Error(), "widgetConfigs.requiredFields[0] must be") {
		t.Fatalf("requiredFields that cannot be read: got %v, want Invalid with the path", err)
	}
	if err := s.PutApplication(t.Context(), chat.Application{ID: "x", FileRetention: -time.Second}); !apperr.Is(err, apperr.Invalid) {
		t.Fatalf("a negative retention: got %v, want Invalid", err)
	}
}

func TestTemplate(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	want := chat.MessageTemplate{
		ID: uuid.NewString(), CompanyID: uuid.NewString(), Name: "order", Status: chat.TemplateApproved,
		Text: "Hello {{username}}", Parameters: []chat.TemplateParameter{{Name: "username", Default: "friend"}, {Name: "x.y$"}},
	}
	if err := s.PutTemplate(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	got, err := s.Template(t.Context(), want.ID)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v, want %+v", got, err, want)
	}
	if _, err := s.Template(t.Context(), uuid.NewString()); !apperr.Is(err, apperr.NotFound) {
		t.Fatalf("an unknown template: got %v, want NotFound", err)
	}
}
