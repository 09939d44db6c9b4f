// Package seed creates the demo company, and demo.json, the only file with its secret token.
//
// The ids are the same on every machine, so that seeding again finds existing records: the next start
// completes an interrupted one, and changes in the store are preserved.
package seed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/atomicfile"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/store"
)

// Store stores the demo company.
type Store interface {
	Company(ctx context.Context, id string) (chat.Company, error)
	PutCompany(ctx context.Context, c chat.Company) error
	Application(ctx context.Context, id string) (chat.Application, error)
	PutApplication(ctx context.Context, a chat.Application) error
	ChangeApplication(ctx context.Context, id string, change store.ApplicationChange) error
	Template(ctx context.Context, id string) (chat.MessageTemplate, error)
	PutTemplate(ctx context.Context, t chat.MessageTemplate) error
	AccessToken(ctx context.Context, hash string) (chat.AccessToken, error)
	CreateAccessToken(ctx context.Context, t chat.AccessToken) error
	User(ctx context.Context, id string) (account.User, error)
	CreateUser(ctx context.Context, u account.User) error
	UpdateUser(ctx context.Context, u account.User) error
}

// Start has the values of this start: the bot and the addresses.
type Start struct {
	Bot        string // BOT; selects the greetings
	Client     string
	Widget     string
	Panel      string
	NATS       string
	SQLitePath string
}

// Demo is demo.json: the addresses, ids and credentials of the demo company.
type Demo struct {
	ClientBaseURL string `json:"clientBaseUrl"`
	WidgetBaseURL string `json:"widgetBaseUrl"`
	NATSURL       string `json:"natsUrl"`
	SQLitePath    string `json:"sqlitePath"`
	AccessToken   string `json:"accessToken"`
	CompanyID     string `json:"companyId"`
	AppID         string `json:"appId"`
	TemplateID    string `json:"templateId"`
	PanelURL      string `json:"panelUrl"`
	PanelEmail    string `json:"panelEmail"`
	PanelPassword string `json:"panelPassword"`
}

// Run seeds missing records and writes the addresses of this start to the file at path. It writes nothing if
// everything is up to date.
func Run(ctx context.Context, s Store, path string, start Start, now time.Time) (Demo, error) {
	if err := putNouns(ctx, s, start.Bot); err != nil {
		return Demo{}, err
	}
	before, err := read(path)
	if err != nil {
		return Demo{}, err
	}
	secret, err := accessToken(ctx, s, before.AccessToken, now)
	if err != nil {
		return Demo{}, err
	}
	demo := Demo{
		ClientBaseURL: start.Client, WidgetBaseURL: start.Widget, NATSURL: start.NATS, SQLitePath: start.SQLitePath,
		AccessToken: secret, CompanyID: companyID, AppID: appID, TemplateID: templateID,
		PanelURL: start.Panel, PanelEmail: panelEmail,
	}
	demo.PanelPassword, err = panelPassword(ctx, s, before.PanelPassword, now)
	if err != nil {
		return Demo{}, err
	}
	if demo == before {
		return demo, nil
	}
	return demo, write(path, demo)
}

// read returns the zero Demo if the file is missing or malformed: it is then created again.
func read(path string) (Demo, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Demo{}, nil
	}
	if err != nil {
		return Demo{}, fmt.Errorf("reading the demo company's token: %w", err)
	}
	var d Demo
	if json.Unmarshal(data, &d) != nil {
		d = Demo{}
	}
	return d, os.Chmod(path, 0o600)
}

func write(path string, d Demo) error {
	data, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding %s: %w", path, err)
	}
	return atomicfile.Write(path, append(data, '\n'))
}

// accessToken returns a secret that the store knows. The one in demo.json stays unless it was revoked or has
// expired; a new one is stored before the file is written, so that a crash in between leaves only an unused
// hash.
func accessToken(ctx context.Context, s Store, secret string, now time.Time) (string, error) {
	if hash, ok := credential.HashAccessToken(secret); ok {
		known, err := s.AccessToken(ctx, hash)
		switch {
		case err == nil && known.Valid(now) && known.CompanyID == companyID:
			return secret, nil
		case err != nil && !apperr.Is(err, apperr.NotFound):
			return "", fmt.Errorf("looking up the demo company's token: %w", err)
		}
	}
	secret, token := credential.NewAccessToken(companyID, "demo", now, time.Time{})
	if err := s.CreateAccessToken(ctx, token); err != nil {
		return "", fmt.Errorf("storing the demo company's token: %w", err)
	}
	return secret, nil
}

// panelPassword returns the password of the demo's operator, and creates the operator at the first start. If
// demo.json does not have it, the operator gets a new one.
func panelPassword(ctx context.Context, s Store, known string, now time.Time) (string, error) {
	u, err := s.User(ctx, account.UserID(panelEmail))
	if err != nil && !apperr.Is(err, apperr.NotFound) {
		return "", fmt.Errorf("looking up the demo's operator: %w", err)
	}
	exists := err == nil
	if exists && known != "" {
		return known, nil
	}
	password := account.NewPassword()
	hash, err := account.HashPassword(ctx, password)
	if err != nil {
		return "", err
	}
	if !exists {
		u = account.NewUser(panelEmail, "Demo Operator", account.Operator, "", now)
	}
	u.PasswordHash = hash
	if exists {
		err = s.UpdateUser(ctx, u)
	} else {
		err = s.CreateUser(ctx, u)
	}
	if err != nil {
		return "", fmt.Errorf("storing the demo's operator: %w", err)
	}
	return password, nil
}

func putNouns(ctx context.Context, s Store, bot string) error {
	if err := putAbsent(ctx, s.Company, s.PutCompany, companyID, company()); err != nil {
		return fmt.Errorf("seeding the demo company: %w", err)
	}
	if err := putAbsent(ctx, s.Application, putServed(s), appID, application(bot)); err != nil {
		return fmt.Errorf("seeding the demo application: %w", err)
	}
	if err := greetFor(ctx, s, bot); err != nil {
		return fmt.Errorf("changing the demo application's greetings: %w", err)
	}
	if err := putAbsent(ctx, s.Template, s.PutTemplate, templateID, template()); err != nil {
		return fmt.Errorf("seeding the demo template: %w", err)
	}
	return nil
}

// putServed stores an application with all features for agents, to demonstrate them.
func putServed(s Store) func(context.Context, chat.Application) error {
	return func(ctx context.Context, app chat.Application) error {
		if err := s.PutApplication(ctx, app); err != nil {
			return err
		}
		support := chat.Support{HandoverButton: true, Rating: true}
		return s.ChangeApplication(ctx, app.ID, store.ApplicationChange{Support: &support})
	}
}

// greetFor sets the greetings of the bot, unless the configuration was changed.
func greetFor(ctx context.Context, s Store, bot string) error {
	app, err := s.Application(ctx, appID)
	if err != nil || bytes.Equal(app.WidgetConfigs, configsFor(bot)) {
		return err
	}
	for other := range greetings {
		if bytes.Equal(app.WidgetConfigs, configsFor(other)) {
			app.WidgetConfigs = configsFor(bot)
			return s.PutApplication(ctx, app)
		}
	}
	return nil
}

func putAbsent[T any](
	ctx context.Context,
	get func(context.Context, string) (T, error),
	put func(context.Context, T) error,
	id string,
	v T,
) error {
	_, err := get(ctx, id)
	if apperr.Is(err, apperr.NotFound) {
		return put(ctx, v)
	}
	return err
}
