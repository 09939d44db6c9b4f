package parleyctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/apperr"
)

// keyFile says how the commands of keys and of secrets read and write their file; F is the opened file.
type keyFile[F any] struct {
	app      *app
	group    string                // of the commands
	setting  string                // that names the file
	flag     *string               // that names the file instead
	demo     func(settings) string // the file of the demo
	generate func() ([]byte, error)
	open     func(path string) (F, error)
	keys     func(F) []keyView
}

type keyView struct {
	ID           string    `json:"kid"`
	State        string    `json:"state"`
	CreatedAt    timestamp `json:"createdAt,omitzero"`
	SupersededAt timestamp `json:"supersededAt,omitzero"`
}

func keyColumns() []column[keyView] {
	return []column[keyView]{
		{"kid", func(v keyView) string { return v.ID }},
		{"state", func(v keyView) string { return v.State }},
		{"created", func(v keyView) string { return v.CreatedAt.String() }},
		{"superseded", func(v keyView) string { return v.SupersededAt.String() }},
	}
}

// path returns the path of the flag, of the environment, or of the demo.
func (k keyFile[F]) path() (string, error) {
	if path := cmp.Or(*k.flag, k.app.Getenv(k.setting)); path != "" {
		return path, nil
	}
	s, err := k.app.settings()
	if err != nil || k.demo(s) == "" {
		return "", usage(k.setting + " is not set, nor --file, and this is not the folder of a demo (make run)")
	}
	return k.demo(s), nil
}

// read opens the existing file.
func (k keyFile[F]) read() (file F, err error) {
	path, err := k.path()
	if err != nil {
		return file, err
	}
	file, err = k.open(path)
	if errors.Is(err, fs.ErrNotExist) {
		text := "There is no key file " + path + "; see " + k.group + " generate"
		return file, apperr.New(apperr.NotFound, "NO_KEY_FILE", text)
	}
	return file, err
}

func (k keyFile[F]) print(file F) error { return printList(k.app, k.keys(file), keyColumns()...) }

// change makes c run do with the file and print its keys.
func (k keyFile[F]) change(c *cobra.Command, do func(context.Context, F) error) *cobra.Command {
	if c.Args == nil {
		c.Args = exactArgs()
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		file, err := k.read()
		if err != nil {
			return err
		}
		if err := do(c.Context(), file); err != nil {
			return err
		}
		return k.print(file)
	}
	return c
}

// list makes c print the keys.
func (k keyFile[F]) list(c *cobra.Command) *cobra.Command {
	c.Aliases = []string{"ls"}
	return k.change(c, func(context.Context, F) error { return nil })
}

// create makes c create the file.
func (k keyFile[F]) create(c *cobra.Command) *cobra.Command {
	var ifMissing bool
	c.Flags().BoolVar(&ifMissing, "if-missing", false, "succeed if the file exists, and show its keys")
	c.Args = exactArgs()
	c.RunE = func(*cobra.Command, []string) error {
		path, err := k.path()
		if err != nil {
			return err
		}
		keys, err := k.generate()
		if err != nil {
			return err
		}
		if err := createFile(path, keys); err != nil && (!ifMissing || !apperr.Is(err, apperr.Conflict)) {
			return err
		}
		file, err := k.open(path)
		if err != nil {
			return err
		}
		return k.print(file)
	}
	return c
}

// createFile creates a new file that only its owner can read.
func createFile(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return apperr.New(apperr.Conflict, "KEY_FILE_EXISTS", path+" exists already; rotate its keys instead")
	}
	if err != nil {
		return fmt.Errorf("creating the key file: %w", err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return errors.Join(fmt.Errorf("writing the key file: %w", err), os.Remove(path))
	}
	return nil
}
