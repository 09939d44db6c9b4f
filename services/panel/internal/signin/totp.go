package signin

import (
	"context"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/apperr"
)

const issuer = "Parley"

// OfferTOTP generates a secret for an authenticator app. It is not active until it is confirmed.
func (s *Service) OfferTOTP(ctx context.Context, who Principal, password string, from Caller) (secret, uri string, err error) {
	if err := s.CheckPassword(ctx, who, password, from); err != nil {
		return "", "", err
	}
	secret = account.NewTOTPSecret()
	_, err = s.Admin.UpdateUser(ctx, admin.ActorOf(who.User), "", who.User.ID, func(u *account.User) error { u.TOTPPending = secret; return nil })
	return secret, account.TOTPURI(issuer, who.User.Email, secret), err
}

// ConfirmTOTP makes the offered secret the second factor.
func (s *Service) ConfirmTOTP(ctx context.Context, who Principal, code string) error {
	_, err := s.Admin.UpdateUser(ctx, admin.ActorOf(who.User), "user.totp", who.User.ID, func(u *account.User) error {
		step, ok := account.VerifyTOTP(u.TOTPPending, code, s.Now(), 0)
		if !ok {
			return apperr.UnconfirmedCode.New()
		}
		u.TOTPSecret, u.TOTPPending, u.TOTPStep = u.TOTPPending, "", step
		return nil
	})
	return err
}

// RemoveTOTP removes the second factor.
func (s *Service) RemoveTOTP(ctx context.Context, who Principal, password string, from Caller) error {
	if err := s.CheckPassword(ctx, who, password, from); err != nil {
		return err
	}
	_, err := s.Admin.UpdateUser(ctx, admin.ActorOf(who.User), "user.totp", who.User.ID, func(u *account.User) error {
		u.TOTPSecret, u.TOTPPending = "", ""
		return nil
	})
	return err
}
