package registration

import (
	"context"
	"strings"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/store"
)

// prove checks the form's proof, if any. It returns the form with the values that the proof adds, and the
// proved identity or nil.
//
// A proof covers one identity, the strongest that was sent. The others are claims, and must not match a
// visitor that a proof identifies as someone else. If the application does not verify, proofs are ignored.
func (f Form) prove(app chat.Application, now time.Time) (Form, *store.Identity, error) {
	switch {
	case !app.Identity.On():
		return f, nil, nil
	case f.IdentityToken != nil:
		return f.proveByToken(app, now)
	case f.UserHash != nil:
		strongest := f.identities(app.ID)[0]
		if !credential.IsUserHash(app.Identity.ValidSecrets(now), strongest.Value, *f.UserHash) {
			return f, nil, notVerified("userHash", "does not prove the "+strongest.Kind)
		}
		strongest.Proved = true
		return f, &strongest, nil
	case app.Identity.Required():
		return f, nil, notVerified("userHash", "or identityToken is required")
	}
	return f, nil, nil
}

// proveByToken takes the proof from the token's claims. A claim fills a field that was not sent, and must equal
// one that was sent. A field without a claim stays unproved, so it must not be the strongest.
func (f Form) proveByToken(app chat.Application, now time.Time) (Form, *store.Identity, error) {
	proved, err := credential.VerifyIdentityToken(app.Identity.ValidSecrets(now), *f.IdentityToken, now)
	if err != nil {
		return f, nil, notVerified("identityToken", err.Error())
	}
	claims := map[string]string{
		store.KindUserID: proved.UserID,
		store.KindEmail:  proved.Email,
		store.KindPhone:  proved.Phone,
	}
	for _, field := range f.identityFields() {
		if !fill(field.value, claims[field.kind]) {
			return f, nil, notVerified("identityToken", "does not prove the "+field.kind)
		}
	}
	var faults apperr.Fields
	f.validateIdentities(&faults)
	if len(faults) > 0 {
		return f, nil, faults.Err()
	}
	strongest := f.identities(app.ID)[0]
	if claims[strongest.Kind] == "" {
		return f, nil, notVerified("identityToken", "does not prove the "+strongest.Kind)
	}
	strongest.Proved = true
	return f, &strongest, nil
}

// fill sets a field that was not sent to the claim, if there is one. It reports false if the field was sent with
// another value.
func fill(field **string, claim string) bool {
	if claim == "" {
		return true
	}
	if *field == nil {
		*field = &claim
	}
	return **field == claim
}

// identityField is a field of a form that identifies its visitor.
type identityField struct {
	kind  string
	value **string // points into the form
}

// identityFields returns the fields that identify the visitor, the strongest first.
func (f *Form) identityFields() []identityField {
	return []identityField{
		{store.KindUserID, &f.UserID},
		{store.KindEmail, &f.Email},
		{store.KindPhone, &f.Phone},
	}
}

// identities returns the identities that the form claims, the strongest first.
func (f Form) identities(appID string) []store.Identity {
	var ids []store.Identity
	for _, field := range f.identityFields() {
		if value := *field.value; value != nil {
			ids = append(ids, store.Identity{Scope: appID, Kind: field.kind, Value: *value})
		}
	}
	return ids
}

// criteria select the visitor of a registration; see [store.Registration].
type criteria struct {
	identities  []store.Identity
	onlyUnowned bool   // an identity that is somebody's does not select them
	visitorID   string // the holder of the request's token; empty: none
}

// criteriaOf returns how to find the visitor of the form.
func (s *Service) criteriaOf(
	ctx context.Context,
	app chat.Application,
	f Form,
	proved *store.Identity,
) (criteria, error) {
	if proved != nil {
		return criteria{identities: []store.Identity{*proved}}, nil
	}
	if !app.Identity.On() {
		return criteria{identities: f.identities(app.ID)}, nil
	}
	holder, err := s.holder(ctx, app, f)
	return criteria{
		identities:  f.identities(app.ID),
		onlyUnowned: true, // an unproved claim to a known identity gives no access to its history
		visitorID:   holder,
	}, err
}

// holder returns the id of the visitor of the request's token, if the form names that visitor: a shared browser
// may still have the token of another one. It is empty if there is none; an invalid token counts as none.
func (s *Service) holder(ctx context.Context, app chat.Application, f Form) (chatUserID string, err error) {
	if f.Token == "" {
		return "", nil
	}
	claims, err := s.cfg.Tokens.Verify(ctx, f.Token)
	if apperr.Is(err, apperr.Unauthenticated) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	v, err := s.cfg.Visitors.Visitor(ctx, claims.ChatUserID)
	if apperr.Is(err, apperr.NotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if v.AppID != app.ID || !claims.IssuedSince(v.TokensValidFrom) || !f.names(v) {
		return "", nil
	}
	return v.ID, nil
}

// names reports whether the form has an identity of the visitor and none that differs.
func (f Form) names(v chat.Visitor) bool {
	known := map[string]string{
		store.KindUserID: v.UserID,
		store.KindEmail:  v.Email,
		store.KindPhone:  v.Phone,
	}
	same := 0
	for _, sent := range f.identities(v.AppID) {
		value := known[sent.Kind]
		if value == "" {
			continue
		}
		sameKind := store.Identity{Scope: sent.Scope, Kind: sent.Kind, Value: value}
		if sent.Key() != sameKind.Key() { // keys ignore the case of an e-mail address
			return false
		}
		same++
	}
	return same > 0
}

// provedBy returns the kind of the proved identity, or "".
func provedBy(proved *store.Identity) string {
	if proved == nil {
		return ""
	}
	return proved.Kind
}

func notVerified(field, problem string) error {
	e := apperr.IdentityNotVerified.WithMessage(
		strings.TrimSpace("Identity could not be verified: " + field + " " + problem),
	)
	e.Fields = apperr.Fields{{Name: field, Message: problem}}
	return e
}
