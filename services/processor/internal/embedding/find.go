package embedding

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/parley-chat/parley/pkg/knowledge"
)

const (
	// questionTimeout bounds the embedding of a question: the visitor waits for it.
	questionTimeout = 1500 * time.Millisecond
	// maxQuestion bounds what is embedded of a question, in bytes: models refuse more than some hundred tokens.
	maxQuestion = 1500
)

// FindPassages returns the passages of a company that fit a query best, best first, at most limit. With a model they are
// ranked by meaning too, that of the question, unless its server fails.
func (s *Service) FindPassages(
	ctx context.Context, companyID string, q knowledge.Query, limit int,
) ([]knowledge.Passage, error) {
	terms := q.Terms()
	if len(terms) == 0 {
		return nil, nil
	}
	settings, err := s.cfg.Cache.KnowledgeSettings(ctx, companyID)
	if err != nil {
		return nil, fmt.Errorf("reading how documents are searched: %w", err)
	}
	candidates := limit
	if settings.ByMeaning() {
		candidates = max(limit, knowledge.Candidates)
	}
	found, err := s.cfg.Store.SearchPassages(ctx, companyID, terms, candidates)
	if err != nil || !settings.ByMeaning() {
		return found, err
	}
	embedded, order := s.embedQuestion(ctx, settings, found, q.Question)
	s.metrics.searched(order)
	return knowledge.RankByMeaning(found, embedded, limit), nil
}

// embedQuestion returns the embedding of a question, and the order that it gives passages. It is zero if there is
// nothing to compare it with, or if the server fails.
func (s *Service) embedQuestion(
	ctx context.Context, settings knowledge.Settings, found []knowledge.Passage, question string,
) (knowledge.Embedding, string) {
	server, err := connection(ctx, s.cfg.Cache, settings)
	if err != nil {
		s.cfg.Logger.WarnContext(ctx, "ranking by meaning", "company", settings.CompanyID, "error", err)
		return knowledge.Embedding{}, orderFailed
	}
	model := knowledge.EmbeddingModel(server.BaseURL, settings.Model)
	isOfModel := func(p knowledge.Passage) bool { return p.Embedding.Model == model }
	if !slices.ContainsFunc(found, isOfModel) {
		return knowledge.Embedding{}, orderNone
	}
	name := settings.CompanyID + " " + model
	if !s.breakers.admit(name, s.cfg.Now()) {
		return knowledge.Embedding{}, orderKept
	}
	ctx, cancel := context.WithTimeout(ctx, questionTimeout)
	defer cancel()
	vectors, err := s.client.embed(ctx, server, settings.Model, []string{knowledge.Shortened(question, maxQuestion)})
	if err != nil {
		f := asFailure(err)
		s.breakers.failed(name, s.cfg.Now(), f.pause)
		s.cfg.Logger.WarnContext(ctx, "embedding a question", "company", settings.CompanyID, "failure", f.message)
		return knowledge.Embedding{}, orderFailed
	}
	s.breakers.answered(name)
	return knowledge.Embedding{Model: model, Vector: vectors[0]}, orderMeaning
}

const (
	// toleratedFailures of questions in a row open a breaker, for openAtLeast and twice as long each time.
	toleratedFailures = 3
	openAtLeast       = time.Second
	openAtMost        = 30 * time.Second
)

// breakers keep questions of a company from a server that fails: visitors would wait for it in vain.
type breakers struct {
	mu     sync.Mutex
	byName map[string]breaker // without those whose last call succeeded
}

type breaker struct {
	failures int // consecutive
	until    time.Time
}

// admit reports whether a call may be made.
func (b *breakers) admit(name string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !now.Before(b.byName[name].until)
}

func (b *breakers) answered(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.byName, name)
}

// failed records a failure, and the pause that the server asked for.
func (b *breakers) failed(name string, now time.Time, pause time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.byName[name]
	known.failures++
	if above := known.failures - toleratedFailures; above >= 0 {
		pause = max(pause, min(openAtLeast<<min(above, 10), openAtMost))
	}
	known.until = now.Add(pause)
	if b.byName == nil {
		b.byName = map[string]breaker{}
	}
	b.byName[name] = known
}
