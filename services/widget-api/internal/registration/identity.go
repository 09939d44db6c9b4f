package registration

import (
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/store"
)

// identify returns the identities by which the form's visitor is found, the strongest first.
//
// A form with a userHash stands for the one identity that the hash proves, the strongest of those that were sent, and for
// nothing else: the others are what the visitor says, and must lead to nobody whom somebody else has proved to be. Where the
// application does not verify, the hash means nothing.
func (r Form) identify(app chat.Application, now time.Time) ([]store.Identity, error) {
	sent := r.identities(app.ID)
	switch {
	case !app.Identity.On(), r.UserHash == nil && !app.Identity.Required():
		return sent, nil
	case r.UserHash == nil:
		return nil, notVerified("is required")
	}
	strongest := sent[0]
	if !credential.IsUserHash(app.Identity.Valid(now), strongest.Value, *r.UserHash) {
		return nil, notVerified("does not prove the " + strongest.Kind)
	}
	strongest.Proved = true
	return []store.Identity{strongest}, nil
}

// provedBy is the kind of the identity that is proved, if one is.
func provedBy(identities []store.Identity) string {
	if identities[0].Proved {
		return identities[0].Kind
	}
	return ""
}

func notVerified(problem string) error {
	e := apperr.New(apperr.Invalid, "IDENTITY_NOT_VERIFIED", "Identity could not be verified: userHash "+problem)
	e.Fields = apperr.Fields{{Name: "userHash", Message: problem}}
	return e
}
