package cutdisk

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// tree is the file system of one mount. It passes calls on to the backing folder.
type tree struct {
	backing string
	rename  Rename
	delay   atomic.Int64 // how long a sync takes, in nanoseconds
	full    atomic.Bool  // there is no space

	mu    sync.Mutex
	files map[uint64]*contents // by inode number; each has been changed and still has a name
}

// root returns the root of a new mount.
func (t *tree) root() (fs.InodeEmbedder, error) {
	var st syscall.Stat_t
	if err := syscall.Stat(t.backing, &st); err != nil {
		return nil, err
	}
	data := &fs.LoopbackRoot{
		Path: t.backing,
		Dev:  st.Dev,
		NewNode: func(data *fs.LoopbackRoot, _ *fs.Inode, _ string, st *syscall.Stat_t) fs.InodeEmbedder {
			return &node{LoopbackNode: fs.LoopbackNode{RootData: data}, tree: t, ino: st.Ino}
		},
	}
	root := data.NewNode(data, nil, "", &st)
	data.RootNode = root
	return root, nil
}

// contents returns the contents of an inode.
func (t *tree) contents(ino uint64) *contents {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.files[ino]
	if c == nil {
		c = &contents{}
		t.files[ino] = c
	}
	return c
}

// removed notes that a name of the inode is gone. The number may be given to another file now.
func (t *tree) removed(st syscall.Stat_t) {
	if st.Mode&syscall.S_IFMT != syscall.S_IFREG || st.Nlink > 1 {
		return
	}
	t.mu.Lock()
	c := t.files[st.Ino]
	delete(t.files, st.Ino)
	t.mu.Unlock()
	if c != nil {
		c.remove()
	}
}

// node is a file or folder. go-fuse uses a node again when an inode number is, so that a node holds no contents.
type node struct {
	fs.LoopbackNode
	tree *tree
	ino  uint64
}

func (n *node) path() string { return filepath.Join(n.tree.backing, n.Path(n.Root())) }

// Open opens the file. Every access goes through the mount, so that the kernel may keep its pages.
func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	handle, _, errno := n.LoopbackNode.Open(ctx, flags)
	if errno != 0 {
		return nil, 0, errno
	}
	return n.handle(handle, flags), fuse.FOPEN_KEEP_CACHE, 0
}

// Create creates and opens a file, unless the disk is full.
func (n *node) Create(
	ctx context.Context,
	name string,
	flags, mode uint32,
	out *fuse.EntryOut,
) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	if n.tree.full.Load() {
		return nil, nil, 0, syscall.ENOSPC
	}
	inode, handle, _, errno := n.LoopbackNode.Create(ctx, name, flags, mode, out)
	if errno != 0 {
		return nil, nil, 0, errno
	}
	return inode, inode.Operations().(*node).handle(handle, flags), fuse.FOPEN_KEEP_CACHE, 0
}

func (n *node) handle(of fs.FileHandle, flags uint32) *handle {
	fd, _ := of.(fs.FilePassthroughFder).PassthroughFd()
	return &handle{
		loopback: of.(loopback),
		fd:       fd,
		syncs:    flags&(syscall.O_SYNC|syscall.O_DSYNC) != 0,
		contents: n.tree.contents(n.ino),
		tree:     n.tree,
	}
}

// Setattr sets the length, among others.
func (n *node) Setattr(ctx context.Context, f fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	size, ok := in.GetSize()
	if !ok {
		return n.LoopbackNode.Setattr(ctx, f, in, out)
	}
	if h, open := f.(*handle); open {
		if errno := h.contents.truncate(h.fd, int64(size)); errno != 0 {
			return errno
		}
		return n.LoopbackNode.Setattr(ctx, f, in, out)
	}
	file, err := os.OpenFile(n.path(), os.O_WRONLY, 0)
	if err != nil {
		return errno(err)
	}
	defer file.Close()
	if errno := n.tree.contents(n.ino).truncate(int(file.Fd()), int64(size)); errno != 0 {
		return errno
	}
	return n.LoopbackNode.Setattr(ctx, f, in, out)
}

// Fsync syncs a file. A folder needs none: names are durable.
func (n *node) Fsync(_ context.Context, f fs.FileHandle, _ uint32) syscall.Errno {
	if h, ok := f.(*handle); ok {
		h.sync()
	}
	return 0
}

// Unlink removes a name.
func (n *node) Unlink(ctx context.Context, name string) syscall.Errno {
	var st syscall.Stat_t
	if err := syscall.Lstat(filepath.Join(n.path(), name), &st); err != nil {
		return errno(err)
	}
	errno := n.LoopbackNode.Unlink(ctx, name)
	if errno == 0 {
		n.tree.removed(st)
	}
	return errno
}

// Rename renames a file or folder. An exchange is refused.
func (n *node) Rename(ctx context.Context, name string, parent fs.InodeEmbedder, to string, flags uint32) syscall.Errno {
	if flags != 0 {
		return syscall.EINVAL
	}
	var from, over syscall.Stat_t
	if err := syscall.Lstat(filepath.Join(n.path(), name), &from); err != nil {
		return errno(err)
	}
	replaces := syscall.Lstat(filepath.Join(parent.(*node).path(), to), &over) == nil
	if replaces && n.tree.rename == Ordered && from.Mode&syscall.S_IFMT == syscall.S_IFREG {
		n.tree.contents(from.Ino).sync(0)
	}
	errno := n.LoopbackNode.Rename(ctx, name, parent, to, flags)
	if errno == 0 && replaces && from.Ino != over.Ino {
		n.tree.removed(over)
	}
	return errno
}

// CopyFileRange is refused: the program copies by itself.
func (n *node) CopyFileRange(
	context.Context, fs.FileHandle, uint64, *fs.Inode, fs.FileHandle, uint64, uint64, uint64,
) (uint32, syscall.Errno) {
	return 0, syscall.ENOSYS
}

// loopback is what passes through unchanged.
type loopback interface {
	fs.FileReader
	fs.FileReleaser
	fs.FileGetattrer
	fs.FileSetattrer
	fs.FileFlusher
	fs.FileLseeker
}

// handle is an open file.
type handle struct {
	loopback
	fd       int
	syncs    bool // each write is durable when it returns
	contents *contents
	tree     *tree
}

// Write writes, and syncs if the file was opened so.
func (h *handle) Write(_ context.Context, data []byte, offset int64) (uint32, syscall.Errno) {
	if h.tree.full.Load() {
		fits, err := h.fits(offset, len(data))
		if err != nil || fits == 0 && len(data) > 0 {
			return 0, cmp.Or(errno(err), syscall.ENOSPC)
		}
		data = data[:fits]
	}
	n, err := h.contents.write(h.fd, data, offset)
	if err != nil {
		return 0, errno(err)
	}
	if h.syncs {
		h.sync()
	}
	return uint32(n), 0
}

// fits returns how many of n bytes at an offset the file has already: a full disk takes them.
func (h *handle) fits(offset int64, n int) (int64, error) {
	var st syscall.Stat_t
	if err := syscall.Fstat(h.fd, &st); err != nil {
		return 0, err
	}
	return min(int64(n), max(0, st.Size-offset)), nil
}

func (h *handle) sync() { h.contents.sync(time.Duration(h.tree.delay.Load())) }

// Allocate reserves, zeroes or removes a range.
func (h *handle) Allocate(ctx context.Context, offset, size uint64, mode uint32) syscall.Errno {
	if h.tree.full.Load() && mode&unix.FALLOC_FL_PUNCH_HOLE == 0 {
		return syscall.ENOSPC
	}
	allocate := func() syscall.Errno { return h.loopback.(fs.FileAllocater).Allocate(ctx, offset, size, mode) }
	return h.contents.change(h.fd, int64(offset), int64(offset+size), allocate)
}

func errno(err error) syscall.Errno { return fs.ToErrno(err) }
