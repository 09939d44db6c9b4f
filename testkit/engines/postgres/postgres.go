// Package postgres runs a PostgreSQL server for a test, in a temporary folder, on a socket in that folder.
package postgres

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// Server is a running PostgreSQL.
type Server struct {
	dir     string
	process *exec.Cmd
	exited  chan struct{}
	failure error // why it exited; valid when exited is closed
}

// ErrMissing means that PostgreSQL is not installed.
var ErrMissing = errors.New("missing: postgres and initdb (Debian package postgresql)")

// Start creates a cluster in a temporary folder and returns when the server accepts connections. PostgreSQL
// refuses to run as root; then it runs as the user nobody.
func Start() (*Server, error) {
	initdb, postgres := find("initdb"), find("postgres")
	if initdb == "" || postgres == "" {
		return nil, ErrMissing
	}
	attributes, err := unprivileged()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "parley-postgres-")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, exited: make(chan struct{})}
	if err := s.run(initdb, postgres, attributes); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	return s, nil
}

func (s *Server) run(initdb, postgres string, attributes *syscall.SysProcAttr) error {
	if c := attributes.Credential; c != nil {
		if err := os.Chown(s.dir, int(c.Uid), int(c.Gid)); err != nil {
			return err
		}
	}
	data := filepath.Join(s.dir, "data")
	create := exec.Command(initdb, "--pgdata", data, "--username", "parley", "--auth", "trust", "--no-sync", "--encoding", "UTF8", "--locale", "C")
	create.SysProcAttr, create.Dir = attributes, s.dir
	if out, err := create.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	s.process = exec.Command(postgres, "-D", data, "-k", s.dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=200")
	s.process.SysProcAttr, s.process.Dir, s.process.Stdout, s.process.Stderr = attributes, s.dir, log, log
	if err := s.process.Start(); err != nil {
		return err
	}
	go func() {
		s.failure = s.process.Wait()
		close(s.exited)
	}()
	return s.await()
}

// await returns when the server's status file reports that it is ready.
func (s *Server) await() error {
	const lineOfStatus = 7 // postmaster.pid, "LOCK_FILE_LINE_PM_STATUS" minus one
	deadline, probe := time.NewTimer(30*time.Second), time.NewTicker(10*time.Millisecond)
	defer deadline.Stop()
	defer probe.Stop()
	for {
		text, err := os.ReadFile(filepath.Join(s.dir, "data", "postmaster.pid"))
		if lines := splitLines(text); err == nil && len(lines) > lineOfStatus && lines[lineOfStatus] == "ready" {
			return nil
		}
		select {
		case <-probe.C:
		case <-s.exited:
			log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("postgres: %w: %s", s.failure, log)
		case <-deadline.C:
			s.Stop()
			return errors.New("postgres: not ready after 30 s")
		}
	}
}

func splitLines(text []byte) (lines []string) {
	for len(text) > 0 {
		end := slices.Index(text, '\n')
		if end < 0 {
			end = len(text) - 1
		}
		line := text[:end]
		for len(line) > 0 && line[len(line)-1] == ' ' {
			line = line[:len(line)-1]
		}
		lines = append(lines, string(line))
		text = text[end+1:]
	}
	return lines
}

// URL returns the URL of a database for PostgreSQL drivers.
func (s *Server) URL(database string) string {
	u := url.URL{Scheme: "postgres", User: url.User("parley"), Path: "/" + database, RawQuery: url.Values{"host": {s.dir}}.Encode()}
	return u.String()
}

// Stop ends the server and removes its data.
func (s *Server) Stop() {
	_ = s.process.Process.Signal(syscall.SIGQUIT) // immediate shutdown: the data is not needed any more
	<-s.exited
	_ = os.RemoveAll(s.dir)
}

// find returns the path of a PostgreSQL program; Debian keeps them out of PATH.
func find(program string) string {
	if path, err := exec.LookPath(program); err == nil {
		return path
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + program)
	if len(found) == 0 {
		return ""
	}
	return found[len(found)-1]
}

func unprivileged() (*syscall.SysProcAttr, error) {
	attributes := &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
	if os.Getuid() != 0 {
		return attributes, nil
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	uid, err := strconv.ParseUint(nobody.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	gid, err := strconv.ParseUint(nobody.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	attributes.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return attributes, nil
}
