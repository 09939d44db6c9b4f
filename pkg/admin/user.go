package admin

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/store"
)

// MaxUsers is the maximum number of users of a company, disabled and invited ones included. All are read when
// one is added, or loses the permission to manage users.
const MaxUsers = 500

// ErrLastOwner is returned for a change that would leave a company, or the installation, without an active user with
// permission to manage users.
var ErrLastOwner = apperr.LastOwner.New()

func userFields(u account.User) fields {
	return fields{"email": u.Email, "name": u.Name, "role": u.Role, "status": u.Status(), "totp": u.TOTPSecret != ""}
}

// CreateUser adds a user with a password, and returns the user with its id. Errors: Invalid; NotFound; Conflict
// with the reason EMAIL_TAKEN or TOO_MANY_USERS.
func (s *Service) CreateUser(ctx context.Context, by Actor, u account.User, password string) (account.User, error) {
	if err := u.Check(); err != nil {
		return u, err
	}
	hash, err := s.hashPassword(ctx, u, "password", password)
	if err != nil {
		return u, err
	}
	u.PasswordHash = hash
	return s.createUser(ctx, by, "user.create", u)
}

// hashPassword returns the hash of a user's new password; field is its name in the error of an unfit one.
func (s *Service) hashPassword(ctx context.Context, u account.User, field, password string) (string, error) {
	if err := account.CheckPassword(field, password); err != nil {
		return "", err
	}
	namesakes, err := store.UsersByEmail(ctx, s.store, u.Email)
	if err != nil {
		return "", err
	}
	var others []string
	for _, other := range namesakes {
		if other.CompanyID != u.CompanyID {
			others = append(others, other.PasswordHash)
		}
	}
	return account.HashPassword(ctx, password, others...)
}

func (s *Service) createUser(ctx context.Context, by Actor, action string, u account.User) (account.User, error) {
	if err := u.Check(); err != nil {
		return u, err
	}
	if u.CompanyID != "" {
		if err := s.admitUser(ctx, u.CompanyID); err != nil {
			return u, err
		}
	}
	u, err := s.insertUser(ctx, u)
	if err != nil {
		return u, err
	}
	created := change{companyID: u.CompanyID, action: action, target: "user", id: u.ID, after: userFields(u)}
	return u, s.audit(ctx, by, created)
}

// insertUser adds a user in the first free slot of the address. An address has one user of each company, so that
// no company keeps another one's people out. EMAIL_TAKEN if the user's own company has the address, or if there
// is no free slot.
func (s *Service) insertUser(ctx context.Context, u account.User) (account.User, error) {
	for range account.Slots {
		namesakes, err := store.UsersByEmail(ctx, s.store, u.Email)
		if err != nil {
			return u, err
		}
		taken := map[string]bool{}
		for _, other := range namesakes {
			if other.CompanyID == u.CompanyID {
				return u, apperr.EmailTaken.New()
			}
			taken[other.ID] = true
		}
		ids := account.UserIDs(u.Email)
		free := ids[1:]
		if u.CompanyID == "" { // an operator
			free = ids[:1]
		}
		slot := slices.IndexFunc(free, func(id string) bool { return !taken[id] })
		if slot < 0 {
			return u, apperr.EmailTaken.New()
		}
		u.ID = free[slot]
		err = s.store.CreateUser(ctx, u)
		if apperr.ReasonOf(err) != apperr.EmailTaken.Reason { // else taken meanwhile
			return u, err
		}
	}
	return u, apperr.EmailTaken.New()
}

// admitUser returns NotFound if there is no such company, and Conflict with the reason TOO_MANY_USERS if it
// has MaxUsers.
func (s *Service) admitUser(ctx context.Context, companyID string) error {
	if _, err := s.store.Company(ctx, companyID); err != nil {
		return err
	}
	existing, err := s.store.Users(ctx, companyID, store.Page{Limit: MaxUsers})
	if err != nil {
		return err
	}
	if len(existing) >= MaxUsers {
		return apperr.TooManyUsers.New()
	}
	return nil
}

// InviteUser adds a user without a password, and returns the user with its id and the invitation's token. Errors:
// as [Service.CreateUser].
func (s *Service) InviteUser(
	ctx context.Context, by Actor, u account.User,
) (invited account.User, token string, err error) {
	secret := account.NewSecret()
	u.InvitationHash, u.InvitationExpiresAt = account.HashSecret(secret), s.now().Add(account.InvitationTTL)
	if u, err = s.createUser(ctx, by, "user.invite", u); err != nil {
		return u, "", err
	}
	return u, u.ID + "." + secret, nil
}

// RenewInvitation replaces a user's open invitation. It returns Conflict with the reason NOT_INVITED if the user has
// accepted one.
func (s *Service) RenewInvitation(ctx context.Context, by Actor, id string) (u account.User, token string, err error) {
	secret := account.NewSecret()
	u, err = s.UpdateUser(ctx, by, "user.invite", id, func(u *account.User) error {
		if u.InvitationHash == "" {
			return apperr.NotInvited.New()
		}
		u.InvitationHash, u.InvitationExpiresAt = account.HashSecret(secret), s.now().Add(account.InvitationTTL)
		return nil
	})
	return u, u.ID + "." + secret, err
}

// Invited returns the user of an invitation's token. It returns NotFound if the token is wrong, used or expired.
func (s *Service) Invited(ctx context.Context, token string) (account.User, error) {
	id, _, _ := strings.Cut(token, ".")
	u, err := s.store.User(ctx, id)
	if err != nil && !apperr.Is(err, apperr.NotFound) {
		return u, err
	}
	if err != nil || !s.invites(token, u) {
		return account.User{}, apperr.InvitationNotFound.New()
	}
	return u, nil
}

// invites reports whether the token is that of the user's open invitation.
func (s *Service) invites(token string, u account.User) bool {
	_, secret, _ := strings.Cut(token, ".")
	return u.Invited(s.now()) && account.SameSecret(secret, u.InvitationHash)
}

// AcceptInvitation sets the invited user's name and password.
func (s *Service) AcceptInvitation(ctx context.Context, token, name, password string) (account.User, error) {
	u, err := s.Invited(ctx, token)
	if err != nil {
		return u, err
	}
	hash, err := s.hashPassword(ctx, u, "password", password)
	if err != nil {
		return u, err
	}
	return s.UpdateUser(ctx, ActorOf(u), "user.accept", u.ID, func(u *account.User) error {
		if !s.invites(token, *u) {
			return apperr.InvitationNotFound.New()
		}
		name = strings.TrimSpace(name)
		if name != "" {
			u.Name = name
		}
		u.PasswordHash = hash
		endInvitation(u)
		return u.Check()
	})
}

// endInvitation ends the user's invitation: its link no longer works.
func endInvitation(u *account.User) {
	u.InvitationHash = ""
	u.InvitationExpiresAt = time.Time{}
}

// BindIdentity binds a user to the subject of an OpenID Connect issuer that has proven the user's e-mail address.
// An open invitation is accepted only with its token, because the inviter chooses the company. Errors: NotFound;
// Conflict with IDENTITY_BOUND if the user is bound to another subject; NotFound with INVITATION_NOT_FOUND.
func (s *Service) BindIdentity(ctx context.Context, id, issuer, subject, invitation string) (account.User, error) {
	u, err := s.store.User(ctx, id)
	if err != nil {
		return u, err
	}
	action := "user.bind"
	if u.Status() == account.StatusInvited {
		action = "user.accept"
	}
	return s.UpdateUser(ctx, ActorOf(u), action, id, func(u *account.User) error {
		if u.Subject != "" && (u.Subject != subject || u.Issuer != issuer) {
			return apperr.IdentityBound.New()
		}
		if u.Status() == account.StatusInvited && !s.invites(invitation, *u) {
			return apperr.InvitationNotFound.New()
		}
		if !u.Disabled {
			u.Issuer = issuer
			u.Subject = subject
			endInvitation(u)
		}
		return nil
	})
}

// UnbindIdentity forgets which identity at the issuer is the user's, and ends all sessions: the next sign-in
// there with the user's address binds another one. Conflict with IDENTITY_NOT_BOUND if there is none.
func (s *Service) UnbindIdentity(ctx context.Context, by Actor, id string) (account.User, error) {
	u, err := s.UpdateUser(ctx, by, "user.unbind", id, func(u *account.User) error {
		if u.Subject == "" {
			return apperr.IdentityNotBound.New()
		}
		u.Issuer = ""
		u.Subject = ""
		u.DeviceKey = ""
		return nil
	})
	if err != nil {
		return u, err
	}
	return u, s.store.DeleteSessions(ctx, store.SessionFilter{UserID: id})
}

// updates limits the retries of a change that conflicts with concurrent changes.
const updates = 8

// UpdateUser reads a user, applies edit and writes the result; it retries after a concurrent change.
func (s *Service) UpdateUser(
	ctx context.Context,
	by Actor,
	action, id string,
	edit func(*account.User) error,
) (account.User, error) {
	for try := 0; ; try++ {
		u, err := s.store.User(ctx, id)
		if err != nil {
			return u, err
		}
		before := u
		if err := edit(&u); err != nil {
			return before, err
		}
		if u == before {
			return u, nil
		}
		err = s.store.UpdateUser(ctx, u)
		if apperr.Is(err, apperr.Conflict) && try < updates {
			continue
		}
		if err != nil {
			return before, err
		}
		u.Revision++
		if action == "" { // such as the time of the last sign-in
			return u, nil
		}
		return u, s.audit(ctx, by, change{
			companyID: u.CompanyID,
			action:    action,
			target:    "user",
			id:        u.ID,
			before:    userFields(before),
			after:     userFields(u),
			hidden:    true,
		})
	}
}

// UserChange lists changes of a user; nil leaves a field unchanged.
type UserChange struct {
	Name     *string       `json:"name"`
	Role     *account.Role `json:"role"`
	Disabled *bool         `json:"disabled"` // whether the user may not sign in
}

// EditUser changes a user. Disabling a user ends all of their sessions.
func (s *Service) EditUser(ctx context.Context, by Actor, id string, c UserChange) (account.User, error) {
	u, err := s.UpdateUser(ctx, by, "user.update", id, func(u *account.User) error {
		before := *u
		if c.Name != nil {
			u.Name = strings.TrimSpace(*c.Name)
		}
		set(&u.Role, c.Role)
		set(&u.Disabled, c.Disabled)
		if u.Disabled {
			u.DeviceKey = ""
		}
		if err := u.Check(); err != nil {
			return err
		}
		if manages(before) && !manages(*u) {
			return s.anotherManages(ctx, before)
		}
		return nil
	})
	if err == nil && u.Disabled {
		err = s.store.DeleteSessions(ctx, store.SessionFilter{UserID: u.ID})
	}
	return u, err
}

// manages reports whether a user can sign in and manage the users of the company, or of the installation.
func manages(u account.User) bool {
	return u.Status() == account.StatusActive && (u.Role == account.Owner || u.Role == account.Operator)
}

func (s *Service) anotherManages(ctx context.Context, u account.User) error {
	list := func(ctx context.Context, p store.Page) ([]account.User, error) {
		return s.store.Users(ctx, u.CompanyID, p)
	}
	for other, err := range store.All(ctx, list, func(u account.User) string { return u.ID }) {
		if err != nil {
			return err
		}
		if other.ID != u.ID && other.CompanyID == u.CompanyID && manages(other) {
			return nil
		}
	}
	return ErrLastOwner
}

// DeleteUser removes a user and ends all of their sessions.
func (s *Service) DeleteUser(ctx context.Context, by Actor, id string) error {
	u, err := s.store.User(ctx, id)
	if err != nil {
		return err
	}
	if manages(u) {
		if err := s.anotherManages(ctx, u); err != nil {
			return err
		}
	}
	if err := s.store.DeleteUser(ctx, id); err != nil {
		return err
	}
	return s.audit(
		ctx,
		by,
		change{companyID: u.CompanyID, action: "user.delete", target: "user", id: id, before: userFields(u)},
	)
}

// SetPassword changes a user's password, ends all sessions and forgets the user's devices.
func (s *Service) SetPassword(ctx context.Context, by Actor, id, field, password string) (account.User, error) {
	u, err := s.store.User(ctx, id)
	if err != nil {
		return u, err
	}
	hash, err := s.hashPassword(ctx, u, field, password)
	if err != nil {
		return account.User{}, err
	}
	u, err = s.UpdateUser(ctx, by, "user.password", id, func(u *account.User) error {
		u.PasswordHash = hash
		u.TOTPPending = ""
		u.DeviceKey = ""
		endInvitation(u)
		return nil
	})
	if err != nil {
		return u, err
	}
	return u, s.store.DeleteSessions(ctx, store.SessionFilter{UserID: id})
}

// EndSessions ends all of a user's sessions and forgets the user's devices.
func (s *Service) EndSessions(ctx context.Context, by Actor, u account.User) error {
	sessions, err := s.store.UserSessions(ctx, u.ID, store.Page{Limit: 1})
	if err != nil {
		return err
	}
	devices := false
	_, err = s.UpdateUser(ctx, by, "", u.ID, func(u *account.User) error {
		devices = u.DeviceKey != ""
		u.DeviceKey = ""
		return nil
	})
	if err != nil || !devices && len(sessions) == 0 {
		return err
	}
	if err := s.store.DeleteSessions(ctx, store.SessionFilter{UserID: u.ID}); err != nil {
		return err
	}
	return s.audit(ctx, by, change{companyID: u.CompanyID, action: "user.sign-out", target: "user", id: u.ID})
}

// Note writes an audit log entry about a user without a change in the store, such as a sign-in.
func (s *Service) Note(ctx context.Context, by Actor, action string, u account.User) error {
	return s.audit(ctx, by, change{companyID: u.CompanyID, action: action, target: "user", id: u.ID})
}
