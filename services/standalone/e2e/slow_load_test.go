package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const (
	slowApplications = 6
	slowReaders      = 36 // over all applications, each with a history of more than 2 MiB
	slowUploads      = 64 // as many as a process takes: from eight addresses, to four of the applications
	othersRequests   = 40 // uploads, and as many histories
	mostOthersWait   = 10 * time.Second
)

// TestLoadOfSlowClients holds all slots of uploads and all memory of histories with clients that do not read
// and do not send. A client that is cut off connects again. The uploads and histories of another company go
// on.
func TestLoadOfSlowClients(t *testing.T) {
	if !longForm() {
		t.Skip("takes a minute: PARLEY_FAULTS=long; the short form is in pkg/slot")
	}
	f := &fileFlood{client: &http.Client{Transport: new(http.Transport), Timeout: limit}, size: 256 << 10}
	t.Cleanup(f.client.CloseIdleConnections)
	f.standalone = ownStandalone(t, t.TempDir(), "TRUSTED_PROXIES=127.0.0.1", "LIMITS=medium")
	f.store = openStore(t, f.place)
	_, token := f.newVisitor(t, f.newCompany(t))
	var readers []reader
	var writers []string
	for range slowApplications { // two connections of each visitor
		p := f.newCompany(t)
		readers = append(readers, seedReaders(t, f.store, p, slowReaders/slowApplications/2, 0, 0)...)
		for range slowUploads / 4 / 2 {
			_, writer := f.newVisitor(t, p)
			writers = append(writers, writer)
		}
	}

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	reading, uploading := new(slowClients), new(slowClients)
	host := strings.TrimPrefix(f.WidgetBaseURL, "http://")
	for n := range slowReaders {
		reading.run(ctx, host, "HTTP/1.1 200", fmt.Sprintf("GET /message HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nX-Forwarded-For: 203.0.113.%d\r\n\r\n",
			host, readers[n%len(readers)].token, n%len(readers)))
	}
	for n := range slowUploads {
		uploading.run(ctx, host, "HTTP/1.1 100", fmt.Sprintf("POST /message HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nX-Forwarded-For: 192.0.2.%d\r\n"+
			"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n",
			host, writers[n/2], n/8, uploadSize))
	}
	eventually(t, "the slow clients hold what there is", func() error {
		if reading.holding.Load() < slowReaders/3 || uploading.holding.Load() < slowUploads {
			return fmt.Errorf("got %d readers and %d uploads", reading.holding.Load(), uploading.holding.Load())
		}
		return nil
	})
	for _, of := range []struct {
		what    string
		request func() (int, string)
	}{
		{"uploads", func() (int, string) { return f.upload(ctx, visitorUpload(f.WidgetBaseURL, token, "198.51.100.1")) }},
		{"histories", func() (int, string) { return f.history(ctx, token) }},
	} {
		took, refused := f.others(t, of.request)
		t.Logf("%s of another company under %d slow readers and %d slow uploads: %d of %d refused, p50 %v, the slowest %v",
			of.what, reading.holding.Load(), uploading.holding.Load(), refused, othersRequests, took.at(50), took.at(100))
		if refused > 0 || took.at(100) > mostOthersWait {
			t.Errorf("%s: got %d refused and the slowest in %v, want none and at most %v", of.what, refused, took.at(100), mostOthersWait)
		}
	}
	stop()
	reading.running.Wait()
	uploading.running.Wait()
	t.Logf("%d times a slow reader and %d times a slow upload was cut off or refused", reading.ended.Load(), uploading.ended.Load())
}

// others sends the requests of another company's visitor, two at once.
func (f *fileFlood) others(t *testing.T, request func() (int, string)) (took latencies, refused int) {
	var mu sync.Mutex
	var asking sync.WaitGroup
	for range 2 {
		asking.Go(func() {
			for range othersRequests / 2 {
				began := time.Now()
				status, answer := request()
				elapsed := time.Since(began)
				mu.Lock()
				took = append(took, elapsed)
				if status != http.StatusOK && status != http.StatusCreated {
					t.Logf("got %d %s", status, answer)
					refused++
				}
				mu.Unlock()
			}
		})
	}
	asking.Wait()
	slices.Sort(took)
	return took, refused
}

func (f *fileFlood) history(ctx context.Context, token string) (status int, answer string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.WidgetBaseURL+"/message", nil)
	if err != nil {
		return 0, err.Error()
	}
	req.Header.Set("Authorization", "Bearer "+token)
	got, err := f.client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		return 0, err.Error()
	}
	return got.StatusCode, string(text)
}

// slowClients send a request and then nothing, and read nothing but the first line of the answer.
type slowClients struct {
	running sync.WaitGroup
	holding atomic.Int64 // those that the server answers, or whose body it reads
	ended   atomic.Int64 // connections that the server has closed or refused
}

// run starts a client, which connects again each time that the server closes its connection. held is the
// beginning of the first line that the server sends to a client that it serves.
func (s *slowClients) run(ctx context.Context, host, held, request string) {
	s.running.Go(func() {
		for ctx.Err() == nil {
			s.connect(ctx, host, held, request)
		}
	})
}

func (s *slowClients) connect(ctx context.Context, host, held, request string) {
	dialer := net.Dialer{Control: smallWindow}
	connection, err := dialer.DialContext(ctx, "tcp", host)
	if err != nil {
		return
	}
	defer connection.Close()
	defer context.AfterFunc(ctx, func() { _ = connection.Close() })()
	if _, err := io.WriteString(connection, request); err != nil {
		return
	}
	defer s.ended.Add(1)
	answer := bufio.NewReaderSize(connection, 16)
	line, err := answer.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, held) {
		return
	}
	s.holding.Add(1)
	defer s.holding.Add(-1)
	trickle(connection, answer, held == "HTTP/1.1 100")
}

// smallWindow keeps the answer from disappearing in the buffer of the client. It must be set before the
// connection is made.
func smallWindow(_, _ string, c syscall.RawConn) error {
	var err error
	ctlErr := c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10) })
	return errors.Join(ctlErr, err)
}

// trickle sends or reads a byte a second until the connection ends.
func trickle(connection io.Writer, answer io.ByteReader, sends bool) {
	for {
		var err error
		if sends {
			_, err = connection.Write([]byte("x"))
		} else {
			_, err = answer.ReadByte()
		}
		if err != nil {
			return
		}
		time.Sleep(time.Second)
	}
}
