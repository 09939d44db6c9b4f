package http

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/admin/view"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/services/panel/internal/signin"
)

type sessionView struct {
	User        view.User            `json:"user"`
	Company     *view.Company        `json:"company"`
	Permissions []account.Permission `json:"permissions"`
	CSRFToken   string               `json:"csrfToken"`
	ExpiresAt   chat.Time            `json:"expiresAt"`

	RecoveryCodesLeft int `json:"recoveryCodesLeft"`
}

func (a api) sessionOf(c echo.Context, who signin.Principal) error {
	v := sessionView{
		User:              view.UserOf(who.User),
		Permissions:       who.User.Role.Permissions(),
		CSRFToken:         account.CSRFToken(who.Secret),
		ExpiresAt:         chat.Time(who.Session.ExpiresAt),
		RecoveryCodesLeft: who.User.RecoveryCodesLeft(),
	}
	if who.User.CompanyID != "" {
		company, err := a.Store.Company(ctxOf(c), who.User.CompanyID)
		if err != nil {
			return err
		}
		v.Company = new(view.CompanyOf(company))
	}
	return c.JSON(http.StatusOK, v)
}

// began answers with a new session and its cookies.
func (a api) began(c echo.Context, who signin.Principal) error {
	if err := a.begin(c, who); err != nil {
		return err
	}
	return a.sessionOf(c, who)
}

// begin ends the browser's earlier session and sets the cookies of the new one: every sign-in creates a new secret.
func (a api) begin(c echo.Context, who signin.Principal) error {
	if before := a.cookie(c, sessionCookie); before != "" {
		if err := a.SignIn.End(ctxOf(c), account.HashSecret(before)); err != nil {
			return err
		}
	}
	a.setCookie(c, deviceCookie, who.Device)
	a.setCookie(c, sessionCookie, who.Secret)
	return nil
}

type metaView struct {
	Version       string    `json:"version"`
	WidgetBaseURL string    `json:"widgetBaseUrl"`
	ClientBaseURL string    `json:"clientBaseUrl"`
	OIDC          *oidcView `json:"oidc"`
}

type oidcView struct {
	Name string `json:"name"`
}

func (a api) getMeta(c echo.Context) error {
	v := metaView{Version: a.Version, WidgetBaseURL: a.WidgetBaseURL, ClientBaseURL: a.ClientBaseURL}
	if a.OIDC != nil {
		v.OIDC = &oidcView{a.OIDC.Name}
	}
	return c.JSON(http.StatusOK, v)
}

type signInRequest struct {
	Email    string `json:"email"`
	Password string `json:"password"`
	Code     string `json:"code"`
}

func (a api) signIn(c echo.Context) error {
	r, err := decoded[signInRequest](c)
	if err != nil {
		return err
	}
	who, err := a.SignIn.SignIn(
		ctxOf(c),
		signin.Credentials{Email: r.Email, Password: r.Password, Code: r.Code},
		a.from(c),
	)
	if err != nil {
		return err
	}
	return a.began(c, who)
}

func (a api) getSession(c echo.Context, who caller) error { return a.sessionOf(c, who.Principal) }

func (a api) signOut(c echo.Context, who caller) error {
	if err := a.SignIn.End(ctxOf(c), who.Session.ID); err != nil {
		return err
	}
	a.setCookie(c, sessionCookie, "")
	return c.NoContent(http.StatusNoContent)
}

type sessionRow struct {
	ID         string    `json:"id"`
	CreatedAt  chat.Time `json:"createdAt"`
	LastSeenAt chat.Time `json:"lastSeenAt"`
	ExpiresAt  chat.Time `json:"expiresAt"`
	Address    string    `json:"address"`
	UserAgent  string    `json:"userAgent"`
	Current    bool      `json:"current"`
}

func (a api) getSessions(c echo.Context, who caller) error {
	return a.listSessions(c, who, who.User.ID)
}

// listSessions lists valid sessions. Their ids are hashes, which do not authenticate.
func (a api) listSessions(c echo.Context, who caller, userID string) error {
	id := func(s account.Session) string { return s.ID }
	found, next, err := readPage(c, recordsOf(a.Store.UserSessions, userID), id)
	if err != nil {
		return err
	}
	rows := []sessionRow{}
	for _, s := range found {
		if !s.Valid(a.Now()) {
			continue
		}
		rows = append(rows, sessionRow{
			ID:         s.ID,
			CreatedAt:  chat.Time(s.CreatedAt),
			LastSeenAt: chat.Time(s.LastSeenAt),
			ExpiresAt:  chat.Time(s.ExpiresAt),
			Address:    s.Address,
			UserAgent:  s.UserAgent,
			Current:    s.ID == who.Session.ID,
		})
	}
	return answerPage(c, next, map[string]any{"sessions": rows})
}

func (a api) signOutEverywhere(c echo.Context, who caller) error {
	if err := a.Admin.EndSessions(ctxOf(c), who.actor(), who.User); err != nil {
		return err
	}
	a.setCookie(c, sessionCookie, "")
	return c.NoContent(http.StatusNoContent)
}

func (a api) endSession(c echo.Context, who caller) error {
	s, err := a.Store.Session(ctxOf(c), c.Param("id"))
	if err != nil {
		return err
	}
	if s.UserID != who.User.ID {
		return apperr.SessionNotFound.New()
	}
	if err := a.SignIn.End(ctxOf(c), s.ID); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

type passwordRequest struct {
	Current string `json:"current"`
	New     string `json:"new"`
}

func (a api) changePassword(c echo.Context, who caller) error {
	r, err := decoded[passwordRequest](c)
	if err != nil {
		return err
	}
	fresh, err := a.SignIn.ChangePassword(ctxOf(c), who.Principal, r.Current, r.New, a.from(c))
	if err != nil {
		return err
	}
	return a.began(c, fresh)
}

// proofRequest confirms a change of the second factor.
type proofRequest struct {
	Password    string `json:"password"`
	CurrentCode string `json:"currentCode"`
}

func (r proofRequest) proof() signin.Proof {
	return signin.Proof{Password: r.Password, Code: r.CurrentCode}
}

func (a api) offerTOTP(c echo.Context, who caller, r proofRequest) (any, error) {
	secret, uri, err := a.SignIn.OfferTOTP(ctxOf(c), who.Principal, r.proof())
	return map[string]string{"secret": secret, "uri": uri}, err
}

type confirmRequest struct {
	proofRequest
	Code string `json:"code"` // of the offered secret
}

func (a api) confirmTOTP(c echo.Context, who caller, r confirmRequest) (any, error) {
	codes, err := a.SignIn.ConfirmTOTP(ctxOf(c), who.Principal, r.proof(), r.Code)
	return map[string][]string{"recoveryCodes": codes}, err
}

func (a api) renewRecoveryCodes(c echo.Context, who caller, r proofRequest) (any, error) {
	codes, err := a.SignIn.RenewRecoveryCodes(ctxOf(c), who.Principal, r.proof())
	return map[string][]string{"recoveryCodes": codes}, err
}

func (a api) removeTOTP(c echo.Context, who caller, r proofRequest) (any, error) {
	return nil, a.SignIn.RemoveTOTP(ctxOf(c), who.Principal, r.proof())
}

type invitationRequest struct {
	Token    string `json:"token"`
	Name     string `json:"name"`
	Password string `json:"password"`
}

func (a api) checkInvitation(c echo.Context) error {
	r, err := decoded[invitationRequest](c)
	if err != nil {
		return err
	}
	u, err := a.SignIn.Invited(ctxOf(c), r.Token, a.from(c))
	if err != nil {
		return err
	}
	v := map[string]string{"email": u.Email, "name": u.Name, "role": string(u.Role)}
	if u.CompanyID != "" {
		company, err := a.Store.Company(ctxOf(c), u.CompanyID)
		if err != nil {
			return err
		}
		v["companyName"] = company.Name
	}
	return c.JSON(http.StatusOK, v)
}

func (a api) acceptInvitation(c echo.Context) error {
	r, err := decoded[invitationRequest](c)
	if err != nil {
		return err
	}
	who, err := a.SignIn.AcceptInvitation(ctxOf(c), r.Token, r.Name, r.Password, a.from(c))
	if err != nil {
		return err
	}
	return a.began(c, who)
}
