package embedding

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/parley-chat/parley/pkg/knowledge"
)

const (
	// questionTimeout bounds the embedding of a question: the visitor waits for it.
	questionTimeout = 1500 * time.Millisecond
	// maxQuestion bounds what is embedded of a question, in bytes: models refuse more than some hundred tokens.
	maxQuestion = 1500
	// breakerFailures of questions in a row keep further ones from a server: visitors would wait for it in vain.
	breakerFailures = 3
)

// FindPassages returns the passages of a company that fit a query best, best first, at most limit. With a model they
// are ranked by meaning too, that of the question, unless its server fails.
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
	if s.breakers.Admit(name, s.cfg.Now()) > 0 {
		return knowledge.Embedding{}, orderKept
	}
	ctx, cancel := context.WithTimeout(ctx, questionTimeout)
	defer cancel()
	vectors, err := s.client.embed(ctx, server, settings.Model, []string{knowledge.Shortened(question, maxQuestion)})
	if err != nil {
		f := asFailure(err)
		s.breakers.Report(name, s.cfg.Now(), false, f.pause)
		s.cfg.Logger.WarnContext(ctx, "embedding a question", "company", settings.CompanyID, "failure", f.message)
		return knowledge.Embedding{}, orderFailed
	}
	s.breakers.Report(name, s.cfg.Now(), true, 0)
	return knowledge.Embedding{Model: model, Vector: vectors[0]}, orderMeaning
}
