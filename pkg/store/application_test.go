package store_test

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/storetest"
)

func TestMalformedOriginsAreNotStored(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	app := chat.Application{ID: uuid.NewString(), AllowedOrigins: []string{"HTTPS://a.example:443", "b.example"}}
	e, _ := errors.AsType[*apperr.Error](s.PutApplication(t.Context(), app))
	if e == nil || e.Code != apperr.Invalid || len(e.Fields) != 1 || e.Fields[0].Name != "allowedOrigins[1]" {
		t.Errorf("got %v, want allowedOrigins[1] named as invalid", e)
	}
	app.AllowedOrigins = app.AllowedOrigins[:1]
	if err := s.PutApplication(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Application(t.Context(), app.ID); err != nil || !slices.Equal(got.AllowedOrigins, []string{"https://a.example"}) {
		t.Errorf("got %v, %v, want the origin as browsers write it", got.AllowedOrigins, err)
	}
	app.AllowedOrigins = nil
	if err := s.PutApplication(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Application(t.Context(), app.ID); err != nil || got.AllowedOrigins != nil {
		t.Errorf("got %v, %v, want none any more", got.AllowedOrigins, err)
	}
}

func TestIdentityVerificationOfAnApplication(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	app := chat.Application{ID: uuid.NewString(), Name: "Shop"}
	if err := s.SetVerification(t.Context(), app.ID, chat.VerificationOff); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("of an unknown application: got %v, want NotFound", err)
	}
	if _, err := s.RotateIdentitySecret(t.Context(), app.ID, "s", at(0), 0); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("of an unknown application: got %v, want NotFound", err)
	}
	if err := s.PutApplication(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []chat.Verification{chat.VerificationRequired, chat.VerificationOptional, "maybe", ""} {
		if err := s.SetVerification(t.Context(), app.ID, mode); !apperr.Is(err, apperr.Invalid) {
			t.Errorf("%q without a secret: got %v, want Invalid", mode, err)
		}
	}
	if _, err := s.RotateIdentitySecret(t.Context(), app.ID, "one", at(0), time.Second); err != nil {
		t.Fatal(err)
	}
	if err := s.SetVerification(t.Context(), app.ID, chat.VerificationRequired); err != nil {
		t.Fatal(err)
	}
	rotated, err := s.RotateIdentitySecret(t.Context(), app.ID, "two", at(100), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	app.Name = "Renamed by somebody who knows nothing of secrets"
	if err := s.PutApplication(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	got, err := s.Application(t.Context(), app.ID)
	want := []chat.IdentitySecret{{Value: "two", CreatedAt: at(100)}, {Value: "one", CreatedAt: at(0), ExpiresAt: at(1100)}}
	if err != nil || !got.Identity.Required() || !slices.Equal(got.Identity.Secrets, want) || !slices.Equal(rotated.Secrets, want) {
		t.Errorf("got %+v, %v, want it required, with the secrets two and, for a second, one", got.Identity, err)
	}
}

// Two rotations at once must not lose a secret that somebody has been shown.
func TestIdentitySecretsRotatedAtOnce(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	app := chat.Application{ID: uuid.NewString()}
	if err := s.PutApplication(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for _, secret := range []chat.Secret{"a", "b", "c"} {
		group.Go(func() {
			if _, err := s.RotateIdentitySecret(t.Context(), app.ID, secret, at(0), time.Hour); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	got, err := s.Application(t.Context(), app.ID)
	valid := got.Identity.Valid(at(1))
	slices.Sort(valid)
	if err != nil || !slices.Equal(valid, []chat.Secret{"a", "b", "c"}) {
		t.Errorf("got %d valid secrets, %v, want all three", len(valid), err)
	}
}

func TestAWrongURIShowsNoSecret(t *testing.T) {
	t.Parallel()
	for _, uri := range []string{
		"mongodb://user:s3cr3t@host:port", "mongodb://user:s3cr3t/x@host", "mongodb://user:s3cr3t%zz@host", "mongodb://user:s3cr3t@x@host",
		"mongodb://user:s3cr3t@host/?tls=perhaps", "mongodb+srv://user:s3cr3t@host:1",
	} {
		_, err := store.Open(store.Config{URI: uri, Database: "d", Logger: slog.New(slog.DiscardHandler)})
		if err == nil || strings.Contains(err.Error(), "s3cr3t") || strings.Contains(err.Error(), "user") && !strings.Contains(err.Error(), "percent-encoded") {
			t.Errorf("%s: got %v, want an error without the secret", strings.ReplaceAll(uri, "s3cr3t", "..."), err)
		}
	}
}
