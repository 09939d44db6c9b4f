package s3file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/file"
)

const (
	prefix = "files/"

	requestTimeout = 10 * time.Second
	// retries of a request; the caller is waiting and can retry itself.
	retries = 3

	keyApp  = "Parley-App-Id"
	keyName = "Parley-Name"
)

// Config sets the bucket and the credentials.
type Config struct {
	Endpoint        string // http or https URL
	Region          string
	Bucket          string
	AccessKeyID     string // empty: the machine's IAM role
	SecretAccessKey string
}

// Store is a [file.Store] in S3.
type Store struct {
	bucket    string
	core      minio.Core
	transport *http.Transport
}

var _ file.Store = (*Store)(nil)

// New returns a store, which connects at its first use. It returns an error only for an invalid Config.
func New(cfg Config) (*Store, error) {
	endpoint, err := url.Parse(cfg.Endpoint)
	if err != nil || endpoint.Scheme != "http" && endpoint.Scheme != "https" || endpoint.Host == "" ||
		strings.Trim(endpoint.Path, "/") != "" {
		return nil, errors.New("s3file: Endpoint must be an http or https URL without a path")
	}
	transport, err := minio.DefaultTransport(endpoint.Scheme == "https")
	if err != nil {
		return nil, fmt.Errorf("s3file: %w", err)
	}
	core, err := minio.NewCore(endpoint.Host, &minio.Options{
		Creds: keys(cfg), Secure: endpoint.Scheme == "https", Region: cfg.Region, Transport: transport, MaxRetries: retries,
	})
	if err != nil {
		return nil, fmt.Errorf("s3file: %w", err)
	}
	return &Store{bucket: cfg.Bucket, core: *core, transport: transport}, nil
}

func keys(cfg Config) *credentials.Credentials {
	if cfg.AccessKeyID == "" {
		return credentials.NewIAM("")
	}
	return credentials.NewStaticV4(cfg.AccessKeyID, cfg.SecretAccessKey, "")
}

// Close closes idle connections.
func (s *Store) Close() { s.transport.CloseIdleConnections() }

func key(id string) string { return prefix + id }

// coded maps an S3 error to its code.
func coded(act string, err error) error {
	answer := minio.ToErrorResponse(err)
	err = fmt.Errorf("%s: %w", act, err)
	switch {
	case answer.Code == minio.NoSuchKey:
		return file.NotFound().Wrap(err)
	case answer.StatusCode == http.StatusInsufficientStorage,
		strings.Contains(answer.Code, "Quota"),
		strings.Contains(answer.Code, "StorageFull"):
		return file.Full(err)
	}
	return apperr.Unreachable("file store", err)
}

// Open implements [file.Store].
func (s *Store) Open(ctx context.Context, id string) (file.File, file.Content, error) {
	if !file.ValidID(id) {
		return file.File{}, nil, file.NotFound()
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	info, err := s.core.StatObject(ctx, s.bucket, key(id), minio.StatObjectOptions{})
	if err != nil {
		return file.File{}, nil, coded("looking for a file", err)
	}
	name, err := url.PathUnescape(info.UserMetadata[keyName])
	if err != nil {
		return file.File{}, nil, fmt.Errorf("reading the name of a file: %w", err)
	}
	return file.File{
		ID: id, AppID: info.UserMetadata[keyApp], Name: name, ContentType: info.ContentType,
		Size: info.Size, Tag: tagOf(info.ETag), StoredAt: info.LastModified.UTC(),
	}, content{s, info}, nil
}

func tagOf(etag string) string { return strings.Trim(etag, `"`) }

// content implements [file.Content].
type content struct {
	store *Store
	info  minio.ObjectInfo
}

func (c content) From(ctx context.Context, offset int64) (io.ReadCloser, error) {
	if offset >= c.info.Size {
		return http.NoBody, nil
	}
	var options minio.GetObjectOptions
	if offset > 0 {
		if err := options.SetRange(offset, 0); err != nil {
			return nil, fmt.Errorf("reading a file: %w", err)
		}
	}
	body, _, _, err := c.store.core.GetObject(ctx, c.store.bucket, c.info.Key, options)
	if err != nil {
		return nil, coded("reading a file", err)
	}
	return body, nil
}

// Space implements [file.Store]. A bucket has no size of its own.
func (s *Store) Space(context.Context) (file.Space, error) { return file.Space{}, nil }

// Delete implements [file.Store].
func (s *Store) Delete(ctx context.Context, id string) error {
	if !file.ValidID(id) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := s.core.RemoveObject(ctx, s.bucket, key(id), minio.RemoveObjectOptions{})
	if err != nil && minio.ToErrorResponse(err).Code != minio.NoSuchKey {
		return coded("removing a file", err)
	}
	return nil
}
