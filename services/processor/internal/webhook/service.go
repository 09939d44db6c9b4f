package webhook

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/webhook"
	"github.com/parley-chat/parley/services/processor/internal/guard"
)

// Store stores endpoints and deliveries; see [store.WebhookEndpoints] and [store.WebhookDeliveries].
type Store interface {
	WebhookEndpoint(ctx context.Context, id string) (webhook.Endpoint, error)
	UpdateWebhookEndpoint(ctx context.Context, e webhook.Endpoint) error
	store.WebhookDeliveries
}

// Cache answers look-ups; see [store.Cache].
type Cache interface {
	Webhooks(ctx context.Context, companyID string) (store.CompanyWebhooks, error)
	Chat(ctx context.Context, id string) (chat.Chat, error)
	Forget(kind, key string)
}

// Config holds the dependencies of a [Service].
type Config struct {
	Store      Store
	Cache      Cache
	Timeout    time.Duration  // of one request
	Concurrent int            // concurrent requests of all companies (package slots)
	PerTarget  int            // concurrent requests to one endpoint
	Allow      []netip.Prefix // addresses that are allowed although they are not public
	WarnAfter  time.Duration  // how long an endpoint fails before its first warning, and between warnings
	PollEvery  time.Duration  // interval of the polls for due deliveries
	Now        func() time.Time
	Logger     *slog.Logger
	Registerer prometheus.Registerer // nil: no metrics
}

const (
	// leaseFactor times the request timeout is the lease: the rest is for reading the endpoint and for writing the
	// result.
	leaseFactor = 3
	// stopGrace is how long requests may continue at shutdown.
	stopGrace = 5 * time.Second
	// insertsAtOnce bounds the deliveries of one event that are stored at once: a company has up to 50 endpoints, and
	// many events become deliveries at the same time.
	insertsAtOnce = 4
)

// Service turns events into deliveries and delivers them. Run may be called once. It is safe for concurrent use.
type Service struct {
	cfg      Config
	client   *http.Client
	limiters *limiters
	stored   *stored
	wake     chan struct{} // deliveries may be due
	metrics  *metrics

	mu       sync.Mutex
	stopping bool
	inHand   map[string]bool // ids of the deliveries that this process has started
	running  sync.WaitGroup

	requests context.Context // done when requests must end
	abort    context.CancelFunc
}

// New returns a service that has sent nothing yet.
func New(cfg Config) *Service {
	s := &Service{
		cfg:      cfg,
		client:   guard.NewClient(cfg.Allow, cfg.Timeout),
		limiters: newLimiters(cfg.Concurrent, cfg.PerTarget),
		stored: &stored{
			limit:  webhook.MaxStored,
			store:  cfg.Store,
			now:    cfg.Now,
			logger: cfg.Logger,
			of:     map[string]*storedBytes{},
		},
		wake:   make(chan struct{}, 1),
		inHand: map[string]bool{},
	}
	s.requests, s.abort = context.WithCancel(context.Background())
	s.metrics = newMetrics(cfg.Registerer, func() float64 { return float64(s.limiters.slots.Taken()) })
	return s
}

// Run sends due deliveries until ctx is done, and returns when all requests have ended.
func (s *Service) Run(ctx context.Context) error {
	s.poll(ctx)
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	defer time.AfterFunc(stopGrace, s.abort).Stop()
	s.running.Wait()
	s.abort()
	s.client.CloseIdleConnections()
	return nil
}

// begin reports whether this process may start the delivery. end must follow.
func (s *Service) begin(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping || s.inHand[id] {
		return false
	}
	s.inHand[id] = true
	s.running.Add(1)
	return true
}

func (s *Service) end(id string) {
	s.mu.Lock()
	delete(s.inHand, id)
	s.mu.Unlock()
	s.running.Done()
}

// look triggers a poll for due deliveries.
func (s *Service) look() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// deliver creates a delivery of an event for each subscribed endpoint of the company, and starts those that
// may be sent at once. at is when the bus stored the event: its order among the events of a chat. The endpoint except
// gets none: the event is about it. A repeat changes nothing.
func (s *Service) deliver(ctx context.Context, companyID string, ev webhook.Event, at time.Time, except string) error {
	hooks, err := s.cfg.Cache.Webhooks(ctx, companyID)
	if err != nil || len(hooks.Endpoints) == 0 {
		return err
	}
	hasRoom, err := s.stored.hasRoom(ctx, companyID)
	if err != nil {
		return err
	}
	if !hasRoom {
		s.metrics.dropped()
		return nil
	}
	body, err := ev.Body()
	if err != nil {
		return err
	}
	retention := s.stored.retention(companyID, hooks.Retention)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(insertsAtOnce)
	for _, e := range hooks.Endpoints {
		if !e.Wants(ev.Type) || e.ID == except || at.Before(e.CreatedAt) {
			continue
		}
		d := webhook.Delivery{
			ID:          webhook.DeliveryID(e.ID, ev),
			CompanyID:   companyID,
			EndpointID:  e.ID,
			EventType:   ev.Type,
			ChatID:      ev.ChatID,
			Body:        body,
			OrderNumber: at.UnixNano(),
			CreatedAt:   s.cfg.Now(),
			Status:      webhook.Pending,
		}
		if e.Ordered {
			d.OrderKey = ev.ChatID
		}
		group.Go(func() error { return s.insertAndStart(ctx, e, d, retention) })
	}
	return group.Wait()
}

// insertAndStart stores a delivery. One that may be sent at once is stored as claimed by this process, which starts its
// request.
func (s *Service) insertAndStart(
	ctx context.Context, e webhook.Endpoint, d webhook.Delivery, retention time.Duration,
) error {
	now := s.cfg.Now()
	d.DueAt = now
	if !e.Enabled() { // it can be replayed
		d.Status = webhook.Failed
		d.Reason = webhook.ReasonDisabled
		d.DueAt = time.Time{}
		d.ExpiresAt = now.Add(retention)
		_, err := s.put(ctx, d)
		return err
	}
	waits, err := s.hasEarlier(ctx, d)
	if err != nil {
		return err
	}
	if waits {
		_, err := s.put(ctx, d)
		return err
	}
	if !s.begin(d.ID) {
		_, err := s.put(ctx, d)
		return err
	}
	if !s.limiters.reserve(e.CompanyID, e.ID, now) {
		defer s.end(d.ID)
		_, err := s.put(ctx, d)
		return err
	}
	d.DueAt = now.Add(s.lease())
	inserted, err := s.put(ctx, d)
	if err != nil || !inserted { // after an error it may be stored: then it is due when the lease ends
		s.release(e.CompanyID, e.ID)
		s.end(d.ID)
		return err
	}
	go func() {
		defer s.end(d.ID)
		defer s.release(e.CompanyID, e.ID)
		s.attempt(e, d, retention)
	}()
	return nil
}

// hasEarlier reports whether a delivery must wait for an earlier one of its chat.
func (s *Service) hasEarlier(ctx context.Context, d webhook.Delivery) (bool, error) {
	if d.OrderKey == "" {
		return false, nil
	}
	first, err := s.cfg.Store.FirstWebhookDelivery(ctx, d.EndpointID, d.OrderKey)
	if apperr.Is(err, apperr.NotFound) {
		return false, nil
	}
	return err == nil && first.OrderNumber < d.OrderNumber, err
}

// put inserts and counts a delivery.
func (s *Service) put(ctx context.Context, d webhook.Delivery) (inserted bool, err error) {
	inserted, err = s.cfg.Store.InsertWebhookDelivery(ctx, d)
	if inserted {
		s.stored.added(d)
	}
	return inserted, err
}

func (s *Service) lease() time.Duration { return leaseFactor * s.cfg.Timeout }

func (s *Service) release(companyID, endpointID string) {
	if s.limiters.release(companyID, endpointID) {
		s.look()
	}
}

// attempt sends a claimed delivery once, and stores the result.
func (s *Service) attempt(e webhook.Endpoint, d webhook.Delivery, retention time.Duration) {
	r := s.call(s.requests, e, d)
	ctx := context.WithoutCancel(s.requests)
	if r.noAnswer && s.requests.Err() != nil { // shutdown: not the endpoint's fault
		err := s.cfg.Store.EndWebhookAttempt(ctx, d.ID, nil, webhook.Postponed(s.cfg.Now()))
		s.warn(ctx, "returning a delivery", err)
		return
	}
	now := s.cfg.Now()
	s.limiters.report(e.ID, now, r)
	outcome := outcomeOf(r, d.Tries+1, now, retention)
	r.attempt.NextAt = outcome.DueAt
	s.metrics.attempted(r, outcome)
	err := s.write(ctx, func() error { return s.cfg.Store.EndWebhookAttempt(ctx, d.ID, &r.attempt, outcome) })
	if err != nil {
		s.warn(ctx, "writing an attempt; it is repeated", err)
		return
	}
	s.updateHealth(ctx, e, r, now)
	s.advance(ctx, d, outcome)
}

// outcomeOf returns the state of a delivery after n attempts.
func outcomeOf(r result, tries int, now time.Time, retention time.Duration) webhook.Outcome {
	ended := webhook.Outcome{Status: webhook.Delivered, ExpiresAt: now.Add(retention)}
	switch {
	case r.succeeded():
		return ended
	case r.gone():
		ended.Status = webhook.Failed
		ended.Reason = webhook.ReasonGone
		return ended
	}
	pause, more := pauseAfter(tries)
	if !more {
		ended.Status = webhook.Failed
		ended.Reason = webhook.ReasonExhausted
		return ended
	}
	return webhook.Outcome{Status: webhook.Pending, DueAt: now.Add(max(pause, r.retryAfter))}
}

// advance makes the next delivery of an ordered chat due when one has ended.
func (s *Service) advance(ctx context.Context, d webhook.Delivery, o webhook.Outcome) {
	if d.OrderKey == "" || o.Status == webhook.Pending {
		return
	}
	s.warn(ctx, "advancing an order; it waits longer", s.advanceOrder(ctx, d))
	s.look()
}

// advanceOrder makes the first pending delivery of an order due now.
func (s *Service) advanceOrder(ctx context.Context, ended webhook.Delivery) error {
	first, err := s.cfg.Store.FirstWebhookDelivery(ctx, ended.EndpointID, ended.OrderKey)
	if apperr.Is(err, apperr.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.cfg.Store.EndWebhookAttempt(ctx, first.ID, nil, webhook.Postponed(s.cfg.Now()))
}

const (
	writeTries = 5
	writePause = 200 * time.Millisecond
)

// write retries storing the result of an attempt within the lease's slack.
func (s *Service) write(ctx context.Context, op func() error) (err error) {
	pause := writePause
	for range writeTries {
		err = op()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(pause):
		case <-s.requests.Done():
			return fmt.Errorf("stopping: %w", err)
		}
		pause *= 2
	}
	return err
}

// warn logs an error, if there is one.
func (s *Service) warn(ctx context.Context, operation string, err error) {
	if err != nil {
		s.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "webhook operation failed", slog.String("operation", operation),
			slog.String("error", apperr.LogText(err)))
	}
}
