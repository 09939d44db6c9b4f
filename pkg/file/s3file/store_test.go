package s3file_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/file"
	"github.com/parley-chat/parley/pkg/file/s3file"
	"github.com/parley-chat/parley/testkit/filetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	bucket = "parley"
	keyID  = "AKIDEXAMPLE"
	secret = "wJalrXUtnFEMI-K7MDENG-EXAMPLEKEY"
)

// fake is an in-process S3 server; a nonzero refuse makes it answer with that status.
type fake struct {
	url    string
	refuse atomic.Int64
	code   atomic.Value // of the refusal
}

func startFake(t testing.TB) *fake {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket(bucket); err != nil {
		t.Fatalf("making the bucket: %v", err)
	}
	s3, f := gofakes3.New(backend).Server(), new(fake)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status := f.refuse.Load(); status != 0 {
			w.WriteHeader(int(status))
			_, _ = w.Write([]byte("<Error><Code>" + f.code.Load().(string) + "</Code></Error>"))
			return
		}
		s3.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

func (f *fake) fail(status int, code string) {
	f.code.Store(code)
	f.refuse.Store(int64(status))
}

func (f *fake) store(t testing.TB) *s3file.Store {
	t.Helper()
	s, err := s3file.New(s3file.Config{Endpoint: f.url, Region: "us-east-1", Bucket: bucket, AccessKeyID: keyID, SecretAccessKey: secret})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(s.Close)
	return s
}

// leftovers counts objects and unfinished uploads with a separate client.
func (f *fake) leftovers(t testing.TB) int {
	t.Helper()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client, err := minio.New(strings.TrimPrefix(f.url, "http://"), &minio.Options{
		Creds: credentials.NewStaticV4(keyID, secret, ""), Region: "us-east-1", Transport: transport,
	})
	if err != nil {
		t.Fatalf("making a client: %v", err)
	}
	n := 0
	for o := range client.ListObjects(context.Background(), bucket, minio.ListObjectsOptions{Recursive: true}) {
		if o.Err != nil {
			t.Fatalf("listing: %v", o.Err)
		}
		n++
	}
	for u := range client.ListIncompleteUploads(context.Background(), bucket, "", true) {
		if minio.ToErrorResponse(u.Err).Code == minio.NoSuchUpload {
			break // the server's response for an empty listing
		}
		if u.Err != nil {
			t.Fatalf("listing the uploads: %v", u.Err)
		}
		n++
	}
	return n
}

func TestContract(t *testing.T) {
	t.Parallel()
	filetest.Run(t, func(t *testing.T) filetest.Harness {
		f := startFake(t)
		return filetest.Harness{
			Store:     f.store(t),
			Leftovers: f.leftovers,
			Crash:     func(testing.TB) { f.fail(http.StatusForbidden, "AccessDenied") },
			Revive: func(t testing.TB) file.Store {
				f.refuse.Store(0)
				return f.store(t)
			},
		}
	})
}

// S3 errors map to codes, and no error contains a secret.
func TestErrors(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	s := f.store(t)
	for _, test := range []struct {
		status       int
		code, reason string
	}{
		{http.StatusForbidden, "AccessDenied", "SERVICE_UNAVAILABLE"},
		{http.StatusInsufficientStorage, "XMinioStorageFull", apperr.FileStoreFull.Reason},
		{http.StatusBadRequest, "XMinioAdminBucketQuotaExceeded", apperr.FileStoreFull.Reason},
	} {
		f.fail(test.status, test.code)
		_, err := s.Put(t.Context(), file.File{ID: file.NewID(time.Time{})}, strings.NewReader("x"))
		e, ok := errors.AsType[*apperr.Error](err)
		if !ok || e.Code != apperr.Unavailable || e.Reason != test.reason || e.RetryAfter <= 0 {
			t.Errorf("%s: got %v, want Unavailable with %s", test.code, err, test.reason)
		}
		if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), keyID) {
			t.Errorf("%s: got %v, want no credentials in it", test.code, err)
		}
	}
}

func TestWrongEndpoint(t *testing.T) {
	t.Parallel()
	for _, endpoint := range []string{"", "localhost:9000", "ftp://localhost", "http://", "https://localhost/bucket"} {
		if _, err := s3file.New(s3file.Config{Endpoint: endpoint, Bucket: bucket}); err == nil {
			t.Errorf("%q: got no error, want one", endpoint)
		}
	}
}
