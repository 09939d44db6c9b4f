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
func (r Form) prove(app chat.Application, now time.Time) (Form, *store.Identity, error) {
	switch {
	case !app.Identity.On():
		return r, nil, nil
	case r.IdentityToken != nil:
		return r.proveByToken(app, now)
	case r.UserHash != nil:
		strongest := r.identities(app.ID)[0]
		if !credential.IsUserHash(app.Identity.Valid(now), strongest.Value, *r.UserHash) {
			return r, nil, notVerified("userHash", "does not prove the "+strongest.Kind)
		}
		strongest.Proved = true
		return r, &strongest, nil
	case app.Identity.Required():
		return r, nil, notVerified("userHash", "or identityToken is required")
	}
	return r, nil, nil
}

func (r Form) proveByToken(app chat.Application, now time.Time) (Form, *store.Identity, error) {
	proved, err := credential.VerifyIdentityToken(app.Identity.Valid(now), *r.IdentityToken, now)
	if err != nil {
		return r, nil, notVerified("identityToken", err.Error())
	}
	claims := map[string]string{
		store.KindUserID: proved.UserID,
		store.KindEmail:  proved.Email,
		store.KindPhone:  proved.Phone,
	}
	for _, sent := range []struct {
		kind  string
		value **string
	}{{store.KindUserID, &r.UserID}, {store.KindEmail, &r.Email}, {store.KindPhone, &r.Phone}} {
		claim := claims[sent.kind]
		switch {
		case claim == "":
		case *sent.value == nil:
			*sent.value = &claim
		case **sent.value != claim:
			return r, nil, notVerified("identityToken", "does not prove the "+sent.kind)
		}
	}
	var faults apperr.Fields
	if r.validateIdentities(&faults); len(faults) > 0 {
		return r, nil, faults.Err()
	}
	strongest := r.identities(app.ID)[0]
	if claims[strongest.Kind] == "" {
		return r, nil, notVerified("identityToken", "does not prove the "+strongest.Kind)
	}
	strongest.Proved = true
	return r, &strongest, nil
}

// identify completes r with the visitor of the form, or with the identities to look up.
func (d *Service) identify(
	ctx context.Context,
	app chat.Application,
	f Form,
	proved *store.Identity,
	r *store.Registration,
) error {
	if proved != nil {
		r.Identities = []store.Identity{*proved}
		return nil
	}
	r.Identities = f.identities(app.ID)
	if !app.Identity.On() {
		return nil
	}
	r.OnlyUnowned = true // an unproved claim to a known identity gives no access to its history
	holder, held, err := d.holder(ctx, app, f)
	if held {
		r.Visitor.ID = holder
	}
	return err
}

// holder returns the visitor of the request's token, if the form names that visitor: a shared browser may
// still have the token of another one. An invalid token counts as none.
func (d *Service) holder(ctx context.Context, app chat.Application, f Form) (chatUserID string, held bool, err error) {
	if f.Token == "" {
		return "", false, nil
	}
	claims, err := d.cfg.Tokens.Verify(ctx, f.Token)
	if apperr.Is(err, apperr.Unauthenticated) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	v, err := d.cfg.Visitors.Visitor(ctx, claims.ChatUserID)
	if apperr.Is(err, apperr.NotFound) {
		return "", false, nil
	}
	return v.ID, err == nil && v.AppID == app.ID && claims.IssuedSince(v.TokensValidFrom) && f.names(v), err
}

// names reports whether the form has an identity of the visitor and none that differs.
func (r Form) names(v chat.Visitor) bool {
	same := 0
	for _, i := range []struct {
		sent  *string
		known string
		kind  string
	}{{r.UserID, v.UserID, store.KindUserID}, {r.Email, v.Email, store.KindEmail}, {r.Phone, v.Phone, store.KindPhone}} {
		switch {
		case i.sent == nil || i.known == "":
		case (store.Identity{Kind: i.kind, Value: *i.sent}).Key() != (store.Identity{Kind: i.kind, Value: i.known}).Key():
			return false
		default:
			same++
		}
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
