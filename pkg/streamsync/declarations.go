package streamsync

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// sweepInterval is how long the declaration of a new stream or consumer may be in memory only.
const sweepInterval = time.Second

// Run syncs the declarations of streams and consumers as they change, until ctx is done. nats-server replaces these
// files and does not sync them; without its declaration it ignores a stream, and a consumer starts at the first event
// again. The declaration of a stream is also synced by the first [Syncer.Sync] of the stream. Errors are passed to
// failed, and the file is tried again.
func (s *Syncer) Run(ctx context.Context, failed func(error)) {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	synced := make(map[string]os.FileInfo)
	for {
		var err error
		synced, err = s.sweep(synced)
		if err != nil {
			failed(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// sweep syncs the declarations that differ from those of the last sweep, and returns them all.
func (s *Syncer) sweep(before map[string]os.FileInfo) (synced map[string]os.FileInfo, err error) {
	synced = make(map[string]os.FileInfo, len(before))
	for _, pattern := range []string{"jetstream/*/streams/*", "jetstream/*/streams/*/obs/*"} {
		dirs, globErr := fs.Glob(os.DirFS(s.dir), pattern)
		if globErr != nil {
			return before, fmt.Errorf("looking for declarations: %w", globErr)
		}
		for _, dir := range dirs {
			err = errors.Join(err, s.sweepDirectory(filepath.Join(s.dir, dir), before, synced))
		}
	}
	return synced, err
}

// sweepDirectory syncs the declaration of a stream or a consumer unless before has it, and adds it to synced.
func (s *Syncer) sweepDirectory(dir string, before, synced map[string]os.FileInfo) error {
	for _, name := range declaration {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // not written yet, or deleted
		}
		if err != nil {
			return fmt.Errorf("looking for a declaration: %w", err)
		}
		old := before[path]
		if old == nil || !os.SameFile(old, info) || !old.ModTime().Equal(info.ModTime()) {
			if err := s.syncDeclared(path); err != nil {
				return err
			}
		}
		synced[path] = info
	}
	return nil
}

// declaration is the files of a declaration.
var declaration = []string{"meta.inf", "meta.sum"}

// syncDeclaration syncs the declaration of a stream, with the directories that lead to it.
func (s *Syncer) syncDeclaration(dir string) error {
	for _, name := range declaration {
		if err := s.syncDeclared(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	for dir != s.dir {
		dir = filepath.Dir(dir)
		if err := syncDirectory(dir); err != nil {
			return err
		}
	}
	return nil
}

// syncDeclared syncs one file and its name.
func (s *Syncer) syncDeclared(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("opening a declaration: %w", err)
	}
	if err := s.syncFile(f); err != nil {
		return errors.Join(fmt.Errorf("syncing a declaration: %w", err), f.Close())
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("closing a declaration: %w", err)
	}
	return syncDirectory(filepath.Dir(path))
}
