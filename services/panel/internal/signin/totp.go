package signin

import (
	"context"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/apperr"
)

const issuer = "Parley"

// Proof is what a signed-in user confirms a change of the second factor with: the password while there is
// none, a one-time code or a recovery code once there is one. A stolen session alone, or with the password,
// does not change a second factor.
type Proof struct{ Password, Code string }

// prove checks a proof and uses up its code. Errors: Invalid with WRONG_PASSWORD or INVALID_CODE, TooMany.
func (s *Service) prove(ctx context.Context, who Principal, p Proof) error {
	switch {
	case who.User.TOTPSecret == "" && p.Password == "":
		return apperr.Fields{{Name: "password", Message: "is required"}}.Err()
	case who.User.TOTPSecret == "":
		return s.confirmPassword(ctx, who.User, p.Password)
	case p.Code == "":
		return apperr.Fields{{Name: "currentCode", Message: "is required"}}.Err()
	}
	return s.attempt(ctx, []budget{s.confirmBudget(who.User)}, func() error {
		_, err := s.spendCode(ctx, who.User, p.Code)
		if apperr.Is(err, apperr.Unauthenticated) { // the session is valid
			err = apperr.UnconfirmedCode.New()
		}
		return err
	})
}

// spendCode uses up a one-time code or a recovery code; INVALID_CODE if it is neither. Each is valid once,
// also on two replicas at the same time.
func (s *Service) spendCode(ctx context.Context, u account.User, code string) (account.User, error) {
	recovered := false
	changed, err := s.Admin.UpdateUser(ctx, admin.ActorOf(u), "", u.ID, func(u *account.User) error {
		if step, ok := account.VerifyTOTP(u.TOTPSecret, code, s.Now(), u.TOTPStep); ok {
			u.TOTPStep = step
			return nil
		}
		left, ok := account.SpendRecoveryCode(u.RecoveryCodes, code)
		if !ok || u.TOTPSecret == "" {
			return errCode
		}
		u.RecoveryCodes, recovered = left, true
		return nil
	})
	if err != nil || !recovered {
		return changed, err
	}
	return changed, s.Admin.Note(ctx, admin.ActorOf(u), "user.recovery-code", changed)
}

// OfferTOTP generates a secret for an authenticator app. It is not active until it is confirmed.
func (s *Service) OfferTOTP(ctx context.Context, who Principal, p Proof) (secret, uri string, err error) {
	if err := s.prove(ctx, who, p); err != nil {
		return "", "", err
	}
	secret = account.NewTOTPSecret()
	_, err = s.Admin.UpdateUser(ctx, admin.ActorOf(who.User), "", who.User.ID, func(u *account.User) error {
		u.TOTPPending = secret
		return nil
	})
	return secret, account.TOTPURI(issuer, who.User.Email, secret), err
}

// ConfirmTOTP makes the offered secret the second factor and returns new recovery codes. INVALID_CODE unless
// code is one of the offered secret.
func (s *Service) ConfirmTOTP(ctx context.Context, who Principal, p Proof, code string) (recovery []string, err error) {
	if err := s.prove(ctx, who, p); err != nil {
		return nil, err
	}
	codes, hashes := account.NewRecoveryCodes()
	_, err = s.Admin.UpdateUser(ctx, admin.ActorOf(who.User), "user.totp", who.User.ID, func(u *account.User) error {
		step, ok := account.VerifyTOTP(u.TOTPPending, code, s.Now(), 0)
		if !ok {
			return apperr.UnconfirmedCode.New()
		}
		u.TOTPSecret = u.TOTPPending
		u.TOTPPending = "" // after it is the secret
		u.TOTPStep = step
		u.RecoveryCodes = hashes
		return nil
	})
	return codes, err
}

// RenewRecoveryCodes replaces the recovery codes. Conflict with TOTP_NOT_SET without a second factor.
func (s *Service) RenewRecoveryCodes(ctx context.Context, who Principal, p Proof) (recovery []string, err error) {
	if who.User.TOTPSecret == "" {
		return nil, apperr.TOTPNotSet.New()
	}
	if err := s.prove(ctx, who, p); err != nil {
		return nil, err
	}
	codes, hashes := account.NewRecoveryCodes()
	_, err = s.Admin.UpdateUser(
		ctx,
		admin.ActorOf(who.User),
		"user.recovery-codes",
		who.User.ID,
		func(u *account.User) error {
			if u.TOTPSecret == "" {
				return apperr.TOTPNotSet.New()
			}
			u.RecoveryCodes = hashes
			return nil
		},
	)
	return codes, err
}

// RemoveTOTP removes the second factor.
func (s *Service) RemoveTOTP(ctx context.Context, who Principal, p Proof) error {
	if err := s.prove(ctx, who, p); err != nil {
		return err
	}
	_, err := s.Admin.UpdateUser(ctx, admin.ActorOf(who.User), "user.totp", who.User.ID, func(u *account.User) error {
		u.RemoveTOTP()
		return nil
	})
	return err
}
