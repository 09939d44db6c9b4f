package webhook_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/parley-chat/parley/clients/go/webhook"
)

const (
	id   = "3b1f6a52-0f5e-5b1f-8f0e-3c8f7a2d9e11"
	body = `{"type":"chat.closed","timestamp":"2026-11-22T12:00:00.007Z","data":{"chatId":"c"}}`
)

func newSecret() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	return "whsec_" + base64.StdEncoding.EncodeToString(key)
}

// signed returns the headers of a delivery signed by the official library.
func signed(t *testing.T, secret string, at time.Time) http.Header {
	t.Helper()
	official, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := official.Sign(id, at, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{}
	header.Set("webhook-id", id)
	header.Set("webhook-timestamp", strconv.FormatInt(at.Unix(), 10))
	header.Set("webhook-signature", signature)
	return header
}

func verifier(t *testing.T, keys ...string) *webhook.Verifier {
	t.Helper()
	v, err := webhook.NewVerifier(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestVerifiesTheOfficialLibrarysSignatures(t *testing.T) {
	t.Parallel()
	secret, next := newSecret(), newSecret()
	header := signed(t, secret, time.Now())
	event, err := verifier(t, secret).Verify([]byte(body), header)
	if err != nil {
		t.Fatal(err)
	}
	var closed webhook.ChatClosed
	if err := json.Unmarshal(event.Data, &closed); err != nil {
		t.Fatal(err)
	}
	if event.ID != id || event.Type != "chat.closed" || !event.Timestamp.Equal(time.Date(2026, 11, 22, 12, 0, 0, 7e6, time.UTC)) || closed.ChatId != "c" {
		t.Errorf("got %+v with %+v, want what was sent", event, closed)
	}
	if _, err := verifier(t, next, secret).Verify([]byte(body), header); err != nil {
		t.Errorf("with two keys: got %v, want it verified", err)
	}
	both := signed(t, next, time.Now())
	both.Set("webhook-signature", header.Get("webhook-signature")+" "+both.Get("webhook-signature"))
	if _, err := verifier(t, next).Verify([]byte(body), both); err != nil {
		t.Errorf("with two signatures: got %v, want it verified", err)
	}
}

func TestVerifiesEd25519(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	secret := newSecret()
	header := signed(t, secret, time.Now())
	content := fmt.Sprintf("%s.%s.%s", id, header.Get("webhook-timestamp"), body)
	header.Set("webhook-signature", "v1a,"+base64.StdEncoding.EncodeToString(ed25519.Sign(private, []byte(content))))
	v := verifier(t, "whpk_"+base64.StdEncoding.EncodeToString(public))
	if _, err := v.Verify([]byte(body), header); err != nil {
		t.Errorf("got %v, want it verified", err)
	}
	if _, err := v.Verify([]byte(body+" "), header); !errors.Is(err, webhook.ErrSignature) {
		t.Errorf("another body: got %v, want ErrSignature", err)
	}
	if _, err := verifier(t, secret).Verify([]byte(body), header); !errors.Is(err, webhook.ErrSignature) {
		t.Errorf("another scheme: got %v, want ErrSignature", err)
	}
}

func TestRejectsInvalidRequests(t *testing.T) {
	t.Parallel()
	secret := newSecret()
	good := func() http.Header { return signed(t, secret, time.Now()) }
	with := func(name, value string) http.Header {
		h := good()
		h.Set(name, value)
		return h
	}
	for name, test := range map[string]struct {
		header http.Header
		body   string
		want   error
	}{
		"another body":      {good(), body + " ", webhook.ErrSignature},
		"another id":        {with("webhook-id", "x"), body, webhook.ErrSignature},
		"another time":      {with("webhook-timestamp", strconv.FormatInt(time.Now().Unix()+9, 10)), body, webhook.ErrSignature},
		"too old":           {signed(t, secret, time.Now().Add(-6*time.Minute)), body, webhook.ErrTimestamp},
		"too new":           {signed(t, secret, time.Now().Add(6*time.Minute)), body, webhook.ErrTimestamp},
		"no id":             {with("webhook-id", ""), body, webhook.ErrHeaders},
		"no time":           {with("webhook-timestamp", "now"), body, webhook.ErrHeaders},
		"no signature":      {with("webhook-signature", ""), body, webhook.ErrHeaders},
		"an empty one":      {with("webhook-signature", "v1,"), body, webhook.ErrSignature},
		"not base64":        {with("webhook-signature", "v1,%%"), body, webhook.ErrSignature},
		"an unknown scheme": {with("webhook-signature", "v2,AAAA"), body, webhook.ErrSignature},
	} {
		if event, err := verifier(t, secret).Verify([]byte(test.body), test.header); !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, %v, want %v", name, event, err, test.want)
		}
	}
	for _, keys := range [][]string{nil, {""}, {"whsec_"}, {"whsec_%%"}, {"secret"}, {"whpk_AAAA"}} {
		if _, err := webhook.NewVerifier(keys...); err == nil {
			t.Errorf("%q: got no error, want one", keys)
		}
	}
}
