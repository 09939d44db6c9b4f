// Package engines starts and stops the embedded engines together: NATS, MongoDB and Redis, on the data folder.
package engines

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/parley-chat/parley/pkg/embedded"
	"github.com/parley-chat/parley/services/standalone/internal/datadir"
)

// Config is where the engines listen.
type Config struct {
	NATSAddr    string
	MongoDBAddr string
	RedisAddr   string
	Logger      *slog.Logger
}

// Set is three engines that run.
type Set struct {
	nats  *embedded.NATS
	mongo *embedded.MongoDB
	redis *embedded.Redis
}

// Start starts all engines, or none.
func Start(cfg Config, dir *datadir.Dir) (*Set, error) {
	s := new(Set)
	if err := s.start(cfg, dir); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

func (s *Set) start(cfg Config, dir *datadir.Dir) (err error) {
	s.nats, err = embedded.StartNATS(embedded.NATSConfig{Addr: cfg.NATSAddr, Dir: dir.Path("nats"), Logger: cfg.Logger})
	if err != nil {
		return fmt.Errorf("PARLEY_NATS_ADDR: %w", err)
	}
	s.mongo, err = embedded.StartMongoDB(embedded.MongoDBConfig{
		Addr: cfg.MongoDBAddr, Dir: dir.Path("mongodb"), Logger: slog.New(quiet{cfg.Logger.Handler()}),
	})
	if err != nil {
		return fmt.Errorf("PARLEY_MONGODB_ADDR: %w", err)
	}
	if s.redis, err = embedded.StartRedis(cfg.RedisAddr); err != nil {
		return fmt.Errorf("PARLEY_REDIS_ADDR: %w", err)
	}
	return nil
}

// NATSURL is where NATS clients connect.
func (s *Set) NATSURL() string { return s.nats.URL() }

// MongoDBURI is what MongoDB drivers connect to.
func (s *Set) MongoDBURI() string { return s.mongo.URI() }

// MongoDBAddress is where the embedded MongoDB is, in the shortest form that a driver understands: without options, since
// drivers find out by themselves what the engine lacks, and without characters that mean something to a shell.
func (s *Set) MongoDBAddress() string {
	address, _, _ := strings.Cut(s.mongo.URI(), "?")
	return address
}

// RedisURL is what Redis clients connect to.
func (s *Set) RedisURL() string { return s.redis.URL() }

// Stop stops what runs and returns when the data is closed.
func (s *Set) Stop() {
	if s.redis != nil {
		s.redis.Stop()
	}
	if s.mongo != nil {
		s.mongo.Stop()
	}
	if s.nats != nil {
		s.nats.Stop()
	}
}
