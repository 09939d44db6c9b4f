package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"sync"
	"testing"
)

const (
	uploads    = 20
	uploadSize = 25 << 20 // the maximum size of a file
	// mostGrowth bounds the growth of the Widget API's memory: a fifth of the uploads' size.
	mostGrowth = uploads * uploadSize / 5
)

// zeros is endless content.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// largeUploads sends twenty files of 25 MiB concurrently, and measures the receiving process.
func (f *deployment) largeUploads(t *testing.T) {
	v := register(t, f.place, f.widgetAPI(t))
	pid := f.run["widget-api"].cmd.Process.Pid
	before := peakRSS(t, pid)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport}
	paths := make([]string, uploads)
	var all sync.WaitGroup
	for i := range uploads {
		all.Go(func() {
			var err error
			if paths[i], err = sendZeros(client, f.WidgetBaseURL, v.token); err != nil {
				t.Errorf("upload %d: %v", i, err)
			}
		})
	}
	all.Wait()
	grown := peakRSS(t, pid) - before
	t.Logf("%d uploads of %d MiB at once: the Widget API's peak RSS grew by %d MiB to %d MiB", uploads, uploadSize>>20, grown>>20, (before+grown)>>20)
	if grown > mostGrowth {
		t.Errorf("the Widget API grew by %d MiB, want at most %d: files must not be in memory as a whole", grown>>20, mostGrowth>>20)
	}
	answer, err := client.Get(f.WidgetBaseURL + paths[0])
	check(t, err)
	defer answer.Body.Close()
	if n, err := io.Copy(io.Discard, answer.Body); err != nil || n != uploadSize {
		t.Errorf("downloading one: got %d bytes, %v, want all of it", n, err)
	}
}

// sendZeros uploads the largest file and returns its path.
func sendZeros(client *http.Client, base, token string) (path string, err error) {
	body, contentType := zeroForm(uploadSize)
	req, err := http.NewRequest(http.MethodPost, base+"/message", body.content)
	if err != nil {
		return "", err
	}
	req.ContentLength = body.size
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("Authorization", "Bearer "+token)
	answer, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusCreated {
		return "", fmt.Errorf("got %s %s, %w", answer.Status, text, err)
	}
	var r struct{ Data struct{ Path string } }
	return r.Data.Path, json.Unmarshal(text, &r)
}

var peakLine = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peakRSS returns the peak memory of a process in bytes. If the system does not report it, the test is skipped.
func peakRSS(t *testing.T, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skipf("this system does not report the memory of a process: %v", err)
	}
	found := peakLine.FindSubmatch(status)
	if found == nil {
		t.Fatalf("no VmHWM in %s", status)
	}
	kilobytes, err := strconv.ParseInt(string(found[1]), 10, 64)
	check(t, err)
	return kilobytes << 10
}
