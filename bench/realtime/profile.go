package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// profile saves a profile of the last gateway in the configured directory, as NAME-KIND.pprof. Only Parley's gateways
// have profiles.
func (b *bench) profile(ctx context.Context, s *stage, name, kind string, d time.Duration) error {
	if b.profiles == "" || !s.contender.profiled {
		return nil
	}
	url := "http://" + s.pprof + "/debug/pprof/" + kind
	if d > 0 {
		url += "?seconds=" + strconv.Itoa(max(1, int(d.Seconds())))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("fetching a profile: %w", err)
	}
	defer resp.Body.Close()
	file, err := os.Create(filepath.Join(b.profiles, name+"-"+kind+".pprof"))
	if err != nil {
		return err
	}
	_, err = io.Copy(file, resp.Body)
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}

// profiled runs load and concurrently records a CPU profile of duration d.
func (b *bench) profiled(ctx context.Context, s *stage, name string, d time.Duration, load func() error) error {
	fetched := make(chan error, 1)
	go func() { fetched <- b.profile(ctx, s, name, "profile", d) }()
	err := load()
	if failed := <-fetched; err == nil {
		err = failed
	}
	return err
}
