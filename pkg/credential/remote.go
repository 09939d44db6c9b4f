package credential

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
)

const (
	defaultRefresh = 3 * time.Minute
	defaultPause   = 3 * time.Second
	fetchTimeout   = 5 * time.Second
	maxJWKS        = 256 << 10
)

// RemoteKeysConfig configures [RemoteKeys].
type RemoteKeysConfig struct {
	URL     string        // of a JWK Set
	Client  *http.Client  // nil: http.DefaultTransport; a fetch always times out after five seconds
	Refresh time.Duration // how often the set is fetched; zero: every three minutes
	Pause   time.Duration // minimum time between two fetches for unknown keys; zero: three seconds
	Logger  *slog.Logger  // nil: no log
}

// RemoteKeys holds the public keys served by another service. Run fetches them periodically, and Key when a token names
// an unknown key; while the service is unavailable, the known keys stay valid. It is safe for concurrent use.
type RemoteKeys struct {
	cfg      RemoteKeysConfig
	keys     atomic.Pointer[remoteKeys] // nil until the first fetch
	refetch  chan struct{}              // holds a value if Run should fetch now
	fetching chan struct{}              // held while a fetch runs; guards the fields below
	lastErr  error                      // of the last fetch
	lastFor  time.Time                  // when a token last caused a fetch
}

type remoteKeys struct {
	byID map[string]ed25519.PublicKey
}

// NewRemoteKeys returns keys that are not fetched yet. It returns an error for an invalid cfg.
func NewRemoteKeys(cfg RemoteKeysConfig) (*RemoteKeys, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the address of the visitor keys must be an http or https URL")
	}
	if cfg.Client == nil {
		cfg.Client = &http.Client{}
	}
	if cfg.Refresh <= 0 {
		cfg.Refresh = defaultRefresh
	}
	if cfg.Pause <= 0 {
		cfg.Pause = defaultPause
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &RemoteKeys{cfg: cfg, fetching: make(chan struct{}, 1), refetch: make(chan struct{}, 1)}, nil
}

// Run fetches the keys every Pause until the first success, then every Refresh and after each Changed. It returns nil
// when ctx is done.
func (r *RemoteKeys) Run(ctx context.Context) error {
	away := false
	for {
		err := r.refresh(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the fetch failed because ctx is done
		}
		switch {
		case err != nil && !away:
			r.cfg.Logger.Warn("fetching visitor keys failed, retrying", "url", r.cfg.URL, "error", err.Error())
		case err == nil && away:
			r.cfg.Logger.Info("visitor keys fetched again", "url", r.cfg.URL)
		}
		away = err != nil
		wait := r.cfg.Refresh
		if away {
			wait = r.cfg.Pause
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		case <-r.refetch:
		}
	}
}

// Changed makes Run fetch the keys now.
func (r *RemoteKeys) Changed() {
	select {
	case r.refetch <- struct{}{}:
	default: // a fetch is already pending
	}
}

// Ready returns an error until the keys have been fetched once.
func (r *RemoteKeys) Ready(context.Context) error {
	if r.keys.Load() == nil {
		return errors.New("visitor keys have not been fetched yet")
	}
	return nil
}

// Key implements [KeySource].
func (r *RemoteKeys) Key(ctx context.Context, kid string) (ed25519.PublicKey, error) {
	if public, ok := r.known(kid); ok {
		return public, nil
	}
	if err := r.fetchFor(ctx, kid); err != nil {
		return nil, apperr.Unreachable("visitor keys", err)
	}
	if public, ok := r.known(kid); ok {
		return public, nil
	}
	return nil, ErrUnknownKey
}

func (r *RemoteKeys) known(kid string) (ed25519.PublicKey, bool) {
	keys := r.keys.Load()
	if keys == nil {
		return nil, false
	}
	public, ok := keys.byID[kid]
	return public, ok
}

// fetchFor fetches the keys because kid is unknown, unless another token caused a fetch within the last Pause: made-up
// kids must not put load on the other service. Its error is that of the last fetch. The fetch continues after its
// caller's context ends, since others wait for the same result.
func (r *RemoteKeys) fetchFor(ctx context.Context, kid string) error {
	if err := r.lock(ctx); err != nil {
		return err
	}
	defer r.unlock()
	if _, ok := r.known(kid); ok {
		return nil
	}
	if time.Since(r.lastFor) >= r.cfg.Pause {
		r.lastErr = r.fetch(context.WithoutCancel(ctx))
		r.lastFor = time.Now()
	}
	return r.lastErr
}

func (r *RemoteKeys) refresh(ctx context.Context) error {
	if err := r.lock(ctx); err != nil {
		return err
	}
	defer r.unlock()
	r.lastErr = r.fetch(ctx)
	return r.lastErr
}

func (r *RemoteKeys) lock(ctx context.Context) error {
	select {
	case r.fetching <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *RemoteKeys) unlock() { <-r.fetching }

// fetch gets the set and replaces the current one.
func (r *RemoteKeys) fetch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	keys, err := r.get(ctx)
	if err != nil {
		return err
	}
	byID := make(map[string]ed25519.PublicKey, len(keys))
	for _, k := range keys {
		byID[k.id] = k.public
	}
	r.keys.Store(&remoteKeys{byID: byID})
	return nil
}

func (r *RemoteKeys) get(ctx context.Context) ([]key, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.cfg.URL, nil)
	if err != nil {
		return nil, fmt.Errorf("fetching visitor keys: %w", err)
	}
	req.Header.Set("Accept", "application/jwk-set+json, application/json")
	resp, err := r.cfg.Client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("fetching visitor keys: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxJWKS))
	switch {
	case err != nil:
		return nil, fmt.Errorf("fetching visitor keys: %w", err)
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("fetching visitor keys: status %d", resp.StatusCode)
	}
	keys, err := parseJWKS(body)
	if err != nil {
		return nil, fmt.Errorf("fetching visitor keys: %w", err)
	}
	return keys, nil
}
