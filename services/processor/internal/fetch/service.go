package fetch

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/services/processor/internal/fairshare"
)

const (
	// concurrent bounds the fetches of one process; one company gets at most half. Each takes some megabytes.
	concurrent = 4
	// fetchTimeout bounds a fetch with its redirects, its robots.txt and the turns of its hosts.
	fetchTimeout = 2 * time.Minute
	// lease is how long a document is claimed: a fetch, and the write of its result.
	lease = 5 * time.Minute
	// pollEvery is the interval of the polls, and so the longest delay of a fetch that has a slot.
	pollEvery = time.Second
)

// Store stores documents; see [store.Documents] and [store.DocumentFetches].
type Store interface {
	PutDocument(ctx context.Context, d knowledge.Document, passages []knowledge.Passage) error
	DocumentUsage(ctx context.Context, companyID string) (knowledge.Usage, error)
	store.DocumentFetches
}

// Config holds the dependencies of a [Service].
type Config struct {
	Store      Store
	Allow      []netip.Prefix // addresses that are allowed although they are not public
	Now        func() time.Time
	Logger     *slog.Logger
	Registerer prometheus.Registerer // nil: no metrics
}

// Service fetches due documents. Run may be called once.
type Service struct {
	cfg     Config
	client  *client
	slots   *fairshare.Pool
	running sync.WaitGroup
	fetches *prometheus.CounterVec
}

// Results of a fetch in metrics.
const (
	resultChanged   = "changed"
	resultUnchanged = "unchanged"
	resultFailed    = "failed"
)

// New returns a service that has fetched nothing yet.
func New(cfg Config) *Service {
	s := &Service{
		cfg:    cfg,
		client: newClient(cfg.Allow, hostPause, cfg.Now),
		slots:  fairshare.New(concurrent),
		fetches: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parley_document_fetches_total",
			Help: "Fetches of documents from their addresses by result: changed, unchanged or failed.",
		}, []string{"result"}),
	}
	for _, result := range []string{resultChanged, resultUnchanged, resultFailed} {
		s.fetches.WithLabelValues(result)
	}
	if cfg.Registerer != nil {
		cfg.Registerer.MustRegister(s.fetches)
	}
	return s
}

// Run fetches due documents until ctx is done, and returns when all fetches have ended. Those that it breaks off are due
// at once, for another process.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	isFailing := false
	for ctx.Err() == nil {
		err := s.startDue(ctx)
		if (err != nil) != isFailing && ctx.Err() == nil {
			isFailing = err != nil
			s.warn(ctx, "looking for due documents", err)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	s.running.Wait()
	s.client.http.CloseIdleConnections()
	return nil
}

// startDue starts due fetches, until no slot is free. A company that has its share of the slots hides no others.
func (s *Service) startDue(ctx context.Context) error {
	var full []string // companies
	for {
		free := concurrent - s.slots.Taken()
		if free == 0 {
			return nil
		}
		due, err := s.cfg.Store.DueDocuments(ctx, s.cfg.Now(), full, free)
		if err != nil || len(due) == 0 {
			return err
		}
		for _, d := range due {
			if !s.slots.Take(d.CompanyID) {
				if !slices.Contains(full, d.CompanyID) {
					full = append(full, d.CompanyID)
				}
				continue
			}
			if err := s.start(ctx, d); err != nil {
				return err
			}
		}
	}
}

// start claims a document, for which the company has a slot, and fetches it in a new goroutine.
func (s *Service) start(ctx context.Context, due knowledge.Due) error {
	now := s.cfg.Now()
	d, claimed, err := s.cfg.Store.ClaimDocument(ctx, due.ID, now, now.Add(lease))
	if err != nil || !claimed { // not claimed: another process was faster
		s.slots.Release(due.CompanyID)
		return err
	}
	s.running.Go(func() {
		defer s.slots.Release(due.CompanyID)
		s.refresh(ctx, d)
	})
	return nil
}

// refresh fetches a claimed document and writes the result.
func (s *Service) refresh(ctx context.Context, d knowledge.Document) {
	fetching, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	a, err := s.client.fetch(fetching, d)
	writing := context.WithoutCancel(ctx)
	if err != nil && ctx.Err() != nil { // shutdown: not the server's fault
		d.Source.DueAt = store.UTC(s.cfg.Now())
		s.warn(writing, "returning a document", s.putSource(writing, d))
		return
	}
	if err != nil {
		s.warn(writing, "writing why a document was not fetched; it is repeated", s.putFailure(writing, d, failureOf(err)))
		return
	}
	s.warn(writing, "writing a fetched document; it is repeated", s.putAnswer(writing, d, a))
}

// failureOf returns the failure of a fetch. Without one, it took too long.
func failureOf(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	return fail(knowledge.FetchNoAnswer, "The server did not answer in time")
}

func (s *Service) putFailure(ctx context.Context, d knowledge.Document, f *failure) error {
	now := store.UTC(s.cfg.Now())
	d.Source.Failures++
	d.Source.Failure = knowledge.FetchFailure{Code: f.code, Message: f.message, At: now}
	d.Source.DueAt = d.Source.NextFetch(now, f.retryAfter)
	s.fetches.WithLabelValues(resultFailed).Inc()
	return s.putSource(ctx, d)
}

// putAnswer writes what the server has. A text that the document has already changes nothing of it.
func (s *Service) putAnswer(ctx context.Context, d knowledge.Document, a answer) error {
	before := d
	now := store.UTC(s.cfg.Now())
	d.Source.Failures = 0
	d.Source.Failure = knowledge.FetchFailure{}
	d.Source.FetchedAt = now
	d.Source.DueAt = d.Source.NextFetch(now, 0)
	if !a.unchanged {
		d.Source.ETag, d.Source.Modified = a.etag, a.modified
		d.Text, d.Bytes, d.Format = a.text, len(a.text), a.format
		if d.Title == knowledge.AddressTitle(d.Address) && a.title != "" {
			d.Title = a.title
		}
	}
	if d.Text == before.Text && d.Format == before.Format && d.Title == before.Title {
		s.fetches.WithLabelValues(resultUnchanged).Inc()
		return s.putSource(ctx, d)
	}
	used, err := s.cfg.Store.DocumentUsage(ctx, d.CompanyID)
	if err != nil {
		return err
	}
	if err := used.Check(d, before); err != nil {
		return s.putFailure(ctx, before, fail(knowledge.FetchNoRoom, apperr.TooManyDocuments.Message))
	}
	passages := knowledge.Cut(d)
	d.Passages = len(passages)
	d.UpdatedAt = now
	s.fetches.WithLabelValues(resultChanged).Inc()
	return ignoreChanged(s.cfg.Store.PutDocument(ctx, d, passages))
}

func (s *Service) putSource(ctx context.Context, d knowledge.Document) error {
	return ignoreChanged(s.cfg.Store.PutDocumentSource(ctx, d.ID, d.Revision, d.Source))
}

// ignoreChanged removes the error of a document that somebody has changed or removed since it was claimed: the result
// belongs to what it was before. If it still has a schedule, it is due when the lease ends.
func ignoreChanged(err error) error {
	if apperr.ReasonOf(err) == apperr.ChangedMeanwhile.Reason {
		return nil
	}
	return err
}

// warn logs an error, if there is one.
func (s *Service) warn(ctx context.Context, operation string, err error) {
	if err != nil {
		s.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "fetching documents failed", slog.String("operation", operation),
			slog.String("error", apperr.LogText(err)))
	}
}
