package streamsync

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// blocks are the files of a stream: 1.blk, 2.blk, ... The server appends to the newest, and removes, truncates or
// replaces the others as events expire or are erased.
type blocks struct {
	dir      string
	syncFile func(*os.File) error
	number   uint64   // of the newest block of the last sync
	newest   *os.File // nil: not known
}

// sync syncs all blocks that the server may have written since the last call.
func (b *blocks) sync() error {
	for {
		if b.newest == nil {
			return b.syncAll()
		}
		if err := b.syncFile(b.newest); err != nil {
			b.close() // the kernel reports a failed write once: the next call must not take the file for good
			return fmt.Errorf("syncing: %w", err)
		}
		current, err := b.isCurrent()
		if err != nil || current {
			return err
		}
		if err := b.advance(); err != nil {
			return err
		}
	}
}

// isCurrent reports whether the newest block is still the newest, and the file of its name.
func (b *blocks) isCurrent() (bool, error) {
	_, err := os.Stat(b.path(b.number + 1))
	if err == nil {
		return false, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("looking for the next block: %w", err)
	}
	return b.isOpen(), nil
}

// isOpen reports whether the open file still has its name.
func (b *blocks) isOpen() bool {
	opened, err := b.newest.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(b.path(b.number))
	return err == nil && os.SameFile(opened, named)
}

// advance opens the next block, or forgets the newest if the server has replaced or removed it.
func (b *blocks) advance() error {
	replaced := !b.isOpen()
	b.close()
	if replaced {
		return nil
	}
	next, err := os.Open(b.path(b.number + 1))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed again
	}
	if err != nil {
		return fmt.Errorf("opening the next block: %w", err)
	}
	if err := syncDirectory(b.dir); err != nil {
		return errors.Join(err, next.Close())
	}
	b.number++
	b.newest = next
	return nil
}

// syncAll syncs every block, and the directory, and keeps the newest open.
func (b *blocks) syncAll() error {
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		return fmt.Errorf("listing the blocks: %w", err)
	}
	for _, e := range entries {
		number, ok := numberOf(e.Name())
		if !ok {
			continue
		}
		if err := b.syncBlock(number); err != nil {
			return err
		}
	}
	if err := syncDirectory(b.dir); err != nil {
		return err
	}
	if b.newest == nil {
		return nil // the server has written no event yet
	}
	current, err := b.isCurrent()
	if err == nil && !current {
		b.close()
		return b.syncAll()
	}
	return err
}

// syncBlock syncs one block, and keeps it open if it is the newest so far.
func (b *blocks) syncBlock(number uint64) error {
	f, err := os.Open(b.path(number))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // its events have expired
	}
	if err != nil {
		return fmt.Errorf("opening a block: %w", err)
	}
	if err := b.syncFile(f); err != nil {
		return errors.Join(fmt.Errorf("syncing: %w", err), f.Close())
	}
	if b.newest != nil && number < b.number {
		return f.Close()
	}
	b.close()
	b.newest = f
	b.number = number
	return nil
}

func (b *blocks) close() {
	if b.newest != nil {
		_ = b.newest.Close() // only read
		b.newest = nil
	}
}

func (b *blocks) path(number uint64) string {
	return filepath.Join(b.dir, strconv.FormatUint(number, 10)+".blk")
}

// numberOf returns the number in the name of a block.
func numberOf(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, ".blk")
	if !ok {
		return 0, false
	}
	number, err := strconv.ParseUint(digits, 10, 64)
	return number, err == nil
}

// syncDirectory makes the names of new files durable.
func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("opening the directory of the blocks: %w", err)
	}
	if err := d.Sync(); err != nil {
		return errors.Join(fmt.Errorf("syncing the directory of the blocks: %w", err), d.Close())
	}
	return d.Close()
}
