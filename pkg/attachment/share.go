package attachment

import (
	"errors"
	"iter"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/file"
	"github.com/parley-chat/parley/pkg/store"
)

// This file divides the store, which all companies share and which may be smaller than the sum of the quotas:
// files stay for months, so that what one takes the others miss for as long. A store without a capacity, such
// as a bucket in S3, is not divided.
//
// The origin of a file is the address of its visitor, since a caller may be many visitors, or the agent.

const (
	// originShare: an address, or an agent, may hold an eighth of the store. With the default of 4 GiB that
	// is as much as five visitors may hold by their quota.
	originShare = 8
	// reserveShare: the last quarter of the store is reserved for origins that use little.
	reserveShare = 4
	// companyReserveShare: in the last eighth the company must use little too, so that one whose files come
	// from many addresses leaves room for the others.
	companyReserveShare = 8
	// littleShare: an origin or a company uses little while it holds at most a 64th of the store, 64 MiB with the
	// default.
	littleShare = 64
)

// ActionRefused is the action of the audit log's entry when an application's files are refused, because its
// quota, the company's or the store is used up.
const ActionRefused = "application.files-refused"

var errReserved = errors.New("the rest of the store is reserved for those that use little of it")

// sums are the bytes that the owners of a file hold, the file included.
type sums struct{ origin, application, company int64 }

// of returns the owners of a file, each with its sum.
func (s *sums) of(f chat.StoredFile) iter.Seq2[store.FileOwner, *int64] {
	return func(yield func(store.FileOwner, *int64) bool) {
		_ = yield(originOf(f), &s.origin) &&
			yield(store.FileOwner{Application: f.AppID}, &s.application) &&
			yield(store.FileOwner{Company: f.CompanyID}, &s.company)
	}
}

func originOf(f chat.StoredFile) store.FileOwner {
	if f.Address == "" {
		return store.FileOwner{Sender: f.SenderID}
	}
	return store.FileOwner{Address: f.Address}
}

// checkOrigin checks the share of the address or the agent.
func (s *sums) checkOrigin(f chat.StoredFile, space file.Space) error {
	if space.Capacity == 0 || s.origin <= space.Capacity/originShare {
		return nil
	}
	if f.Address == "" {
		return apperr.FileQuotaExceeded.WithMessage("Your files are as large as they may be.")
	}
	return apperr.FileQuotaExceeded.WithMessage("The files from your network are as large as they may be.")
}

// checkCompany checks the quotas of the application and the company, and the reserve of the store.
func (s *sums) checkCompany(quota Quota, space file.Space) error {
	switch {
	case quota.Application > 0 && s.application > quota.Application:
		return apperr.FileQuotaExceeded.WithMessage("The application's files are as large as they may be.")
	case quota.Company > 0 && s.company > quota.Company:
		return apperr.FileQuotaExceeded.WithMessage("The company's files are as large as they may be.")
	case s.mayUse(space):
		return nil
	}
	return file.Full(errReserved)
}

// mayUse reports whether the store has room for the file that is not reserved for others.
func (s *sums) mayUse(space file.Space) bool {
	free, little := space.Capacity-space.Used, space.Capacity/littleShare
	if space.Capacity == 0 || free >= space.Capacity/reserveShare {
		return true
	}
	return s.origin <= little && (free >= space.Capacity/companyReserveShare || s.company <= little)
}
