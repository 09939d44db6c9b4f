package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// process is a child process.
type process struct {
	cmd    *exec.Cmd
	stdout *bufio.Reader
}

// start starts a program; its log is in the deployment's directory. close stops it if the caller does not.
func (d *deployment) start(env []string, program string, args ...string) *process {
	log := fmt.Sprintf("%d-%s.log", len(d.cleanups), filepath.Base(program))
	logFile, err := os.Create(filepath.Join(d.dir, log))
	d.check(err)
	defer logFile.Close()
	cmd := exec.Command(program, args...)
	cmd.Env = slices.Concat(os.Environ(), d.env, env)
	cmd.Stderr = logFile
	out, err := cmd.StdoutPipe()
	d.check(err)
	if err := cmd.Start(); err != nil {
		d.check(fmt.Errorf("starting %s (did `make build` run?): %w", program, err))
	}
	p := &process{cmd: cmd, stdout: bufio.NewReader(out)}
	d.cleanup(p.stop)
	return p
}

// readVariables reads NAME=value lines until all names were read, then discards the rest of the output.
func (d *deployment) readVariables(p *process, names ...string) map[string]string {
	found := map[string]string{}
	for len(found) < len(names) {
		line, err := p.stdout.ReadString('\n')
		if err != nil {
			d.check(fmt.Errorf("%s ended before it printed %v: %w", p.cmd.Path, names, err))
		}
		name, value, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		if slices.Contains(names, name) {
			found[name] = strings.Trim(value, "'") // quoted for a shell
		}
	}
	p.drain()
	return found
}

// drain discards the rest of the output, so that the child never blocks on a full pipe.
func (p *process) drain() { go func() { _, _ = io.Copy(io.Discard, p.stdout) }() }

// stop terminates the child, and kills it if that takes too long.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.AfterFunc(20*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	_ = p.cmd.Wait()
}

// usage is what a process has used so far; zero after its end, and of no process.
type usage struct {
	cpu          time.Duration // user and system time
	rss, peakRSS int64         // bytes
}

func (p *process) usage() usage {
	if p == nil {
		return usage{}
	}
	proc, err := procfs.NewProc(p.cmd.Process.Pid)
	if err != nil {
		return usage{}
	}
	stat, _ := proc.Stat() // zero if the process has just ended
	status, _ := proc.NewStatus()
	return usage{
		cpu:     time.Duration(stat.CPUTime() * float64(time.Second)),
		rss:     int64(status.VmRSS),
		peakRSS: int64(status.VmHWM),
	}
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// get returns the body of url; another status than 200 is an error.
func get(url string) (string, error) {
	client := http.Client{Timeout: time.Minute}
	resp, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, resp.Status)
	}
	return string(body), err
}

// answers reports whether url returns 200.
func answers(url string) bool {
	_, err := get(url)
	return err == nil
}
