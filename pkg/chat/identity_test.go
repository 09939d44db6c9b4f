package chat_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
)

func TestSecretsAreRedacted(t *testing.T) {
	t.Parallel()
	const text = "pis_do-not-show-me"
	app := chat.Application{Identity: chat.IdentityVerification{Secrets: []chat.IdentitySecret{{Value: text}}}}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "app", app, "secret", app.Identity.Secrets[0].Value)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "app", app, "secret", app.Identity.Secrets[0].Value)
	encoded, err := json.Marshal(app)
	if err != nil {
		t.Fatal(err)
	}
	for name, shown := range map[string]string{
		"log": log.String(), "JSON": string(encoded), "%v": fmt.Sprintf("%v", app), "%+v": fmt.Sprintf("%+v", app),
		"%#v": fmt.Sprintf("%#v", app), "%s": fmt.Sprintf("%s", app.Identity), "%q": fmt.Sprintf("%q", app.Identity.Secrets[0].Value),
		"error": fmt.Errorf("secret %v", app.Identity.Secrets[0].Value).Error(),
	} {
		if strings.Contains(shown, "do-not-show-me") {
			t.Errorf("%s: got %s, want no secret in it", name, shown)
		}
	}
	if string(app.Identity.Secrets[0].Value) != text {
		t.Error("the secret itself is lost")
	}
}

func TestIdentitySecretsOverlap(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var v chat.IdentityVerification
	v.Secrets = v.Rotate("one", began, time.Hour)
	v.Secrets = v.Rotate("two", began.Add(time.Hour), time.Hour)
	for _, test := range []struct {
		after time.Duration
		want  []chat.Secret
	}{
		{time.Hour, []chat.Secret{"two", "one"}},
		{2*time.Hour - time.Millisecond, []chat.Secret{"two", "one"}},
		{2 * time.Hour, []chat.Secret{"two"}},
		{1000 * time.Hour, []chat.Secret{"two"}},
	} {
		if got := v.ValidSecrets(began.Add(test.after)); !reflect.DeepEqual(got, test.want) {
			t.Errorf("after %s: got %d valid secrets, want %d", test.after, len(got), len(test.want))
		}
	}
	soon := began.Add(90 * time.Minute)
	v.Secrets = v.Rotate("three", soon, 24*time.Hour)
	if got := v.ValidSecrets(began.Add(2 * time.Hour)); !reflect.DeepEqual(got, []chat.Secret{"three", "two"}) {
		t.Errorf("a second rotation gave the first secret more time: %d are valid, want 2", len(got))
	}
	if v.Secrets = v.Rotate("four", soon, 0); len(v.Secrets) != 1 || v.Secrets[0].Value != "four" {
		t.Errorf("without an overlap: got %d secrets, want the new one", len(v.Secrets))
	}
}

// However often a secret is rotated, an application keeps few of them.
func TestRotationKeepsFewSecrets(t *testing.T) {
	t.Parallel()
	var v chat.IdentityVerification
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i := range 100 {
		v.Secrets = v.Rotate(chat.Secret(fmt.Sprint(i)), began.Add(time.Duration(i)*time.Second), 24*time.Hour)
	}
	if len(v.Secrets) != 5 || v.Secrets[0].Value != "99" || v.Secrets[4].Value != "95" {
		t.Errorf("got %v, want the five newest", v.Secrets)
	}
}
