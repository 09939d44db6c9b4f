package admin

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/pkg/store"
)

// Ranking is how the passages of a company are ranked, and how many have their embeddings.
type Ranking struct {
	knowledge.Settings
	knowledge.Progress
}

// Ranking returns how the passages of a company are ranked.
func (s *Service) Ranking(ctx context.Context, companyID string) (r Ranking, err error) {
	r.Settings, err = s.store.KnowledgeSettings(ctx, companyID)
	if err != nil {
		return r, err
	}
	model := ""
	if r.ByMeaning() {
		c, err := s.store.ModelConnection(ctx, r.ConnectionID)
		if err != nil {
			return r, err
		}
		model = knowledge.EmbeddingModel(c.BaseURL, r.Model)
	}
	r.Progress, err = s.store.EmbeddingProgress(ctx, companyID, model)
	if !r.ByMeaning() {
		r.Embedded = 0
	}
	return r, err
}

// RankingChange is what a user writes: the connection and the model that make embeddings. Without a connection passages
// are ranked by words alone.
type RankingChange struct {
	ConnectionID string `json:"connectionId"`
	Model        string `json:"model"`
	Unchecked    bool   `json:"unchecked"` // the server is not asked whether it answers
}

// SetRanking replaces how the passages of a company are ranked, if it has the revision, or [AnyRevision]. Processors make
// the embeddings of the passages from then on. Errors: Invalid, also if the server gives no embedding; NotFound (no such
// company); PRECONDITION_FAILED for another revision; Unavailable if no processor can ask the server.
func (s *Service) SetRanking(
	ctx context.Context, by Actor, companyID string, revision int64, c RankingChange,
) (r Ranking, err error) {
	if _, err := s.store.Company(ctx, companyID); err != nil {
		return r, err
	}
	for range changeAttempts {
		before, err := s.store.KnowledgeSettings(ctx, companyID)
		if err != nil {
			return r, err
		}
		if revision != AnyRevision && revision != before.Revision {
			return r, apperr.PreconditionFailed.WithMessage("Somebody else has changed the ranking meanwhile")
		}
		after := before
		after.ConnectionID, after.Model = c.ConnectionID, c.Model
		if err := s.checkRanking(ctx, after, c.Unchecked); err != nil {
			return r, err
		}
		err = s.store.PutKnowledgeSettings(ctx, after)
		if apperr.Is(err, apperr.Conflict) {
			continue
		}
		if err != nil {
			return r, err
		}
		if err := s.changedDocuments(ctx, companyID); err != nil {
			return r, err
		}
		err = s.audit(ctx, by, change{
			companyID: companyID, action: "knowledge.update", target: "company", id: companyID,
			before: rankingFields(before), after: rankingFields(after),
		})
		if err != nil {
			return r, err
		}
		return s.Ranking(ctx, companyID)
	}
	return r, err
}

func rankingFields(s knowledge.Settings) fields {
	return fields{"connectionId": s.ConnectionID, "model": s.Model}
}

// checkRanking returns Invalid for settings that a company cannot have, or whose server gives no embedding.
func (s *Service) checkRanking(ctx context.Context, settings knowledge.Settings, unchecked bool) error {
	if err := settings.Check(); err != nil || !settings.ByMeaning() {
		return err
	}
	c, err := s.store.ModelConnection(ctx, settings.ConnectionID)
	if apperr.Is(err, apperr.NotFound) || err == nil && c.CompanyID != settings.CompanyID {
		return apperr.Fields{{Name: "connectionId", Message: "must be a connection of the company"}}.Err()
	}
	if err != nil || unchecked {
		return err
	}
	a, err := s.bus.RPC().Embed(ctx, embeddingOf(settings, "Hello"))
	if err != nil || a.Failure == "" {
		return err
	}
	f := apperr.Fields{{Name: "connectionId", Message: "did not pass the test. " + a.Failure}}
	if a.OfModel {
		f[0].Name = "model"
	}
	return f.Err()
}

func embeddingOf(s knowledge.Settings, text string) knowledge.EmbeddingRequest {
	return knowledge.EmbeddingRequest{CompanyID: s.CompanyID, ConnectionID: s.ConnectionID, Model: s.Model, Text: text}
}

// questionTimeout bounds the embedding of a question: a bot waits half as long.
const questionTimeout = 3 * time.Second

// FindPassages returns the passages that a bot of the company would get for a question, best first. If the server of the
// company fails, they have the order of the words, as a bot's.
func (s *Service) FindPassages(
	ctx context.Context, companyID, question string, limit int,
) ([]knowledge.Passage, error) {
	settings, err := s.store.KnowledgeSettings(ctx, companyID)
	if err != nil {
		return nil, err
	}
	terms := knowledge.Terms(question)
	if !settings.ByMeaning() {
		return s.store.SearchPassages(ctx, companyID, terms, limit)
	}
	found, err := s.store.SearchPassages(ctx, companyID, terms, max(limit, knowledge.Candidates))
	if err != nil || len(found) == 0 {
		return found, err
	}
	ctx, cancel := context.WithTimeout(ctx, questionTimeout)
	defer cancel()
	a, err := s.bus.RPC().Embed(ctx, embeddingOf(settings, question))
	if err != nil && !apperr.Is(err, apperr.Unavailable) {
		return nil, err
	}
	return knowledge.RankByMeaning(found, a.Embedding, limit), nil
}

// changedDocuments notifies the processors, which make embeddings, after a change of documents or of their ranking.
// Without NATS they find it by themselves within seconds.
func (s *Service) changedDocuments(ctx context.Context, companyID string) error {
	if s.bus == nil {
		return nil
	}
	return s.bus.RPC().Invalidate(ctx, store.CachedKnowledge, companyID)
}
