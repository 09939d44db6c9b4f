package view_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/admin/view"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/webhook"
)

// TestViewsHaveNoSecrets encodes records whose secrets all have one text.
func TestViewsHaveNoSecrets(t *testing.T) {
	t.Parallel()
	const secret = "whsec_c2VjcmV0"
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	user := account.User{
		ID: "u", PasswordHash: secret, TOTPSecret: secret, TOTPPending: secret, RecoveryCodes: secret,
		Issuer: "i", Subject: secret, DeviceKey: secret, InvitationHash: secret,
	}
	application := chat.Application{
		ID:       "a",
		Identity: chat.IdentityVerification{Secrets: []chat.IdentitySecret{{Value: secret, CreatedAt: now}}},
	}
	endpoint := webhook.Endpoint{
		ID:      "e",
		Headers: map[string]string{"X-Api-Key": secret},
		Secrets: []webhook.Secret{{Value: secret, CreatedAt: now}},
	}
	for name, v := range map[string]any{
		"user":        view.UserOf(user),
		"application": view.ApplicationOf(application),
		"endpoint":    view.EndpointOf(endpoint, now),
	} {
		text, err := json.Marshal(v)
		if err != nil || strings.Contains(string(text), secret) {
			t.Errorf("%s: got %s, %v, want no secret", name, text, err)
		}
	}
	if v := view.EndpointOf(endpoint, now); len(v.Headers) != 1 || len(v.Signatures) != 1 {
		t.Errorf("got the headers %v and signatures %v, want their names", v.Headers, v.Signatures)
	}
}
