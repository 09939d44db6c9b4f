package sqlite

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
)

// Lists take at most half of the connections, so a single record is read while any number of lists run. A further
// list waits until its caller goes away.
func TestListsLeaveConnections(t *testing.T) {
	t.Parallel()
	s := openTest(t, nil)
	release := make(chan struct{})
	started, ended := make(chan struct{}, 2*cap(s.readers.free)), make(chan error)
	most := cap(s.readers.free) / 2
	list := func(ctx context.Context) error {
		_, err := scan(ctx, s, "listing", func(*conn) (int, error) {
			started <- struct{}{}
			<-release
			return 0, nil
		})
		return err
	}
	for range cap(s.readers.free) {
		go func() { ended <- list(t.Context()) }()
	}
	for range most {
		<-started
	}
	bounded, cancel := context.WithTimeout(t.Context(), operationTimeout/2)
	defer cancel()
	if _, err := s.Chat(bounded, "unknown"); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("a chat while lists run: got %v, want that there is none", err)
	}
	impatient, leave := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer leave()
	if err := list(impatient); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a further list: got %v, want that it waits", err)
	}
	close(release)
	for range cap(s.readers.free) - most {
		<-started
	}
	for range cap(s.readers.free) {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
