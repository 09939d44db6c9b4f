package cutdisk

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const pageSize = 4096

// contents is the content of one file that was changed through the mount. The backing file always has the
// current content. The layers restore the synced one.
type contents struct {
	mu     sync.Mutex
	layers []*layer
	first  int      // the number of layers[0]
	sealed bool     // a sync has begun since the last change: the next change begins a layer
	file   *os.File // of the backing file, while there are layers
	gone   bool     // it has no name any more: nothing to restore
}

// layer restores a file to a moment. Invariant: a byte below length that has changed since the moment is in a
// saved page.
type layer struct {
	length int64
	pages  map[int64][]byte // by number; the last one ends at length
}

// write writes at an offset of the backing file's descriptor.
func (c *contents) write(fd int, data []byte, offset int64) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.save(fd, offset, offset+int64(len(data))); err != nil {
		return 0, err
	}
	return syscall.Pwrite(fd, data, offset)
}

// change runs a change of the backing file that may touch bytes from start to end, and its length.
func (c *contents) change(fd int, start, end int64, change func() syscall.Errno) syscall.Errno {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.save(fd, start, end); err != nil {
		return syscall.EIO
	}
	return change()
}

// save saves the pages from start to end that the last layer does not have. The caller holds mu.
func (c *contents) save(fd int, start, end int64) error {
	if c.gone {
		return nil
	}
	if len(c.layers) == 0 || c.sealed {
		if err := c.begin(fd); err != nil {
			return err
		}
	}
	last := c.layers[len(c.layers)-1]
	end = min(end, last.length)
	for n := start / pageSize; n*pageSize < end; n++ {
		if last.pages[n] != nil {
			continue
		}
		page := make([]byte, min(pageSize, last.length-n*pageSize))
		got, err := c.file.ReadAt(page, n*pageSize)
		if got < len(page) {
			return fmt.Errorf("saving page %d: %w", n, err)
		}
		last.pages[n] = page
	}
	return nil
}

// begin begins a layer at the current content.
func (c *contents) begin(fd int) error {
	if c.file == nil {
		// fd may be write-only, and is closed before the cut.
		file, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		c.file = file
	}
	info, err := c.file.Stat()
	if err != nil {
		return err
	}
	c.layers = append(c.layers, &layer{length: info.Size(), pages: map[int64][]byte{}})
	c.sealed = false
	return nil
}

// sync makes the content at its call durable after delay. Content that is written meanwhile waits for the next sync.
func (c *contents) sync(delay time.Duration) {
	c.mu.Lock()
	c.sealed = true
	end := c.first + len(c.layers)
	c.mu.Unlock()
	if delay > 0 {
		time.Sleep(delay)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if done := end - c.first; done > 0 { // otherwise a later sync has finished before this one
		c.layers = c.layers[done:]
		c.first = end
	}
	c.closeIfClean()
}

// remove forgets everything: the file has lost its last name.
func (c *contents) remove() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
	c.first += len(c.layers)
	c.layers = nil
	c.closeIfClean()
}

func (c *contents) closeIfClean() {
	if len(c.layers) == 0 && c.file != nil {
		c.file.Close()
		c.file = nil
	}
}

// path returns the current path of a file with unsynced content; empty without.
func (c *contents) path() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.layers) == 0 {
		return ""
	}
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", c.file.Fd()))
	if err != nil {
		return c.file.Name()
	}
	return path
}

// restore takes back what was not synced. It returns the lengths before and after, and the number of bytes that
// were appended or overwritten.
func (c *contents) restore() (lost Lost, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.layers) == 0 {
		return lost, nil
	}
	info, err := c.file.Stat()
	if err != nil {
		return lost, err
	}
	lost.From = info.Size()
	lost.To = c.layers[0].length
	lost.Bytes = max(0, lost.From-lost.To)
	for n := len(c.layers) - 1; n >= 0; n-- {
		if err := c.file.Truncate(c.layers[n].length); err != nil {
			return lost, err
		}
		for number, page := range c.layers[n].pages {
			if _, err := c.file.WriteAt(page, number*pageSize); err != nil {
				return lost, err
			}
		}
	}
	for _, page := range c.layers[0].pages {
		lost.Bytes += int64(len(page))
	}
	c.first += len(c.layers)
	c.layers = nil
	c.closeIfClean()
	return lost, nil
}

// truncate sets the length of the backing file.
func (c *contents) truncate(fd int, length int64) syscall.Errno {
	const end = 1<<63 - 1
	return c.change(fd, length, end, func() syscall.Errno { return errno(unix.Ftruncate(fd, length)) })
}
