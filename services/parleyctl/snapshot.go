package parleyctl

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/inspect"
)

const (
	snapshotTime = "20060102T150405Z"
	unfinished   = ".unfinished-" // prefix of a backup that is being written
)

// snapshotName matches the folder name of a complete backup.
var snapshotName = regexp.MustCompile(`^\d{8}T\d{6}Z$`)

type savedView struct {
	Stream   string `json:"stream"`
	Messages uint64 `json:"messages"`
	Bytes    int64  `json:"bytes"`
	Path     string `json:"path"`
}

func printSaved(a *app, views []savedView) error {
	return printList(a, views,
		column[savedView]{"stream", func(v savedView) string { return v.Stream }},
		column[savedView]{"messages", func(v savedView) string { return strconv.FormatUint(v.Messages, 10) }},
		column[savedView]{"size", func(v savedView) string { return bytes(uint64(v.Bytes)) }},
		column[savedView]{"path", func(v savedView) string { return v.Path }})
}

// savedStreams are the streams in a backup: of events, and of files.
func savedStreams() []string { return append(inspect.StreamNames(), bus.FilesStream) }

func (a *app) streamsBackup() *cobra.Command {
	var to string
	var keep int
	c := &cobra.Command{
		Use: "backup", Short: "Save the streams with their consumers, also while they are in use", Args: exactArgs(),
		Long: `Save the streams, their durable consumers and the file store, also while they are in use, in JetStream's own format.

Each run creates a folder in --to with the time in UTC as its name. It appears when it is complete. It contains visitors' messages: only its owner can read it.
Back up the store after the streams, not before: events handled in between are then handled again after a restore, which is harmless.`,
		Example: `  parleyctl streams backup --to /backup/streams --keep 7`,
	}
	c.Flags().StringVar(&to, "to", "", "the folder of all backups")
	c.Flags().IntVar(&keep, "keep", 0, "number of backups to keep, this one included; 0: all")
	require(c, "to")
	checkFirst(c, func() error { return notNegative("--keep", keep) })
	return a.withBus(c, func(ctx context.Context, b *bus.Bus, _ []string) error {
		saved, err := saveStreams(ctx, b, to, a.Now())
		if err != nil {
			return err
		}
		if err := removeOld(to, keep); err != nil {
			return err
		}
		return printSaved(a, saved)
	})
}

// saveStreams writes a folder and renames it when it is complete.
func saveStreams(ctx context.Context, b *bus.Bus, to string, now time.Time) (views []savedView, err error) {
	name := now.UTC().Format(snapshotTime)
	draft, done := filepath.Join(to, unfinished+name), filepath.Join(to, name)
	if _, err := os.Lstat(done); err == nil {
		return nil, usage(done + " exists")
	}
	if err := os.MkdirAll(draft, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(draft))
		}
	}()
	for _, stream := range savedStreams() {
		view, err := saveStream(ctx, b, stream, filepath.Join(draft, stream))
		if apperr.Is(err, apperr.NotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("saving stream %s: %w", stream, err)
		}
		view.Path = filepath.Join(done, stream)
		views = append(views, view)
	}
	if len(views) == 0 {
		return nil, apperr.New(apperr.NotFound, "NO_STREAMS", "There is no stream of Parley; see streams apply")
	}
	return views, os.Rename(draft, done)
}

// saveStream writes path.snapshot and path.json.
func saveStream(ctx context.Context, b *bus.Bus, stream, path string) (view savedView, err error) {
	f, err := os.OpenFile(path+".snapshot", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return view, err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	s, err := b.SaveStream(ctx, stream, w)
	if err != nil {
		return view, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	if err := errors.Join(w.Flush(), f.Sync()); err != nil {
		return view, errors.Join(err, f.Close())
	}
	info, err := f.Stat()
	err = errors.Join(err, f.Close())
	if err != nil {
		return view, err
	}
	var state jetstream.StreamState
	if err := json.Unmarshal(s.State, &state); err != nil {
		return view, fmt.Errorf("reading the state: %w", err)
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return view, err
	}
	return savedView{Stream: stream, Messages: state.Msgs, Bytes: info.Size()}, os.WriteFile(path+".json", text, 0o600)
}

// backups lists the complete backups in a folder, the oldest first.
func backups(folder string) (names []string, err error) {
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		if e.IsDir() && snapshotName.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, err
}

func removeOld(folder string, keep int) error {
	names, err := backups(folder)
	if err != nil || keep == 0 || len(names) <= keep {
		return err
	}
	for _, name := range names[:len(names)-keep] {
		if err := os.RemoveAll(filepath.Join(folder, name)); err != nil {
			return fmt.Errorf("removing an old backup: %w", err)
		}
	}
	return nil
}

func (a *app) streamsRestore() *cobra.Command {
	var from string
	var replace, yes bool
	var replicas int
	c := &cobra.Command{
		Use: "restore", Short: "Restore the streams and their consumers from a backup", Args: exactArgs(),
		Long: `Restore the streams, their durable consumers and the file store from a backup of ` + "`streams backup`" + `. --from is one backup, or the folder of all
backups, of which the newest is used. Stop the services before, and restore the store first. If one of the streams exists, for example because
` + "`streams apply`" + ` has created it empty, nothing is restored, unless --replace deletes the existing ones with their messages.`,
		Example: `  parleyctl streams restore --from /backup/streams --replace`,
	}
	c.Flags().StringVar(&from, "from", "", "a backup, or the folder of all backups")
	c.Flags().BoolVar(&replace, "replace", false, "delete existing streams")
	c.Flags().IntVar(&replicas, "replicas", 0, "replicas of each stream; 0: as in the backup")
	addYesFlag(c, &yes)
	require(c, "from")
	checkFirst(c, func() error {
		names, err := backups(from)
		if err != nil {
			return usage(fmt.Sprintf("--from: %v", err))
		}
		if len(names) > 0 {
			from = filepath.Join(from, names[len(names)-1])
		}
		if !replace {
			return nil
		}
		return a.confirm(yes, "Existing streams are deleted with their messages and restored from %s.", from)
	})
	return a.withBus(c, func(ctx context.Context, b *bus.Bus, _ []string) error {
		restored, err := restoreStreams(ctx, b, from, replace, replicas)
		if err != nil {
			return err
		}
		return printSaved(a, restored)
	})
}

// readBackup returns the saved streams in a folder.
func readBackup(from string) (saved map[string]bus.Snapshot, err error) {
	saved = make(map[string]bus.Snapshot)
	for _, stream := range savedStreams() {
		text, err := os.ReadFile(filepath.Join(from, stream+".json"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var s bus.Snapshot
		if err == nil {
			err = json.Unmarshal(text, &s)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the backup of %s: %w", stream, err)
		}
		saved[stream] = s
	}
	if len(saved) == 0 {
		return nil, usage("there is no backup in " + from)
	}
	return saved, nil
}

// requireNone fails with the names of the streams that a restore would have to replace.
func requireNone(ctx context.Context, b *bus.Bus, saved map[string]bus.Snapshot, from string) error {
	var existing []string
	for _, stream := range savedStreams() {
		if _, ok := saved[stream]; !ok {
			continue
		}
		_, err := inspect.OpenStream(ctx, b, stream)
		if err == nil {
			existing = append(existing, stream)
		}
		if err != nil && !apperr.Is(err, apperr.NotFound) {
			return err
		}
	}
	if len(existing) == 0 {
		return nil
	}
	text := fmt.Sprintf("Nothing was restored: %s already exist. To delete them with their messages "+
		"and restore the backup: stop the services, then parleyctl streams restore --from %s --replace",
		strings.Join(existing, ", "), from)
	return apperr.New(apperr.Conflict, "STREAM_EXISTS", text)
}

// restoreStreams reads everything before it deletes anything, and restores all streams or, if one exists, none.
func restoreStreams(
	ctx context.Context,
	b *bus.Bus,
	from string,
	replace bool,
	replicas int,
) (views []savedView, err error) {
	saved, err := readBackup(from)
	if err != nil {
		return nil, err
	}
	if !replace {
		if err := requireNone(ctx, b, saved, from); err != nil {
			return nil, err
		}
	}
	for _, stream := range savedStreams() {
		s, ok := saved[stream]
		if !ok {
			continue
		}
		if replace {
			if err := b.DeleteStream(ctx, stream); err != nil {
				return views, err
			}
		}
		path := filepath.Join(from, stream+".snapshot")
		f, err := os.Open(path)
		if err != nil {
			return views, err
		}
		err = b.RestoreStream(ctx, stream, s, replicas, f)
		info, statErr := f.Stat()
		err = errors.Join(err, statErr, f.Close())
		if err != nil {
			return views, fmt.Errorf("restoring stream %s: %w", stream, err)
		}
		var state jetstream.StreamState
		if err := json.Unmarshal(s.State, &state); err != nil {
			return views, err
		}
		views = append(views, savedView{Stream: stream, Messages: state.Msgs, Bytes: info.Size(), Path: path})
	}
	return views, nil
}
