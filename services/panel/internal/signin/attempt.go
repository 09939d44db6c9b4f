package signin

import (
	"context"
	"fmt"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/ratelimit"
)

// attemptsAtOnce limits the attempts of a replica that check a password. It equals the number of passwords
// that are hashed at once, so it delays nobody. An attempt holds its permits until it ends, so that few
// permits of an address are held by right passwords.
const attemptsAtOnce = 2

// budget is a number of failures that one caller may have.
type budget struct {
	limiter *ratelimit.Limiter // nil: no limit
	caller  string
}

// strangersBudgets returns what a failed sign-in on an unknown device counts against: its address, its site, which
// has many addresses with IPv6 and each buys more guesses, and the e-mail address.
func (s *Service) strangersBudgets(email string, from Caller) []budget {
	return []budget{
		{s.ByAddress, from.Address},
		{s.ByAccount, "site|" + event.SiteOf(from.Address)},
		{s.ByAccount, account.UserID(email)},
	}
}

// deviceBudgets returns what a failed sign-in counts against on a device that the user has signed in on before:
// itself and all such devices of the user. So strangers who know the user's e-mail address cannot keep the user
// out, and more devices do not buy more guesses.
func (s *Service) deviceBudgets(u account.User, device string) []budget {
	return []budget{{s.ByAddress, "device|" + device}, {s.ByAccount, "devices|" + u.ID}}
}

// issuerBudgets is the same for a sign-in with the issuer, whose user is not known before the issuer has answered:
// the device's cookie names its user.
func (s *Service) issuerBudgets(ctx context.Context, from Caller) ([]budget, error) {
	strangers := []budget{{s.ByAddress, "oidc|" + from.Address}}
	owner := account.DeviceOwner(from.Device)
	if owner == "" {
		return strangers, nil
	}
	u, err := s.Store.User(ctx, owner)
	if err != nil {
		return strangers, exceptNotFound(err)
	}
	device, known := u.VerifyDevice(from.Device, s.Now())
	if !known {
		return strangers, nil
	}
	return []budget{{s.ByAddress, "oidc-device|" + device}, {s.ByAccount, "oidc-devices|" + u.ID}}, nil
}

// exceptNotFound returns the error unless something was not found.
func exceptNotFound(err error) error {
	if apperr.Is(err, apperr.NotFound) {
		return nil
	}
	return err
}

// confirmBudget is for what a signed-in user confirms with a password or a code. Sign-ins of strangers do not
// use it up.
func (s *Service) confirmBudget(u account.User) budget { return budget{s.ByAccount, "confirm|" + u.ID} }

// startBudget is for sign-ins that have proven a password or an identity, each of which is hashed or noted.
func (s *Service) startBudget(u account.User) budget { return budget{s.Starts, u.ID} }

// attempt runs try unless a budget is used up. A permit of each is taken first, so that concurrent attempts
// do not exceed the budget, and returned unless try has failed because of what the caller sent.
func (s *Service) attempt(ctx context.Context, budgets []budget, try func() error) error {
	for n, b := range budgets {
		if err := b.take(ctx); err != nil {
			giveBack(budgets[:n])
			return err
		}
	}
	err := try()
	if !wrongGuess(err) {
		giveBack(budgets)
	}
	return err
}

// checkPassword is attempt for a try that hashes a password.
func (s *Service) checkPassword(ctx context.Context, budgets []budget, try func() error) error {
	select {
	case s.attempts <- struct{}{}:
		defer func() { <-s.attempts }()
	case <-ctx.Done():
		return apperr.Unreachable("password check", fmt.Errorf("waiting for other sign-ins: %w", ctx.Err()))
	}
	return s.attempt(ctx, budgets, try)
}

func (b budget) take(ctx context.Context) error {
	d := ratelimit.Decision{Allowed: true}
	if b.limiter != nil {
		d = b.limiter.Take(ctx, b.caller)
	}
	if d.Allowed {
		return nil
	}
	limited := apperr.TooManyRequests.WithMessage("Too many attempts. Try again later.")
	limited.RetryAfter = d.Wait
	return limited
}

func giveBack(budgets []budget) {
	for _, b := range budgets {
		b.limiter.Return(b.caller)
	}
}

// wrongGuess reports whether a try failed because a password, a code or a token is wrong. A right password
// without its one-time code is the first half of a sign-in.
func wrongGuess(err error) bool {
	switch apperr.ReasonOf(err) {
	case apperr.InvalidCredentials.Reason,
		apperr.InvalidCode.Reason,
		apperr.WrongPassword.Reason,
		apperr.InvitationNotFound.Reason,
		apperr.OIDCFailed.Reason:
		return true
	}
	return false
}
