// Package embedding ranks the passages of companies by meaning.
//
// client.go calls the server of a company, which makes vectors of texts. work.go makes those of passages in the
// background; find.go ranks what the search by words has found for a question. A company without a model, or with a
// server that fails, has the order of the words.
package embedding

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/services/processor/internal/breaker"
	"github.com/parley-chat/parley/services/processor/internal/guard"
)

// Store has the passages and the settings as they are stored; see [store.Documents] and [store.KnowledgeSettings].
type Store interface {
	SearchPassages(ctx context.Context, companyID string, terms []string, limit int) ([]knowledge.Passage, error)
	UnembeddedPassages(ctx context.Context, companyID, model string, limit int) ([]knowledge.Passage, error)
	PutEmbeddings(ctx context.Context, passages []knowledge.Passage) error
	AllKnowledgeSettings(ctx context.Context, p store.Page) ([]knowledge.Settings, error)
	ClaimEmbedding(ctx context.Context, companyID string, ended time.Time, w knowledge.Work) (bool, error)
	Settings
}

// Settings are those of companies: as they are stored, or those of a moment ago.
type Settings interface {
	KnowledgeSettings(ctx context.Context, companyID string) (knowledge.Settings, error)
	ModelConnection(ctx context.Context, id string) (bots.Connection, error)
}

// Config holds the dependencies of a [Service].
type Config struct {
	Store      Store
	Cache      Settings       // of Store, for questions
	Allow      []netip.Prefix // private networks that the servers of companies may be in
	PollEvery  time.Duration  // how often work is looked for that no [Service.Wake] has announced
	Now        func() time.Time
	Logger     *slog.Logger
	Registerer prometheus.Registerer // nil: no metrics
}

// Service makes and compares embeddings. It is safe for concurrent use.
type Service struct {
	cfg      Config
	client   *client
	metrics  *metrics
	breakers breaker.Set // by company and model
	woken    chan string // companies that may have work
}

// New returns a service without opening a connection.
func New(c Config) *Service {
	m := newMetrics(c.Registerer)
	return &Service{
		cfg:     c,
		client:  &client{http: guard.NewClient(c.Allow, callTimeout), now: c.Now, used: m.used},
		metrics: m,
		woken:   make(chan string, wakesKept),

		breakers: breaker.Set{Failures: breakerFailures},
	}
}

// Close ends the idle connections.
func (s *Service) Close() { s.client.http.CloseIdleConnections() }

// Embed returns the embedding of a text, for a test of settings or a question of the panel. A server that fails is no
// error: the answer has the failure.
func (s *Service) Embed(ctx context.Context, r knowledge.EmbeddingRequest) (a knowledge.EmbeddingAnswer, err error) {
	settings := knowledge.Settings{CompanyID: r.CompanyID, ConnectionID: r.ConnectionID, Model: r.Model}
	server, err := connection(ctx, s.cfg.Store, settings)
	if err != nil {
		return a, err
	}
	vectors, err := s.client.embed(ctx, server, r.Model, []string{knowledge.Shortened(r.Text, maxQuestion)})
	if err != nil {
		f := asFailure(err)
		return knowledge.EmbeddingAnswer{Failure: f.message, OfModel: f.refused}, nil
	}
	a.Embedding = knowledge.Embedding{Model: knowledge.EmbeddingModel(server.BaseURL, r.Model), Vector: vectors[0]}
	return a, nil
}

// connection returns the connection of settings.
func connection(ctx context.Context, from Settings, s knowledge.Settings) (bots.Connection, error) {
	c, err := from.ModelConnection(ctx, s.ConnectionID)
	if err == nil && c.CompanyID != s.CompanyID {
		err = apperr.ConnectionNotFound.New()
	}
	if err != nil {
		return c, fmt.Errorf("finding the connection of the company: %w", err)
	}
	return c, nil
}
