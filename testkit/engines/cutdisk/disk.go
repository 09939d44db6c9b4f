package cutdisk

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// Rename is what a rename over an existing file does with the unsynced content of its source.
type Rename string

// The values of Rename.
const (
	Ordered Rename = "ordered" // makes it durable first
	Strict  Rename = "strict"  // nothing
)

// Config configures a disk.
type Config struct {
	Backing   string        // the folder with the content; what is in it at the start counts as synced
	Mount     string        // the folder where programs find it
	Rename    Rename        // empty: Ordered
	SyncDelay time.Duration // how long a sync takes
}

// Disk is a mounted disk. Mount, Unmount and Cut must not be called at the same time.
type Disk struct {
	cfg    Config
	tree   *tree
	server *fuse.Server // nil: not mounted
}

// Lost says what a cut has taken from a file.
type Lost struct {
	Path     string // below the root
	From, To int64  // its length before and after
	Bytes    int64  // appended bytes, and the size of overwritten pages
}

// Mount mounts a disk.
func Mount(cfg Config) (*Disk, error) {
	cfg.Rename = cmp.Or(cfg.Rename, Ordered)
	if cfg.Rename != Ordered && cfg.Rename != Strict {
		return nil, fmt.Errorf("unknown rename %q", cfg.Rename)
	}
	backing, err := filepath.Abs(cfg.Backing)
	if err != nil {
		return nil, err
	}
	d := &Disk{
		cfg:  cfg,
		tree: &tree{backing: backing, rename: cfg.Rename, files: map[uint64]*contents{}},
	}
	d.Slow(cfg.SyncDelay)
	return d, d.mount()
}

func (d *Disk) mount() error {
	root, err := d.tree.root()
	if err != nil {
		return err
	}
	// Only this mount changes the backing folder, so that the kernel may keep what it knows.
	valid := time.Hour
	d.server, err = fs.Mount(d.cfg.Mount, root, &fs.Options{
		AttrTimeout:  &valid,
		EntryTimeout: &valid,
		MountOptions: fuse.MountOptions{
			DirectMount:   true, // without a helper program if root
			FsName:        "cutdisk",
			Name:          "cutdisk",
			MaxWrite:      1 << 20,
			DisableXAttrs: true,
		},
	})
	if err != nil {
		return fmt.Errorf("mounting on %s: %w", d.cfg.Mount, err)
	}
	return nil
}

const (
	// busyTime is how long a file may still be open that a program, or a child of it, has just closed.
	busyTime = 5 * time.Second
	busyWait = 20 * time.Millisecond
)

// Unmount unmounts the disk. It fails while a file is open.
func (d *Disk) Unmount() error {
	if d.server == nil {
		return nil
	}
	err := d.server.Unmount()
	for end := time.Now().Add(busyTime); err != nil && time.Now().Before(end); err = d.server.Unmount() {
		time.Sleep(busyWait)
	}
	if err != nil {
		return fmt.Errorf("unmounting %s: %w", d.cfg.Mount, err)
	}
	d.server = nil
	return nil
}

// Slow sets how long a sync takes from now on.
func (d *Disk) Slow(delay time.Duration) { d.tree.delay.Store(int64(delay)) }

// Fill fills the disk, or frees it. A full one takes what replaces content, and neither new files nor longer ones: they
// get ENOSPC.
func (d *Disk) Fill(full bool) { d.tree.full.Store(full) }

// Cut cuts the power: it takes back what was not synced, and mounts the disk again. No file may be open: a power
// failure ends all programs. With chance, each file is taken back with a probability of one half.
//
// It returns the files that have lost something, by path.
func (d *Disk) Cut(chance *rand.Rand) ([]Lost, error) {
	if err := d.Unmount(); err != nil { // the kernel writes its dirty pages of mapped files first
		return nil, err
	}
	lost, err := d.tree.cut(chance)
	return lost, errors.Join(err, d.mount())
}

func (t *tree) cut(chance *rand.Rand) (all []Lost, err error) {
	byPath := map[string]*contents{}
	var paths []string
	for _, c := range t.files {
		if path := c.path(); path != "" {
			byPath[path] = c
			paths = append(paths, path)
		}
	}
	slices.Sort(paths) // chance meets them in the same order each time
	for _, path := range paths {
		if chance != nil && chance.IntN(2) == 0 {
			byPath[path].sync(0)
			continue
		}
		lost, err := byPath[path].restore()
		if err != nil {
			return all, fmt.Errorf("restoring %s: %w", path, err)
		}
		lost.Path, err = filepath.Rel(t.backing, path)
		if err != nil {
			return all, err
		}
		if lost.Bytes > 0 {
			all = append(all, lost)
		}
	}
	clear(t.files)
	return all, nil
}
