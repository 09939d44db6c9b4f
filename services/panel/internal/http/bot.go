package http

import (
	"context"
	"math"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/admin/view"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

func (a api) getBot(c echo.Context, _ caller, app chat.Application) (any, error) {
	b, err := a.Admin.Bot(ctxOf(c), app.ID)
	return view.BotOf(b), err
}

func (a api) setBotDraft(c echo.Context, who caller, app chat.Application, draft bots.Settings) (any, error) {
	b, err := a.Admin.SetBotDraft(ctxOf(c), who.actor(), app.ID, revisionOf(c), draft)
	return view.BotOf(b), err
}

// revisionOf returns the revision of the bot that If-Match names; without it any. A text that is no revision is that of
// no bot.
func revisionOf(c echo.Context) int64 {
	wanted := strings.Trim(c.Request().Header.Get("If-Match"), `"`)
	if wanted == "" {
		return admin.AnyRevision
	}
	revision, err := strconv.ParseInt(wanted, 10, 64)
	if err != nil || revision < 0 {
		return math.MaxInt64
	}
	return revision
}

// botView is a bot with a new secret, which is shown once.
type botView struct {
	Bot    view.Bot `json:"bot"`
	Secret string   `json:"secret,omitempty"`
}

type publishRequest struct {
	Version   int  `json:"version"` // 0: the draft
	Unchecked bool `json:"unchecked"`
}

func (a api) publishBot(c echo.Context, who caller, app chat.Application, r publishRequest) (any, error) {
	b, fresh, err := a.Admin.PublishBot(ctxOf(c), who.actor(), app.ID, admin.Publication{
		Revision: revisionOf(c), Number: r.Version, Unchecked: r.Unchecked,
	})
	v := botView{Bot: view.BotOf(b)}
	if fresh != nil {
		v.Secret = fresh.Verifier()
	}
	return created(v), err
}

func (a api) rotateBotSecret(c echo.Context, who caller, app chat.Application, r overlapRequest) (any, error) {
	fresh, b, err := a.Admin.RotateBotSecret(ctxOf(c), who.actor(), app.ID, r.overlap())
	return created(botView{view.BotOf(b), fresh.Verifier()}), err
}

// usageDays is how many days the usage of a bot shows.
const usageDays = 30

func (a api) getBotUsage(c echo.Context, _ caller, app chat.Application) (any, error) {
	b, err := a.Admin.Bot(ctxOf(c), app.ID)
	if err != nil {
		return nil, err
	}
	today := bots.Day(a.Now())
	days, err := a.Store.BotUsage(ctxOf(c), app.ID, today.AddDate(0, 0, 1-usageDays))
	return view.BotUsageOf(b, days, today), err
}

const (
	// callsAtOnce calls are read together, and at most callsExamined are for a page of unanswered ones: of at most 64 KiB
	// each.
	callsAtOnce   = 20
	callsExamined = 400
)

// getBotCalls lists calls; with unanswered=true only those that are.
func (a api) getBotCalls(c echo.Context, _ caller, app chat.Application) error {
	id := func(v bots.Call) string { return v.ID }
	read := recordsOf(a.Store.BotCalls, app.ID)
	if c.QueryParam("unanswered") != "true" {
		return answerRows(c, "calls", read, id, view.BotCallOf)
	}
	return answerExamined(c, "calls", unanswered(read), id, view.BotCallOf)
}

// unanswered returns a reader of the unanswered calls that are no tests.
func unanswered(read func(context.Context, store.Page) ([]bots.Call, error)) reader[bots.Call] {
	return func(ctx context.Context, p store.Page) (calls []bots.Call, next string, err error) {
		next = p.After
		for examined := 0; examined < callsExamined; examined += callsAtOnce {
			found, err := read(ctx, store.Page{After: next, Limit: callsAtOnce})
			if err != nil {
				return nil, "", err
			}
			for _, call := range found {
				next = call.ID
				if call.Unanswered && call.Version > 0 {
					calls = append(calls, call)
				}
				if len(calls) == p.Size() {
					return calls, next, nil
				}
			}
			if len(found) < callsAtOnce {
				return calls, "", nil
			}
		}
		return calls, next, nil
	}
}

func (a api) testBot(c echo.Context, who caller, app chat.Application, q admin.BotQuestion) (any, error) {
	call, err := a.Admin.TestBot(ctxOf(c), who.actor(), app, q)
	return view.BotCallOf(call), err
}

func (a api) getConnections(c echo.Context, _ caller, company string) error {
	id := func(v bots.Connection) string { return v.ID }
	return answerList(c, "connections", recordsOf(a.Store.ModelConnections, company), id, view.ConnectionOf, nil)
}

// connection finds the connection of a route.
func (a api) connection(c echo.Context, who caller) (bots.Connection, error) {
	return recordOf(
		c, who, a.Store.ModelConnection, func(v bots.Connection) string { return v.CompanyID },
		apperr.ConnectionNotFound,
	)
}

type connectionRequest struct {
	Name    string `json:"name"`
	BaseURL string `json:"baseUrl"`
	APIKey  string `json:"apiKey"`
}

func (a api) createConnection(c echo.Context, who caller, company string, r connectionRequest) (any, error) {
	made, err := a.Admin.CreateModelConnection(ctxOf(c), who.actor(), bots.Connection{
		CompanyID: company, Name: r.Name, BaseURL: r.BaseURL, APIKey: r.APIKey,
	})
	return created(view.ConnectionOf(made)), err
}

func (a api) updateConnection(c echo.Context, who caller, v bots.Connection, r admin.ConnectionChange) (any, error) {
	v, err := a.Admin.UpdateModelConnection(ctxOf(c), who.actor(), v.ID, r)
	return view.ConnectionOf(v), err
}

// getTools asks the connection's server for its tools.
func (a api) getTools(c echo.Context, _ caller, v bots.Connection) (any, error) {
	return a.Admin.ListTools(ctxOf(c), v)
}

func (a api) deleteConnection(c echo.Context, who caller, v bots.Connection) (any, error) {
	return nil, a.Admin.DeleteModelConnection(ctxOf(c), who.actor(), v.ID)
}
