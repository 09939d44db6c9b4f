package signin

import (
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/store"
)

const (
	// issuerTimeout bounds a request to the issuer, and how long a sign-in waits for its endpoints.
	issuerTimeout = 5 * time.Second
	// issuerAnswer bounds its answers: endpoints, tokens and keys have a few kilobytes.
	issuerAnswer = 1 << 20
	// maxDevice bounds the device's cookie in an attempt: a right one has 140 bytes.
	maxDevice = 300
)

// OIDC signs users in with an OpenID Connect issuer (OpenID Connect Core 1.0, authorization code flow with
// PKCE). The users exist already. The issuer proves the e-mail address; the first sign-in binds the user to
// the issuer's subject, see [Service.userOf].
type OIDC struct {
	Issuer, ClientID, ClientSecret string
	Name                           string // label of the button
	RedirectURL                    string

	transport http.RoundTripper // nil: the default

	discovery singleflight.Group // one request for all sign-ins that wait for it
	provider  atomic.Pointer[oidc.Provider]
}

// attempt is the state of a sign-in, which the browser keeps in a cookie while it is at the issuer.
type attempt struct {
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"`

	// Invitation is the token of an invitation that the sign-in accepts; empty: none.
	Invitation string `json:"invitation,omitempty"`
	// Device is the device's cookie, which browsers do not send when the issuer sends them back.
	Device string `json:"device,omitempty"`
}

var errOIDC = apperr.OIDCFailed.New()

// discover fetches the issuer's endpoints, until it succeeds once.
func (o *OIDC) discover(ctx context.Context) (*oidc.Provider, error) {
	if p := o.provider.Load(); p != nil {
		return p, nil
	}
	fetched := o.discovery.DoChan("", func() (any, error) {
		p, err := oidc.NewProvider(o.asking(context.WithoutCancel(ctx)), o.Issuer) // it fetches keys later too
		if err == nil {
			o.provider.Store(p)
		}
		return p, err
	})
	select {
	case found := <-fetched:
		if found.Err != nil {
			return nil, apperr.Unreachable("OIDC issuer", found.Err)
		}
		return found.Val.(*oidc.Provider), nil
	case <-ctx.Done():
		return nil, apperr.Unreachable("OIDC issuer", ctx.Err())
	}
}

// asking returns a context with the client for requests to the issuer.
func (o *OIDC) asking(ctx context.Context) context.Context {
	transport := cmp.Or(o.transport, http.DefaultTransport)
	return oidc.ClientContext(ctx, &http.Client{Timeout: issuerTimeout, Transport: boundedAnswers{transport}})
}

// boundedAnswers cuts answers off at issuerAnswer.
type boundedAnswers struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b boundedAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, issuerAnswer)
	}
	return answer, err
}

func (o *OIDC) client(p *oidc.Provider) *oauth2.Config {
	return &oauth2.Config{
		ClientID:     o.ClientID,
		ClientSecret: o.ClientSecret,
		Endpoint:     p.Endpoint(),
		RedirectURL:  o.RedirectURL,
		Scopes:       []string{oidc.ScopeOpenID, "email"},
	}
}

// Start returns the issuer's URL for the browser, and the attempt to keep until it returns. invitation is the token
// of an invitation to accept, or empty; device is the device's cookie.
func (o *OIDC) Start(ctx context.Context, invitation, device string) (location, keep string, err error) {
	p, err := o.discover(ctx)
	if err != nil {
		return "", "", err
	}
	a := attempt{
		State: account.NewSecret(), Nonce: account.NewSecret(), Verifier: oauth2.GenerateVerifier(),
		Invitation: invitation, Device: device[:min(len(device), maxDevice)],
	}
	kept, err := json.Marshal(a)
	if err != nil {
		return "", "", fmt.Errorf("encoding an attempt: %w", err)
	}
	location = o.client(p).AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier))
	return location, string(kept), nil
}

// identity is what the issuer proves.
type identity struct{ email, issuer, subject string }

// Callback is what the browser brings when the issuer has sent it back.
type Callback struct {
	Kept        string // the attempt
	State, Code string
	Session     string // the secret of the browser's session; empty: none
}

// SignInOIDC starts a session of the user that the issuer has authenticated. Unauthenticated if the response
// is for another browser, is invalid, or names no user with a verified e-mail address. Nothing is counted,
// and the issuer is not asked, unless this browser has started the attempt.
func (s *Service) SignInOIDC(ctx context.Context, o *OIDC, back Callback, from Caller) (Principal, error) {
	var a attempt
	if json.Unmarshal([]byte(back.Kept), &a) != nil || a.State == "" ||
		subtle.ConstantTimeCompare([]byte(a.State), []byte(back.State)) != 1 {
		return Principal{}, errOIDC
	}
	from.Device = cmp.Or(from.Device, a.Device)
	budgets, err := s.issuerBudgets(ctx, from)
	if err != nil {
		return Principal{}, err
	}
	var u account.User
	err = s.attempt(ctx, budgets, func() (err error) {
		u, err = s.authenticateOIDC(ctx, o, a, back, from)
		return err
	})
	if err != nil {
		return Principal{}, err
	}
	if err := s.startBudget(u).take(ctx); err != nil {
		return Principal{}, err
	}
	return s.Begin(ctx, u, from)
}

func (s *Service) authenticateOIDC(
	ctx context.Context, o *OIDC, a attempt, back Callback, from Caller,
) (account.User, error) {
	p, err := o.discover(ctx)
	if err != nil {
		return account.User{}, err
	}
	proven, err := o.redeem(ctx, p, a, back.Code)
	if err != nil {
		return account.User{}, errOIDC.Wrap(err)
	}
	u, err := s.userOf(ctx, proven, a.Invitation, back.Session, from)
	if err == nil {
		u, err = s.Admin.BindIdentity(ctx, u.ID, proven.issuer, proven.subject, a.Invitation)
	}
	if apperr.Is(err, apperr.NotFound) || apperr.Is(err, apperr.Conflict) {
		err = errOIDC.Wrap(err)
	}
	return u, err
}

// userOf returns the user of an identity, in this order:
//
//  1. the user of the opened invitation,
//  2. the user of this browser's session,
//  3. a user already bound to the identity; of several, the user of the known device,
//  4. a user without a bound identity. A company's user with a password is excluded: the company may have set the
//     password for a stranger's address.
func (s *Service) userOf(
	ctx context.Context, proven identity, invitation, session string, from Caller,
) (account.User, error) {
	if invitation != "" {
		u, err := s.Admin.Invited(ctx, invitation)
		if err == nil && u.Email != account.CanonicalEmail(proven.email) {
			err = errOIDC.Wrap(errors.New("the invitation is for another address"))
		}
		return u, err
	}
	users, err := store.UsersByEmail(ctx, s.Store, proven.email)
	if err != nil {
		return account.User{}, err
	}
	users = slices.DeleteFunc(users, func(u account.User) bool { return u.Status() != account.StatusActive })
	if known, device := s.deviceOf(users, from); device != "" {
		users[0], users[known] = users[known], users[0]
	}
	who, err := s.Check(ctx, session)
	if err != nil && !apperr.Is(err, apperr.Unauthenticated) {
		return account.User{}, err
	}
	unbound := func(u account.User) bool { return u.Subject == "" }
	for _, mine := range []func(account.User) bool{
		func(u account.User) bool { return u.ID == who.User.ID },
		func(u account.User) bool { return u.Issuer == proven.issuer && u.Subject == proven.subject },
		func(u account.User) bool { return unbound(u) && (u.CompanyID == "" || u.PasswordHash == "") },
	} {
		if n := slices.IndexFunc(users, mine); n >= 0 {
			return users[n], nil
		}
	}
	return account.User{}, errOIDC.Wrap(errors.New("no user of the address may be bound to the identity"))
}

// redeem exchanges the code for the ID token, and returns what it proves.
func (o *OIDC) redeem(ctx context.Context, p *oidc.Provider, a attempt, code string) (identity, error) {
	token, err := o.client(p).Exchange(o.asking(ctx), code, oauth2.VerifierOption(a.Verifier))
	if err != nil {
		return identity{}, err
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return identity{}, errors.New("the issuer sent no ID token")
	}
	id, err := p.Verifier(&oidc.Config{ClientID: o.ClientID}).Verify(ctx, raw)
	if err != nil {
		return identity{}, err
	}
	if id.Nonce != a.Nonce {
		return identity{}, errors.New("the ID token is for another attempt")
	}
	var claims struct {
		Email    string `json:"email"`
		Verified bool   `json:"email_verified"`
	}
	if err := id.Claims(&claims); err != nil {
		return identity{}, err
	}
	if !claims.Verified || strings.TrimSpace(claims.Email) == "" {
		return identity{}, errors.New("the ID token has no verified e-mail address")
	}
	return identity{email: claims.Email, issuer: id.Issuer, subject: id.Subject}, nil
}
