package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/storetest"
)

func TestAccessToken(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	precise := time.Date(2026, 11, 21, 13, 0, 0, 123_456_789, time.FixedZone("", 3600))
	want := chat.AccessToken{
		Hash: "5e884898da28047151d0e56f8dc62927", CompanyID: uuid.NewString(), Name: "CRM", Prefix: "pat_abcd",
		CreatedAt: precise, ExpiresAt: at(5000),
	}
	if err := s.PutAccessToken(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	want.CreatedAt = precise.UTC().Truncate(time.Millisecond)
	got, err := s.AccessToken(t.Context(), want.Hash)
	if err != nil || got != want {
		t.Fatalf("got %+v, %v, want %+v", got, err, want)
	}
	if _, err := s.AccessToken(t.Context(), "other"); !apperr.Is(err, apperr.NotFound) {
		t.Fatalf("an unknown hash: got %v, want NotFound", err)
	}
}

func TestRevokeAccessToken(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	if err := s.RevokeAccessToken(t.Context(), "unknown", at(0)); !apperr.Is(err, apperr.NotFound) {
		t.Fatalf("revoking an unknown token: got %v, want NotFound", err)
	}
	if err := s.PutAccessToken(t.Context(), chat.AccessToken{Hash: "h", CreatedAt: at(0)}); err != nil {
		t.Fatal(err)
	}
	for _, when := range []time.Time{at(10), at(20)} {
		if err := s.RevokeAccessToken(t.Context(), "h", when); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.AccessToken(t.Context(), "h")
	if err != nil || !got.RevokedAt.Equal(at(10)) || got.Valid(at(11)) {
		t.Fatalf("got %+v, %v, want it revoked at the first revocation", got, err)
	}
}

func TestCreateAccessToken(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	company := chat.Company{ID: uuid.NewString(), Name: "Blue"}
	if err := s.PutCompany(t.Context(), company); err != nil {
		t.Fatal(err)
	}
	secret, want := credential.IssueAccessToken(company.ID, "CRM", at(0), at(1000))
	if err := s.CreateAccessToken(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	hash, _ := credential.HashAccessToken(secret)
	if got, err := s.AccessToken(t.Context(), hash); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if err := s.CreateAccessToken(t.Context(), want); !apperr.Is(err, apperr.Conflict) {
		t.Errorf("the same again: got %v, want Conflict", err)
	}
	_, homeless := credential.IssueAccessToken(uuid.NewString(), "CRM", at(0), time.Time{})
	if err := s.CreateAccessToken(t.Context(), homeless); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("of a company that is not there: got %v, want NotFound", err)
	}
}

func TestAccessTokensThatAreNotWellFormed(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	for field, change := range map[string]func(*chat.AccessToken){
		"hash":      func(t *chat.AccessToken) { t.Hash = "" },
		"companyId": func(t *chat.AccessToken) { t.CompanyID = "blue" },
		"name":      func(t *chat.AccessToken) { t.Name = " " },
		"name ":     func(t *chat.AccessToken) { t.Name = strings.Repeat("x", 101) },
		"name  ":    func(t *chat.AccessToken) { t.Name = "a\x1b[31m" },
		"expiresAt": func(t *chat.AccessToken) { t.ExpiresAt = t.CreatedAt },
	} {
		_, token := credential.IssueAccessToken(uuid.NewString(), "CRM", at(0), at(1))
		change(&token)
		e, _ := errors.AsType[*apperr.Error](s.CreateAccessToken(t.Context(), token))
		if e == nil || e.Code != apperr.Invalid || len(e.Fields) != 1 || e.Fields[0].Name != strings.TrimSpace(field) {
			t.Errorf("%s: got %v, want it named as invalid", field, e)
		}
	}
}

func TestAccessTokensOfACompany(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	blue, red := uuid.NewString(), uuid.NewString()
	var want []chat.AccessToken
	for i, company := range []string{blue, red, blue} {
		_, token := credential.IssueAccessToken(company, "CRM", at(10-i), time.Time{})
		if err := s.PutAccessToken(t.Context(), token); err != nil {
			t.Fatal(err)
		}
		if company == blue {
			want = append([]chat.AccessToken{token}, want...)
		}
	}
	got, err := s.AccessTokens(t.Context(), blue)
	if err != nil || len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for name, test := range map[string]struct {
		reference string
		found     bool
	}{
		"its prefix":             {want[0].Prefix, true},
		"its hash":               {want[0].Hash, true},
		"the hash's beginning":   {want[0].Hash[:8], true},
		"too little of the hash": {want[0].Hash[:7], false},
		"a piece of the prefix":  {want[0].Prefix[:9], false},
		"nothing":                {"", false},
	} {
		got, err := s.FindAccessTokens(t.Context(), test.reference)
		if err != nil || (len(got) == 1 && got[0] == want[0]) != test.found {
			t.Errorf("by %s: got %+v, %v, want it found: %v", name, got, err, test.found)
		}
	}
}

func TestTheLastUseNeverMovesBack(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	if err := s.AccessTokenUsed(t.Context(), "unknown", at(0)); !apperr.Is(err, apperr.NotFound) {
		t.Fatalf("of an unknown token: got %v, want NotFound", err)
	}
	if err := s.PutAccessToken(t.Context(), chat.AccessToken{Hash: "h", CreatedAt: at(0)}); err != nil {
		t.Fatal(err)
	}
	for _, when := range []time.Time{at(20), at(30), at(10)} {
		if err := s.AccessTokenUsed(t.Context(), "h", when); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.AccessToken(t.Context(), "h"); err != nil || !got.LastUsedAt.Equal(at(30)) {
		t.Errorf("got %s, %v, want %s", got.LastUsedAt, err, at(30))
	}
}

// What is in use is read again whenever memory has forgotten it, so that every use is noted to within that time.
func TestTheCacheTellsWhichTokensAreUsed(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	if err := s.PutAccessToken(t.Context(), chat.AccessToken{Hash: "h"}); err != nil {
		t.Fatal(err)
	}
	now, used := at(0), 0
	c := store.NewCache(s, store.CacheConfig{
		TokenTTL: time.Second, Now: func() time.Time { return now },
		TokenUsed: func(token chat.AccessToken) {
			if token.Hash == "h" {
				used++
			}
		},
	})
	for _, step := range []struct{ after, want int }{{0, 1}, {500, 1}, {1000, 2}} {
		now = at(step.after)
		if _, err := c.AccessToken(t.Context(), "h"); err != nil || used != step.want {
			t.Errorf("after %d ms: got %d uses, %v, want %d", step.after, used, err, step.want)
		}
	}
	if _, err := c.AccessToken(t.Context(), "unknown"); !apperr.Is(err, apperr.NotFound) || used != 2 {
		t.Errorf("an unknown token: got %d uses, %v, want NotFound and none", used, err)
	}
}
