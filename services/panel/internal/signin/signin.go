// Package signin authenticates users: sign-in with a password and a one-time code, sessions, and their end.
//
// Every sign-in and password change starts a session with a new secret, against session fixation. An attempt counts against its
// limits before the password is checked: after too many wrong guesses the right password is refused too.
package signin

import (
	"context"
	"log/slog"
	"time"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/ratelimit"
)

// seenInterval is the resolution of a session's last use.
const seenInterval = time.Minute

// Store stores users and sessions.
type Store interface {
	User(ctx context.Context, id string) (account.User, error)
	Session(ctx context.Context, id string) (account.Session, error)
	CreateSession(ctx context.Context, s account.Session) error
	SessionUsed(ctx context.Context, id string, at, expiresAt time.Time) error
	UserSessions(ctx context.Context, userID string) ([]account.Session, error)
	DeleteSession(ctx context.Context, id string) error
	DeleteUserSessions(ctx context.Context, userID, keepID string) error
}

// Config holds the dependencies of a [Service].
type Config struct {
	Store     Store
	Admin     *admin.Service
	ByAddress *ratelimit.Limiter // attempts from one address; nil: no limit
	ByAccount *ratelimit.Limiter // attempts for one e-mail address; nil: no limit
	Logger    *slog.Logger
	Now       func() time.Time
}

// Service signs users in and out.
type Service struct{ Config }

// New returns a service.
func New(cfg Config) *Service { return &Service{cfg} }

// Caller is the origin of a request.
type Caller struct{ Address, UserAgent string }

// Principal is a user with a valid session.
type Principal struct {
	User    account.User
	Session account.Session
	Secret  string // the cookie's value
}

// Credentials are the input of a sign-in.
type Credentials struct{ Email, Password, Code string }

var (
	errCredentials  = apperr.InvalidCredentials.New()
	errCodeRequired = apperr.TOTPRequired.New()
	errCode         = apperr.InvalidCode.New()
	errSession      = apperr.Unauthorized.WithMessage("Sign in")
)

// SignIn starts a session. Errors: Unauthenticated with INVALID_CREDENTIALS, TOTP_REQUIRED or INVALID_CODE; TooMany.
func (s *Service) SignIn(ctx context.Context, c Credentials, from Caller) (Principal, error) {
	id := account.UserID(c.Email)
	if err := s.admit(ctx, from.Address, id); err != nil {
		return Principal{}, err
	}
	u, err := s.Store.User(ctx, id)
	if err != nil && !apperr.Is(err, apperr.NotFound) {
		return Principal{}, err
	}
	right, failed := account.VerifyPassword(ctx, c.Password, u.PasswordHash)
	switch {
	case failed != nil:
		return Principal{}, failed
	case err != nil || !right || u.Status() != account.StatusActive:
		s.Logger.InfoContext(ctx, "sign-in refused", "address", from.Address)
		return Principal{}, errCredentials
	case u.TOTPSecret != "" && c.Code == "":
		return Principal{}, errCodeRequired
	}
	if u, err = s.spendCode(ctx, u, c.Code); err != nil {
		return Principal{}, err
	}
	return s.Begin(ctx, u, from)
}

func (s *Service) admit(ctx context.Context, address, userID string) error {
	for _, limit := range []struct {
		limiter *ratelimit.Limiter
		caller  string
	}{{s.ByAddress, address}, {s.ByAccount, userID}} {
		if limit.limiter == nil {
			continue
		}
		if d := limit.limiter.Take(ctx, limit.caller); !d.Allowed {
			limited := apperr.TooManyRequests.WithMessage("Too many attempts. Try again later.")
			limited.RetryAfter = d.Wait
			return limited
		}
	}
	return nil
}

// spendCode uses up the one-time code of a user with a second factor. A code is valid once, also on two replicas at the same
// time.
func (s *Service) spendCode(ctx context.Context, u account.User, code string) (account.User, error) {
	if u.TOTPSecret == "" {
		return u, nil
	}
	return s.Admin.UpdateUser(ctx, admin.ActorOf(u), "", u.ID, func(u *account.User) error {
		step, ok := account.VerifyTOTP(u.TOTPSecret, code, s.Now(), u.TOTPStep)
		if !ok {
			return errCode
		}
		u.TOTPStep = step
		return nil
	})
}

// Begin starts a session of an authenticated user.
func (s *Service) Begin(ctx context.Context, u account.User, from Caller) (Principal, error) {
	if u.Status() != account.StatusActive {
		return Principal{}, errCredentials
	}
	now := s.Now()
	const maxUserAgent = 300
	secret, session := account.NewSession(u.ID, from.Address, from.UserAgent[:min(len(from.UserAgent), maxUserAgent)], now)
	if err := s.Store.CreateSession(ctx, session); err != nil {
		return Principal{}, err
	}
	u, err := s.Admin.UpdateUser(ctx, admin.ActorOf(u), "", u.ID, func(u *account.User) error { u.LastSignInAt = now; return nil })
	if err != nil {
		return Principal{}, err
	}
	return Principal{User: u, Session: session, Secret: secret}, s.Admin.Note(ctx, admin.ActorOf(u), "user.sign-in", u)
}

// Check returns the user of the session with that secret; Unauthenticated if it is not valid.
func (s *Service) Check(ctx context.Context, secret string) (Principal, error) {
	if secret == "" {
		return Principal{}, errSession
	}
	session, err := s.Store.Session(ctx, account.HashSecret(secret))
	now := s.Now()
	switch {
	case apperr.Is(err, apperr.NotFound), err == nil && !session.Valid(now):
		return Principal{}, errSession
	case err != nil:
		return Principal{}, err
	}
	u, err := s.Store.User(ctx, session.UserID)
	switch {
	case apperr.Is(err, apperr.NotFound), err == nil && u.Disabled:
		return Principal{}, errSession
	case err != nil:
		return Principal{}, err
	}
	return Principal{User: u, Session: session, Secret: secret}, nil
}

// Resume is Check that also extends the session.
func (s *Service) Resume(ctx context.Context, secret string) (Principal, error) {
	who, err := s.Check(ctx, secret)
	now := s.Now()
	if err != nil || now.Sub(who.Session.LastSeenAt) < seenInterval {
		return who, err
	}
	who.Session.LastSeenAt, who.Session.ExpiresAt = now, who.Session.Extended(now)
	err = s.Store.SessionUsed(ctx, who.Session.ID, who.Session.LastSeenAt, who.Session.ExpiresAt)
	if apperr.Is(err, apperr.NotFound) {
		err = errSession
	}
	return who, err
}

// End ends one session.
func (s *Service) End(ctx context.Context, id string) error { return s.Store.DeleteSession(ctx, id) }

// CheckPassword returns WRONG_PASSWORD unless it is the user's. Attempts count as sign-ins.
func (s *Service) CheckPassword(ctx context.Context, who Principal, password string, from Caller) error {
	if err := s.admit(ctx, from.Address, who.User.ID); err != nil {
		return err
	}
	right, err := account.VerifyPassword(ctx, password, who.User.PasswordHash)
	if err == nil && !right {
		err = apperr.WrongPassword.New()
	}
	return err
}

// ChangePassword replaces the password, ends all sessions and starts a new one.
func (s *Service) ChangePassword(ctx context.Context, who Principal, current, fresh string, from Caller) (Principal, error) {
	if err := s.CheckPassword(ctx, who, current, from); err != nil {
		return Principal{}, err
	}
	u, err := s.Admin.SetPassword(ctx, admin.ActorOf(who.User), who.User.ID, "new", fresh)
	if err != nil {
		return Principal{}, err
	}
	return s.Begin(ctx, u, from)
}

// AcceptInvitation sets an invited user's password and starts a session.
func (s *Service) AcceptInvitation(ctx context.Context, token, name, password string, from Caller) (Principal, error) {
	if err := s.admit(ctx, from.Address, "invitation"); err != nil {
		return Principal{}, err
	}
	u, err := s.Admin.AcceptInvitation(ctx, token, name, password)
	if err != nil {
		return Principal{}, err
	}
	return s.Begin(ctx, u, from)
}
