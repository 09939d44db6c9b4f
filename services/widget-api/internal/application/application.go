// Package application finds chat applications that have a widget.
package application

import (
	"context"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
)

// Directory finds applications by id.
type Directory interface {
	Application(ctx context.Context, id string) (chat.Application, error)
}

// Finder finds applications by their public id.
type Finder struct{ directory Directory }

// NewFinder returns a finder.
func NewFinder(directory Directory) *Finder { return &Finder{directory: directory} }

// Find returns the application, or NotFound, also for malformed ids.
func (f *Finder) Find(ctx context.Context, id string) (chat.Application, error) {
	canonical, ok := chat.ParseID(id)
	if !ok {
		return chat.Application{}, apperr.ApplicationNotFound.New()
	}
	app, err := f.directory.Application(ctx, canonical)
	if apperr.Is(err, apperr.NotFound) {
		return chat.Application{}, apperr.ApplicationNotFound.New()
	}
	return app, err
}

// FindWidget is Find for applications with a widget: others are NotFound too.
func (f *Finder) FindWidget(ctx context.Context, id string) (chat.Application, error) {
	app, err := f.Find(ctx, id)
	if err == nil && app.Provider != chat.ProviderWidget {
		return chat.Application{}, apperr.ApplicationNotFound.New()
	}
	return app, err
}

// CheckOrigin returns an error if pages of that origin may not use the application. A request without an
// origin does not come from a page and passes: other clients can send any origin.
func CheckOrigin(app chat.Application, origin string) error {
	if origin == "" || app.AllowsOrigin(origin) {
		return nil
	}
	return apperr.OriginNotAllowed.New()
}
