package http

import (
	"encoding/json"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/services/widget-api/internal/registration"
)

type registerRequest struct {
	AppID         string                    `json:"appId"`
	FirstName     string                    `json:"firstName"`
	LastName      string                    `json:"lastName"`
	Email         *string                   `json:"email"`
	Phone         *string                   `json:"phone"`
	UserID        *string                   `json:"userId"`
	UserHash      *string                   `json:"userHash"`
	IdentityToken *string                   `json:"identityToken"`
	Language      string                    `json:"language"`
	Others        map[string]jsontext.Value `json:",embed"` // an application may require fields of its own
}

func (r *registerRequest) form() registration.Form {
	others := make(map[string]json.RawMessage, len(r.Others))
	for name, value := range r.Others {
		others[name] = json.RawMessage(value)
	}
	return registration.Form{
		AppID: r.AppID, FirstName: r.FirstName, LastName: r.LastName,
		Email: r.Email, Phone: r.Phone, UserID: r.UserID, UserHash: r.UserHash, IdentityToken: r.IdentityToken,
		Language: r.Language,
		Others:   others,
	}
}

// Validate implements [httpapi.Validator].
func (r *registerRequest) Validate() apperr.Fields { return r.form().Validate() }

func (a api) register(c echo.Context) error {
	var r registerRequest
	if err := httpapi.Decode(c, &r); err != nil {
		return err
	}
	form := r.form()
	form.Origin = c.Request().Header.Get(echo.HeaderOrigin)
	form.Token, _ = httpapi.Bearer(c) // of an earlier registration; an invalid one is ignored
	form.Address = httpapi.ClientAddress(c)
	token, err := a.Registrations.Register(c.Request().Context(), form)
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.JSONBlob(http.StatusOK, append(chat.AppendString([]byte(`{"accessToken":`), token), '}'))
}
