package http

import (
	"context"
	"math"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

// handoverView is the reason of a handover.
type handoverView struct {
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
	Note   string    `json:"note,omitempty"`
	At     chat.Time `json:"at"`
}

func viewOfHandover(h chat.Handover) *handoverView {
	if h.By == "" {
		return nil
	}
	return &handoverView{h.By, h.Reason, h.Note, chat.Time(h.At)}
}

// ratingView is a visitor's rating of a chat.
type ratingView struct {
	Score   int       `json:"score"`
	Comment string    `json:"comment,omitempty"`
	RatedAt chat.Time `json:"ratedAt"`
}

func viewOfRating(r chat.Rating) *ratingView {
	if r.Score == 0 {
		return nil
	}
	return &ratingView{r.Score, r.Comment, chat.Time(r.At)}
}

// setSupport sets how agents serve an application's visitors.
func (a api) setSupport(c echo.Context, who caller, app chat.Application, support chat.Support) (any, error) {
	app, err := a.Admin.SetSupport(ctxOf(c), who.actor(), app.ID, support)
	return a.viewOfApplication(app), err
}

// ratedSince is the period of the ratings' sums.
const ratedSince = 30 * 24 * time.Hour

type ratingsRow struct {
	AppID   string             `json:"appId"`
	Count   int                `json:"count"`
	Average float64            `json:"average"` // to two decimals
	Scores  [chat.MaxScore]int `json:"scores"`
}

// getRatings sums up the ratings of a company's applications in the last 30 days.
func (a api) getRatings(c echo.Context, _ caller, company string) error {
	since := a.Now().Add(-ratedSince)
	read := func(ctx context.Context, p store.Page) ([]store.Ratings, error) {
		return a.Store.Ratings(ctx, company, since, p)
	}
	id := func(r store.Ratings) string { return r.AppID }
	return answerList(c, "ratings", read, id, viewOfRatings, map[string]any{"days": int(ratedSince / (24 * time.Hour))})
}

func viewOfRatings(r store.Ratings) ratingsRow {
	return ratingsRow{r.AppID, r.Count(), math.Round(r.Average()*100) / 100, r.Scores}
}
