package rpc_test

import (
	"testing"

	"github.com/parley-chat/parley/testkit/bustest"
)

// Only the process that writes the message responds. Without a response, nothing has stopped.
func TestRequestStop(t *testing.T) {
	t.Parallel()
	url := bustest.Start(t).URL()
	requester := bustest.Open(t, url).RPC()
	if stopped, err := requester.RequestStop(t.Context(), "app", "visitor", "message"); stopped || err != nil {
		t.Errorf("without a bot: got %v and %v, want false", stopped, err)
	}
	for _, mine := range []string{"another", "message"} {
		b := bustest.Open(t, url)
		unsubscribe, err := b.RPC().HandleStops(func(appID, chatUserID, messageID string) bool {
			return appID == "app" && chatUserID == "visitor" && messageID == mine
		})
		if err != nil {
			t.Fatal(err)
		}
		defer unsubscribe()
		bustest.AwaitReady(t, b) // it flushes: the server has the subscription
	}
	for visitor, want := range map[string]bool{"visitor": true, "somebody": false, "no.token": false} {
		if stopped, err := requester.RequestStop(t.Context(), "app", visitor, "message"); stopped != want || err != nil {
			t.Errorf("%s: got %v and %v, want %v", visitor, stopped, err, want)
		}
	}
}
