package attachment

import (
	"context"
	"errors"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/file"
	"github.com/parley-chat/parley/pkg/slot"
)

const (
	// slotWait is how long a caller waits for a slot. While it waits, clients that hold more may take a quarter of that
	// (package slot): the largest file at about 5 MiB/s.
	slotWait = 20 * time.Second
	// busyRetryAfter is the Retry-After of a caller that got no slot.
	busyRetryAfter = 5 * time.Second

	// downloadsAtOnce bounds the downloads of a process, each of which holds a chunk of 128 KiB; downloadsOfSite is the
	// share of one site ([event.SiteOf]), far above the connections of a browser.
	downloadsAtOnce = 256
	downloadsOfSite = 32

	// waitingAtOnce bounds the uploads and the downloads that wait. The shares are small, because nobody that waits makes
	// room for another: five sites leave an application's visitors places to wait.
	waitingAtOnce        = 512
	waitingOfApplication = waitingAtOnce / 8
	waitingUploadsOfSite = waitingOfApplication / 8
	waitingDownloadsSite = waitingAtOnce / 8
)

// AtOnce bounds the uploads at once; zero: unlimited, except for All. Site is the network of the sender's address
// ([event.SiteOf]).
type AtOnce struct {
	All, Sender, Site, Application, Company int
}

// uploadsWaiting bounds the uploads that wait.
var uploadsWaiting = AtOnce{
	Sender: 8, Site: waitingUploadsOfSite, Application: waitingOfApplication, Company: 2 * waitingOfApplication,
}

// Sender is the visitor or agent that sends a file.
type Sender struct {
	CompanyID  string
	AppID      string
	ChatUserID string // the visitor of the chat, whose erasure removes the file
	ID         string // the visitor, or the agent's user
	Address    string // see [httpapi.ClientAddress]
}

// record returns the record of the sender's file. It has the site of a visitor's address ([event.SiteOf]): one customer
// has up to 65,536 networks of 64 bits and could fill the store with them. Agents have no address in it: they share
// that of their office, and are known.
func (s Sender) record() chat.StoredFile {
	f := chat.StoredFile{CompanyID: s.CompanyID, AppID: s.AppID, ChatUserID: s.ChatUserID, SenderID: s.ID}
	if s.ID == s.ChatUserID {
		f.Address = event.SiteOf(s.Address)
	}
	return f
}

func newLine(atOnce int64) slot.Line {
	return slot.Line{Pool: slot.NewPool(atOnce, 1), Places: slot.NewPool(waitingAtOnce, 1)}
}

// Upload is a file on its way into the store. It holds a slot until End.
type Upload struct {
	service *Service
	sender  Sender
	slot    *slot.Slot
}

// Begin waits for the slot of an upload. Without one it returns TOO_MANY_UPLOADS: TooMany if a share of the
// sender is in use, else Unavailable. Uploads that do not move lose their slots meanwhile.
func (s *Service) Begin(ctx context.Context, from Sender) (*Upload, error) {
	shares := func(most AtOnce) []slot.Share {
		return []slot.Share{
			{Of: "sender", Key: from.ID, Most: int64(most.Sender)},
			{Of: "site", Key: event.SiteOf(from.Address), Most: int64(most.Site)},
			{Of: "application", Key: from.AppID, Most: int64(most.Application)},
			{Of: "company", Key: from.CompanyID, Most: int64(most.Company)},
		}
	}
	taken, err := s.uploads.Acquire(ctx, 1, slotWait, shares(s.cfg.AtOnce), shares(uploadsWaiting))
	if err != nil {
		return nil, busy(err, apperr.TooManyUploads)
	}
	return &Upload{service: s, sender: from, slot: taken}, nil
}

// Slot returns the upload's slot, which the reader of its body reports to.
func (u *Upload) Slot() *slot.Slot { return u.slot }

// End releases the slot.
func (u *Upload) End() { u.slot.Release() }

// Download is a stored file that is being read. It holds a slot until Close.
type Download struct {
	file.File
	Content file.Content
	Slot    *slot.Slot
}

// Close releases the slot.
func (d *Download) Close() { d.Slot.Release() }

// Open finds a file for a caller at that address. Without a slot for the download it returns TOO_MANY_DOWNLOADS.
func (s *Service) Open(ctx context.Context, address, id, name string) (*Download, error) {
	if !file.ValidID(id) {
		return nil, file.NotFound()
	}
	ofSite := func(most int64) []slot.Share {
		return []slot.Share{{Of: "site", Key: event.SiteOf(address), Most: most}}
	}
	taken, err := s.downloads.Acquire(ctx, 1, slotWait, ofSite(downloadsOfSite), ofSite(waitingDownloadsSite))
	if err != nil {
		return nil, busy(err, apperr.TooManyDownloads)
	}
	f, content, err := s.find(ctx, id, name)
	if err != nil {
		taken.Release()
		return nil, err
	}
	return &Download{File: f, Content: content, Slot: taken}, nil
}

// busy maps a full pool to its error: 429 for the caller's own share, else 503.
func busy(err error, as apperr.Definition) error {
	full, ok := errors.AsType[*slot.FullError](err)
	if !ok {
		return err
	}
	e := as.New()
	e.RetryAfter = busyRetryAfter
	if full.Share == "" {
		e.Code = apperr.Unavailable
	}
	return e
}
