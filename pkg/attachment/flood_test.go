package attachment_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-chat/parley/pkg/attachment"
)

// Clients of five sites upload to one application as slowly as they may and come again at once. Its other visitors are
// admitted all the same: they have places to wait, and get the slots of clients that have had their time.
func TestFiveSitesKeepNobodyFromUploading(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const sites, clients, others, pace = 5, 30, 30, 68 << 10 // pace: bytes a second, just enough
		s := attachment.New(attachment.Config{
			AtOnce: attachment.AtOnce{All: 64, Sender: 2, Site: 8, Application: 16, Company: 24}, Now: time.Now,
		})
		from := func(site, visitor string) attachment.Sender {
			return attachment.Sender{CompanyID: "a", AppID: "a", ID: visitor, ChatUserID: visitor, Address: site}
		}
		stop := make(chan struct{})
		var flood sync.WaitGroup
		for n := range sites * clients {
			flood.Go(func() {
				for {
					paced(t, s, from(fmt.Sprint("site", n%sites), fmt.Sprint("flood", n)), pace, stop)
					select {
					case <-stop:
						return
					case <-time.After(100 * time.Millisecond):
					}
				}
			})
		}
		time.Sleep(30 * time.Second)
		var asking sync.WaitGroup
		for n := range others {
			asking.Go(func() {
				u, err := s.Begin(t.Context(), from(fmt.Sprint("other", n), fmt.Sprint("other", n)))
				if err != nil {
					t.Errorf("another visitor: got %v, want a slot", err)
					return
				}
				time.Sleep(time.Second)
				u.End()
			})
			time.Sleep(time.Second)
		}
		asking.Wait()
		close(stop)
		flood.Wait()
	})
}

// paced uploads a file of 8 MiB at that many bytes a second, until it is cut off.
func paced(t *testing.T, s *attachment.Service, from attachment.Sender, rate int, stop chan struct{}) {
	u, err := s.Begin(t.Context(), from)
	if err != nil {
		return
	}
	defer u.End()
	cut := make(chan struct{})
	u.Slot().Watch(func() { close(cut) })
	for sent := 0; sent < 8<<20; sent += rate {
		u.Slot().Await()
		select {
		case <-stop:
			return
		case <-cut:
			return
		case <-time.After(time.Second):
		}
		u.Slot().Moved(rate)
	}
}
