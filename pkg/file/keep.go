package file

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
)

// Kept is a stored file whose content has been examined.
type Kept struct {
	File
	Kind   Kind
	Digest string // SHA-256 of the content in hex, to recognise a repeated upload
}

// Sniff reads the beginning of content. It returns the kind of the content and a reader of all of it. Empty
// content is Invalid.
func Sniff(content io.Reader, declaredType string) (Kind, io.Reader, error) {
	head := make([]byte, SniffLength)
	n, err := Fill(content, head)
	if err != nil && !Ended(err) {
		return Kind{}, nil, fmt.Errorf("reading a file: %w", err)
	}
	if n == 0 {
		return Kind{}, nil, apperr.Fields{{Name: "file", Message: "must not be empty"}}.Err()
	}
	return KindOf(head[:n], declaredType), &replay{head: head[:n], rest: content, ended: Ended(err)}, nil
}

// replay reads the sniffed beginning, then the rest. A reader that has ended is not read again.
type replay struct {
	head  []byte
	rest  io.Reader
	ended bool
}

func (r *replay) Read(p []byte) (int, error) {
	if len(r.head) > 0 {
		n := copy(p, r.head)
		r.head = r.head[n:]
		return n, nil
	}
	if r.ended {
		return 0, io.EOF
	}
	return r.rest.Read(p)
}

// Keep stores content of that kind as f, whose name is as the sender declared it. Its errors are those of [Store.Put].
func Keep(ctx context.Context, s Store, f File, kind Kind, content io.Reader) (Kept, error) {
	f.Name, f.ContentType = CleanName(f.Name, kind), kind.ContentType
	digest := sha256.New()
	stored, err := s.Put(ctx, f, io.TeeReader(content, digest))
	if err != nil {
		return Kept{}, err
	}
	return Kept{File: stored, Kind: kind, Digest: hex.EncodeToString(digest.Sum(nil))}, nil
}

// Expiry returns when a file that is stored now expires: after the application's retention, or the fallback
// if it has none. The zero time means never.
func Expiry(app chat.Application, fallback time.Duration, now time.Time) time.Time {
	retention := fallback
	if app.FileRetention > 0 {
		retention = app.FileRetention
	}
	if retention <= 0 {
		return time.Time{}
	}
	return now.Add(retention)
}

// data is the content of a message of type IMAGE, VIDEO, AUDIO or FILE (spec, "Observed data fields").
type data struct {
	URL       string `json:"url"`
	Mime      string `json:"mime"`
	Path      string `json:"path"`
	Size      int64  `json:"size"` // bytes
	Caption   string `json:"caption"`
	FileName  string `json:"fileName"`
	Extension string `json:"extension"`
}

// Data returns the data of a message with the file. base is the public address of the Widget API, which serves it.
func (k Kept) Data(base, caption string) (json.RawMessage, error) {
	path := "/files/" + k.ID + "/" + url.PathEscape(k.Name)
	encoded, err := json.Marshal(data{
		URL: base + path, Mime: k.Kind.Mime, Path: path, Size: k.Size, Caption: caption, FileName: k.Name,
		Extension: cmp.Or(k.Kind.Extension, ExtensionOf(k.Name)),
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the data of a file: %w", err)
	}
	return encoded, nil
}
