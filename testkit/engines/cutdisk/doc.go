// Package cutdisk is a disk whose power can be cut: a FUSE file system over a folder that forgets, at a cut, what
// no program has synced. It can be slow and full, too.
//
// Reading order: contents.go (one file: what was not yet synced), tree.go (the file system: which call changes
// which file), disk.go (mount, cut, unmount). cmd/cutdisk is the program that end-to-end tests start.
//
// The model, where "synced" means fsync, fdatasync or a write to a file opened with O_SYNC or O_DSYNC:
//
//   - A file has its last synced content and length after a cut. A file that was never synced is empty.
//   - Names are durable at once: creating, renaming and removing survive without a sync of the folder, as if the
//     file system's journal had been written a moment before the cut.
//   - A rename over an existing file syncs the source first (Ordered: ext4 with auto_da_alloc, its default), or
//     does not (Strict: XFS). A rename to a new name syncs nothing in both.
//   - Cut takes back every file, or only some files by seed: a kernel writes dirty pages when it wants, so a file
//     may survive that was written after one that does not.
//   - A program that waits in a sync when the power fails has no guarantee: content is durable when the sync returns.
//
// What it does not model: torn pages, lost names, syncfs and sync (FUSE does not report them; they sync nothing
// here), modes and times.
package cutdisk
