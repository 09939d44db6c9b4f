package chat

import (
	"log/slog"
	"slices"
	"time"
)

// Verification is the proof that an application requires to recognise a known visitor.
type Verification string

const (
	VerificationOff      Verification = "off"      // none: a claim is enough; the zero value means the same
	VerificationSession  Verification = "session"  // the visitor's token, or a proof by the company's server
	VerificationRequired Verification = "required" // registration requires a proof
)

// Known reports whether v is a defined value.
func (v Verification) Known() bool {
	return v == VerificationOff || v == VerificationSession || v == VerificationRequired
}

// Secret is a text that is printed, logged and encoded as a placeholder. Convert it to a string to get the text.
type Secret string

const concealed = "[secret]"

// String implements [fmt.Stringer].
func (Secret) String() string { return concealed }

// GoString implements [fmt.GoStringer].
func (Secret) GoString() string { return concealed }

// LogValue implements [slog.LogValuer].
func (Secret) LogValue() slog.Value { return slog.StringValue(concealed) }

// MarshalText implements [encoding.TextMarshaler], which JSON encoding uses as well.
func (Secret) MarshalText() ([]byte, error) { return []byte(concealed), nil }

// IdentityVerification is how an application verifies its visitors.
type IdentityVerification struct {
	Mode    Verification
	Secrets []IdentitySecret // newest first
}

// IdentitySecret is a secret shared by an application and its company's server.
type IdentitySecret struct {
	Value     Secret
	CreatedAt time.Time
	ExpiresAt time.Time // when it becomes invalid; zero: the current secret
}

// On reports whether claims alone are not enough. An unknown mode counts as on.
func (v IdentityVerification) On() bool { return v.Mode != "" && v.Mode != VerificationOff }

// Required reports whether registration requires a proof.
func (v IdentityVerification) Required() bool { return v.Mode == VerificationRequired }

// ValidSecrets returns the secrets that are valid at now.
func (v IdentityVerification) ValidSecrets(now time.Time) []Secret {
	var valid []Secret
	for _, s := range v.Secrets {
		if s.ExpiresAt.IsZero() || now.Before(s.ExpiresAt) {
			valid = append(valid, s.Value)
		}
	}
	return valid
}

// Rotate returns the secrets with a new one in front. Existing secrets stay valid for the overlap, but no longer than
// their previous expiry; of more than five the oldest end at once.
func (v IdentityVerification) Rotate(fresh Secret, now time.Time, overlap time.Duration) []IdentitySecret {
	end := now.Add(max(overlap, 0))
	secrets := []IdentitySecret{{Value: fresh, CreatedAt: now}}
	for _, s := range v.Secrets {
		if s.ExpiresAt.IsZero() || end.Before(s.ExpiresAt) {
			s.ExpiresAt = end
		}
		secrets = append(secrets, s)
	}
	secrets = slices.DeleteFunc(
		secrets,
		func(s IdentitySecret) bool { return !s.ExpiresAt.IsZero() && !now.Before(s.ExpiresAt) },
	)
	return secrets[:min(len(secrets), maxIdentitySecrets)]
}

// maxIdentitySecrets bounds the secrets of an application; a rotation ends the oldest beyond this.
const maxIdentitySecrets = 5
