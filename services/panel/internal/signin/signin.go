// Package signin authenticates users: sign-in with a password and a one-time code, sessions, and their end.
//
// Every sign-in and password change starts a session with a new secret, against session fixation. Only
// failures count against limits, and each kind of attempt has its own (attempt.go): after too many wrong
// passwords the right one is refused too, except from a device on which the user has signed in before.
package signin

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/ratelimit"
	"github.com/parley-chat/parley/pkg/store"
)

const (
	// seenInterval is the resolution of a session's last use.
	seenInterval = time.Minute
	// maxSessions is the maximum number of sessions of a user: far more than anybody's browsers.
	maxSessions = 50
)

// Store stores users and sessions.
type Store interface {
	User(ctx context.Context, id string) (account.User, error)
	Session(ctx context.Context, id string) (account.Session, error)
	CreateSession(ctx context.Context, s account.Session) error
	SessionUsed(ctx context.Context, id string, at, expiresAt time.Time) error
	UserSessions(ctx context.Context, userID string, p store.Page) ([]account.Session, error)
	DeleteSessions(ctx context.Context, of store.SessionFilter) error
}

// Config holds the dependencies of a [Service].
type Config struct {
	Store     Store
	Admin     *admin.Service
	ByAddress *ratelimit.Limiter // failures from one address, or from one known device; nil: no limit
	ByAccount *ratelimit.Limiter // failures for one e-mail address, or one invitation; nil: no limit
	Starts    *ratelimit.Limiter // right passwords and sign-ins with the issuer of one user; nil: no limit
	Logger    *slog.Logger
	Now       func() time.Time
}

// Service signs users in and out.
type Service struct {
	Config
	attempts chan struct{} // one element for each attempt that checks a password
}

// New returns a service.
func New(cfg Config) *Service {
	return &Service{Config: cfg, attempts: make(chan struct{}, attemptsAtOnce)}
}

// Caller is the origin of a request.
type Caller struct {
	Address, UserAgent string
	Device             string // the device's cookie; see [account.NewDevice]
}

// Principal is a user with a valid session.
type Principal struct {
	User    account.User
	Session account.Session
	Secret  string // the cookie's value
	Device  string // the cookie of the device, after a sign-in
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
	u, err := s.authenticate(ctx, c, from)
	if err != nil {
		return Principal{}, err
	}
	return s.Begin(ctx, u, from)
}

// authenticate returns the user of an address with a matching password. It first tries the user of the known device
// and counts a failure against the device. Then it tries the other users, as from an unknown device.
func (s *Service) authenticate(ctx context.Context, c Credentials, from Caller) (account.User, error) {
	users, err := store.UsersByEmail(ctx, s.Store, c.Email)
	if err != nil {
		return account.User{}, err
	}
	strangers := s.strangersBudgets(c.Email, from)
	known, device := s.deviceOf(users, from)
	if device == "" {
		return s.tryPassword(ctx, strangers, users, c, from)
	}
	u, err := s.tryPassword(ctx, s.deviceBudgets(users[known], device), users[known:known+1], c, from)
	if apperr.ReasonOf(err) != apperr.InvalidCredentials.Reason {
		return u, err
	}
	others := slices.Delete(users, known, known+1)
	if len(others) == 0 {
		_, failed := account.VerifyPasswords(ctx, c.Password) // as long as with others
		return u, cmp.Or(failed, err)
	}
	other, failed := s.tryPassword(ctx, strangers, others, c, from)
	if apperr.Is(failed, apperr.TooMany) { // which strangers have caused
		return u, err
	}
	return other, failed
}

// deviceOf returns the index of the user with a sign-in on the device, and the device's id; "" if there is none.
func (s *Service) deviceOf(users []account.User, from Caller) (known int, device string) {
	for n, u := range users {
		if id, ok := u.VerifyDevice(from.Device, s.Now()); ok {
			return n, id
		}
	}
	return 0, ""
}

// tryPassword returns the first user with a matching password, and uses up the one-time code. It takes the same time
// for any number of users, also for none.
func (s *Service) tryPassword(
	ctx context.Context, budgets []budget, users []account.User, c Credentials, from Caller,
) (u account.User, err error) {
	err = s.checkPassword(ctx, budgets, func() error {
		right, err := s.verifyPassword(ctx, users, c.Password)
		if err != nil {
			return err
		}
		for n := range users {
			if right[n] && users[n].Status() == account.StatusActive {
				u, err = s.checkCode(ctx, users[n], c.Code)
				return err
			}
		}
		s.Logger.InfoContext(ctx, "sign-in refused", "address", from.Address)
		return errCredentials
	})
	return u, err
}

// verifyPassword reports for each user whether the password is right, which uses up one of the user's Starts, also if
// a one-time code is missing. A user without any left is not tried, so that a right password does not hash for ever.
// The error is TooMany if that is so for all users.
func (s *Service) verifyPassword(ctx context.Context, users []account.User, password string) ([]bool, error) {
	right := make([]bool, len(users))
	var tried []int // indexes of users
	var hashes []string
	var limited error
	for n, u := range users {
		if err := s.startBudget(u).take(ctx); err != nil {
			limited = err
			continue
		}
		tried, hashes = append(tried, n), append(hashes, u.PasswordHash)
	}
	if len(tried) == 0 && limited != nil {
		return nil, limited
	}
	verified, err := account.VerifyPasswords(ctx, password, hashes...)
	for i, n := range tried {
		if right[n] = err == nil && verified[i]; !right[n] {
			giveBack([]budget{s.startBudget(users[n])})
		}
	}
	return right, err
}

// checkCode uses up the one-time code of a user whose password was right.
func (s *Service) checkCode(ctx context.Context, u account.User, code string) (account.User, error) {
	switch {
	case u.TOTPSecret == "":
		return u, nil
	case code == "":
		return u, errCodeRequired
	}
	return s.spendCode(ctx, u, code)
}

// Begin starts a session of an authenticated user. Beyond maxSessions the user's oldest one ends.
func (s *Service) Begin(ctx context.Context, u account.User, from Caller) (Principal, error) {
	if u.Status() != account.StatusActive {
		return Principal{}, errCredentials
	}
	now := s.Now()
	const maxUserAgent = 300
	userAgent := from.UserAgent[:min(len(from.UserAgent), maxUserAgent)]
	secret, session := account.NewSession(u.ID, from.Address, userAgent, now)
	if err := s.Store.CreateSession(ctx, session); err != nil {
		return Principal{}, err
	}
	if err := s.endOldest(ctx, u.ID); err != nil {
		return Principal{}, err
	}
	u, err := s.Admin.UpdateUser(ctx, admin.ActorOf(u), "", u.ID, func(u *account.User) error {
		u.LastSignInAt = now
		if u.DeviceKey == "" {
			u.DeviceKey = account.NewSecret()
		}
		return nil
	})
	if err != nil {
		return Principal{}, err
	}
	began := Principal{User: u, Session: session, Secret: secret, Device: u.NewDevice(now)}
	return began, s.Admin.Note(ctx, admin.ActorOf(u), "user.sign-in", u)
}

// endOldest ends the oldest sessions of a user that has more than maxSessions.
func (s *Service) endOldest(ctx context.Context, userID string) error {
	sessions, err := s.Store.UserSessions(ctx, userID, store.Page{Limit: maxSessions + 1})
	if err != nil {
		return err
	}
	for _, oldest := range sessions[:max(len(sessions)-maxSessions, 0)] {
		if err := s.Store.DeleteSessions(ctx, store.SessionFilter{ID: oldest.ID}); err != nil {
			return err
		}
	}
	return nil
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
func (s *Service) End(ctx context.Context, id string) error {
	return s.Store.DeleteSessions(ctx, store.SessionFilter{ID: id})
}

// ChangePassword replaces the password, ends all sessions and starts a new one. WRONG_PASSWORD if current is
// not the password.
func (s *Service) ChangePassword(
	ctx context.Context,
	who Principal,
	current, fresh string,
	from Caller,
) (Principal, error) {
	if err := s.confirmPassword(ctx, who.User, current); err != nil {
		return Principal{}, err
	}
	u, err := s.Admin.SetPassword(ctx, admin.ActorOf(who.User), who.User.ID, "new", fresh)
	if err != nil {
		return Principal{}, err
	}
	return s.Begin(ctx, u, from)
}

// confirmPassword returns WRONG_PASSWORD unless it is the user's password.
func (s *Service) confirmPassword(ctx context.Context, u account.User, password string) error {
	return s.checkPassword(ctx, []budget{s.confirmBudget(u)}, func() error {
		right, err := account.VerifyPassword(ctx, password, u.PasswordHash)
		if err == nil && !right {
			err = apperr.WrongPassword.New()
		}
		return err
	})
}

// Invited returns the user of an invitation's token. Wrong tokens count against the address; a right one is
// never refused for them.
func (s *Service) Invited(ctx context.Context, token string, from Caller) (account.User, error) {
	u, err := s.Admin.Invited(ctx, token)
	if !wrongGuess(err) {
		return u, err
	}
	return u, s.attempt(ctx, []budget{{s.ByAddress, "invitation|" + from.Address}}, func() error { return err })
}

// AcceptInvitation sets an invited user's password and starts a session. The attempts with one token are
// limited, since each hashes a password.
func (s *Service) AcceptInvitation(ctx context.Context, token, name, password string, from Caller) (Principal, error) {
	if _, err := s.Invited(ctx, token, from); err != nil {
		return Principal{}, err
	}
	var u account.User
	err := s.checkPassword(ctx, []budget{{s.ByAccount, "invitation|" + account.HashSecret(token)}}, func() (err error) {
		u, err = s.Admin.AcceptInvitation(ctx, token, name, password)
		return err
	})
	if err != nil {
		return Principal{}, err
	}
	return s.Begin(ctx, u, from)
}
