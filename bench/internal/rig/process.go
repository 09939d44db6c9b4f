package rig

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// clockTicks is the unit of CPU times in /proc/<pid>/stat (USER_HZ, proc(5)); it is 100 on every Linux that Go runs on.
const clockTicks = 100

// Process is a child process that the benchmark starts and stops.
type Process struct {
	cmd    *exec.Cmd
	stdout *bufio.Reader
}

func start(env []string, logPath, name string, args ...string) (*Process, error) {
	logFile, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer logFile.Close()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = logFile
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s (did `make build` run?): %w", name, err)
	}
	return &Process{cmd: cmd, stdout: bufio.NewReader(out)}, nil
}

// StartAlone starts a program outside of a rig, whose output nobody reads. The caller stops it.
func StartAlone(logPath string, env []string, name string) (*Process, error) {
	p, err := start(env, logPath, name)
	if err == nil {
		p.drain()
	}
	return p, err
}

// ReadVariables reads NAME=value lines until all names were read, then discards the rest of the output.
func (p *Process) ReadVariables(names ...string) (map[string]string, error) {
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	found := map[string]string{}
	for len(found) < len(wanted) {
		line, err := p.stdout.ReadString('\n')
		if err != nil {
			return nil, fmt.Errorf("%s ended before it printed %v: %w", p.cmd.Path, names, err)
		}
		line = strings.TrimPrefix(strings.TrimSpace(line), "export ")
		name, value, ok := strings.Cut(line, "=")
		if ok && wanted[name] {
			found[name] = strings.Trim(value, "'") // quoted for a shell
		}
	}
	p.drain()
	return found, nil
}

// drain discards the rest of the child's output, so that it never blocks on a full pipe.
func (p *Process) drain() { go func() { _, _ = io.Copy(io.Discard, p.stdout) }() }

// Stop terminates the child, and kills it if that takes too long.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.AfterFunc(20*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	_ = p.cmd.Wait()
}

// Kill ends the child without notice.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// CPU returns the user and system time used by the child.
func (p *Process) CPU() time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	// The command name is in parentheses and may contain spaces; utime and stime are fields 14 and 15.
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * time.Second / clockTicks
}

// RSS returns the child's current resident memory in bytes.
func (p *Process) RSS() int64 { return p.memory("VmRSS:") }

// PeakRSS returns the child's peak resident memory in bytes.
func (p *Process) PeakRSS() int64 { return p.memory("VmHWM:") }

func (p *Process) memory(field string) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, field); ok {
			kib, _ := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			return kib << 10
		}
	}
	return 0
}

// Await calls done until it returns true, for at most a minute.
func Await(ctx context.Context, what string, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for !done() {
		if ctx.Err() != nil {
			return fmt.Errorf("did not happen in a minute: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
	return nil
}

// Answers reports whether url returns 200.
func Answers(ctx context.Context, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
