package embedding

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/pkg/store"
)

const (
	// batch is how many texts a call has at most: some servers take no more.
	batch = 32
	// callTimeout bounds a call. Small machines need seconds for a batch.
	callTimeout = 30 * time.Second
	// callPause is the least time between two calls for a company: background work leaves room for its questions.
	callPause = 100 * time.Millisecond
	// claimTime is how long a claim lasts that is not renewed, and so how long a killed processor delays the work. It is
	// above the time of a batch.
	claimTime = 2 * time.Minute
	// companiesAtOnce bounds the companies whose embeddings one process makes at once.
	companiesAtOnce = 4
	// wakesKept bounds the companies that wait for a worker. Others are found by the next poll.
	wakesKept = 1024
	// After a failure the work of a company waits, for twice as long each time.
	waitAtLeast = 5 * time.Second
	waitAtMost  = 10 * time.Minute
)

// Wake says that a company may have passages without embeddings: a document or its settings have changed.
func (s *Service) Wake(companyID string) {
	select {
	case s.woken <- companyID:
	default: // the next poll finds it
	}
}

// Run makes the embeddings of passages until ctx is done.
func (s *Service) Run(ctx context.Context) {
	var workers sync.WaitGroup
	defer workers.Wait()
	for range companiesAtOnce {
		workers.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case companyID := <-s.woken:
					s.complete(ctx, companyID)
				}
			}
		})
	}
	tick := time.NewTicker(s.cfg.PollEvery)
	defer tick.Stop()
	for {
		s.poll(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// poll wakes the companies with a model that nobody works for.
func (s *Service) poll(ctx context.Context) {
	id := func(k knowledge.Settings) string { return k.CompanyID }
	for settings, err := range store.All(ctx, s.cfg.Store.AllKnowledgeSettings, id) {
		if err != nil {
			s.warn(ctx, "", err)
			return
		}
		if settings.ByMeaning() && !settings.Work.Until.After(s.cfg.Now()) {
			s.Wake(settings.CompanyID)
		}
	}
}

func (s *Service) warn(ctx context.Context, companyID string, err error) {
	if ctx.Err() == nil {
		s.cfg.Logger.WarnContext(ctx, "making embeddings", "company", companyID, "error", err)
	}
}

// complete makes all embeddings that a company lacks, if no other process does. The poll repeats what fails.
func (s *Service) complete(ctx context.Context, companyID string) {
	settings, err := s.cfg.Store.KnowledgeSettings(ctx, companyID)
	if err != nil {
		s.warn(ctx, companyID, err)
		return
	}
	if !settings.ByMeaning() {
		return
	}
	w := worker{Service: s, settings: settings}
	w.server, err = connection(ctx, s.cfg.Store, settings)
	if err != nil {
		s.warn(ctx, companyID, err)
		return
	}
	w.model = knowledge.EmbeddingModel(w.server.BaseURL, settings.Model)
	if err := w.run(ctx); err != nil {
		s.warn(ctx, companyID, err)
	}
}

// worker makes the embeddings of a company, while it has the claim.
type worker struct {
	*Service
	settings knowledge.Settings
	server   bots.Connection
	model    string    // see [knowledge.EmbeddingModel]
	held     time.Time // until when it has the claim
}

func (w *worker) run(ctx context.Context) error {
	some, err := w.lacking(ctx, 1)
	if err != nil || len(some) == 0 {
		return err
	}
	state := w.settings.Work // a failure is shown until a success
	if held, err := w.claim(ctx, w.cfg.Now(), state); err != nil || !held {
		return err
	}
	for {
		passages, err := w.lacking(ctx, batch)
		if err != nil {
			return err // the claim ends by itself
		}
		if len(passages) == 0 {
			_, err := w.cfg.Store.ClaimEmbedding(ctx, w.settings.CompanyID, w.held, knowledge.Work{})
			return err
		}
		if err := w.embed(ctx, passages); err != nil {
			return w.failed(ctx, err)
		}
		if err := w.cfg.Store.PutEmbeddings(ctx, passages); err != nil {
			return err
		}
		w.metrics.passages.Add(float64(len(passages)))
		if held, err := w.claim(ctx, w.held, knowledge.Work{}); err != nil || !held {
			return err // not held: the settings have changed, and woken a worker
		}
		if err := pause(ctx, callPause); err != nil {
			return err
		}
	}
}

func (w *worker) lacking(ctx context.Context, limit int) ([]knowledge.Passage, error) {
	return w.cfg.Store.UnembeddedPassages(ctx, w.settings.CompanyID, w.model, limit)
}

// claim begins or renews the claim, and reports whether the worker has it.
func (w *worker) claim(ctx context.Context, ended time.Time, state knowledge.Work) (bool, error) {
	state.Until = store.UTC(w.cfg.Now().Add(claimTime))
	held, err := w.cfg.Store.ClaimEmbedding(ctx, w.settings.CompanyID, ended, state)
	w.held = state.Until
	if err != nil {
		return false, fmt.Errorf("claiming the embeddings: %w", err)
	}
	return held, nil
}

// failed ends the claim with a failure, after which all processes wait.
func (w *worker) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		// The processor stops: the next one begins at once.
		_, err := w.cfg.Store.ClaimEmbedding(context.WithoutCancel(ctx), w.settings.CompanyID, w.held, knowledge.Work{})
		return err
	}
	w.metrics.failures.Inc()
	f := asFailure(err)
	wait := max(f.pause, min(waitAtLeast<<min(w.settings.Work.Failures, 10), waitAtMost))
	state := w.settings.Work.Failed(f.message, w.cfg.Now().Add(wait))
	_, err = w.cfg.Store.ClaimEmbedding(ctx, w.settings.CompanyID, w.held, state)
	w.cfg.Logger.WarnContext(ctx, "making embeddings", "company", w.settings.CompanyID, "failure", f.message, "wait", wait)
	return err
}

// embed sets the embeddings of passages. A text that the server refuses, such as one that is too long for the model,
// has one without a vector: it keeps the place that it has by words, and holds up no others.
func (w *worker) embed(ctx context.Context, passages []knowledge.Passage) error {
	texts := make([]string, len(passages))
	for i, p := range passages {
		texts[i] = knowledge.EmbeddedText(p)
	}
	vectors, err := w.client.embed(ctx, w.server, w.settings.Model, texts)
	f, isFailure := errors.AsType[*failure](err)
	switch {
	case err == nil:
		for i := range passages {
			passages[i].Embedding = knowledge.Embedding{Model: w.model, Vector: vectors[i]}
		}
		return nil
	case !isFailure || !f.refused:
		return err
	case len(passages) == 1:
		// Is it the text, or does the server take no text at all?
		if _, err := w.client.embed(ctx, w.server, w.settings.Model, []string{"Hello"}); err != nil {
			return err
		}
		passages[0].Embedding = knowledge.Embedding{Model: w.model}
		return nil
	}
	middle := len(passages) / 2
	if err := w.embed(ctx, passages[:middle]); err != nil {
		return err
	}
	return w.embed(ctx, passages[middle:])
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return apperr.Unreachable("the processor", ctx.Err())
	case <-time.After(d):
		return nil
	}
}
