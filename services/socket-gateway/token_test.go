package socketgateway_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/credential"
	socketgateway "github.com/parley-chat/parley/services/socket-gateway"
	"github.com/parley-chat/parley/testkit/timetest"
)

// A client is told a minute before its token expires, and stays beyond that with a fresh one.
func TestTokenIsRenewedInPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v, other := w.visitor(), w.visitor()
	tests := []struct {
		name, token, want string
	}{
		{"fresh", w.sign(w.keys, v, time.Now().Add(3*time.Hour)), `[{"ok":true}]`},
		{"of somebody else", w.sign(w.keys, other, time.Now().Add(3*time.Hour)), `[{"ok":false,"code":"UNAUTHORIZED","message":"Unauthorized"}]`},
		{"expired", w.sign(w.keys, v, time.Now().Add(-time.Hour)), `[{"ok":false,"code":"UNAUTHORIZED","message":"Unauthorized"}]`},
		{"nonsense", "nonsense", `[{"ok":false,"code":"UNAUTHORIZED","message":"Unauthorized"}]`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g, clock := w.startWithClock()
			first := w.sign(w.keys, v, time.Now().Add(time.Hour)) // not earlier: a parallel test may have been paused
			c, witness := connect(t, g.url, first), connect(t, g.url, first)
			c.await("connect")
			witness.await("connect")
			clock.advance(59*time.Minute + time.Second) // of the token's hour
			c.await("token_expiring")
			c.renew(test.token)
			if got := string(c.await("ack").Data); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			clock.advance(time.Minute)
			if test.name != "fresh" {
				c.await("disconnect")
				return
			}
			witness.await("token_expiring")
			witness.await("disconnect") // the first token has expired
			c.renew(test.token)
			if got := string(c.await("ack").Data); got != test.want {
				t.Errorf("got %s, want the socket to outlive its first token", got)
			}
		})
	}
}

// Revoked tokens end their sockets on every gateway at once, and open none.
func TestRevokedTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gateways := []*gateway{w.start(), w.start()}
	sara, jo := w.visitor(), w.visitor()
	var saras, jos []*client
	for _, g := range gateways {
		saras = append(saras, connect(t, g.url, sara.token))
		jos = append(jos, connect(t, g.url, jo.token))
	}
	for i := range gateways {
		saras[i].await("connect")
		jos[i].await("connect")
	}
	validFrom := credential.RevocationTime(time.Now())
	if err := w.bus.RevokeVisitorTokens(t.Context(), "company", sara.chatUserID, validFrom); err != nil {
		t.Fatal(err)
	}
	for _, c := range saras {
		if h := c.await("disconnect"); h.Reason != "io server disconnect" {
			t.Errorf("got %s, want the server's word", h.Reason)
		}
	}
	want := w.reply(jo, `{"text":"you may stay"}`)
	for i, g := range gateways {
		if got := string(jos[i].await("message").Data); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if h := connect(t, g.url, sara.token).await("connect_error"); h.Message != "Unauthorized" {
			t.Errorf("got %q with a revoked token, want Unauthorized", h.Message)
		}
	}
	later, err := w.keys.Sign(credential.VisitorClaims{
		ChatUserID: sara.chatUserID, AppID: sara.appID, CompanyID: "company", TokenID: "later",
		IssuedAt: credential.IssueTime(time.Now(), validFrom), ExpiresAt: time.Now().Add(time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	connect(t, gateways[0].url, later).await("connect")
	// A gateway that starts afterwards reads the revocation from the stream.
	fresh := w.start()
	if h := connect(t, fresh.url, sara.token).await("connect_error"); h.Message != "Unauthorized" {
		t.Errorf("a new gateway: got %q with a revoked token, want Unauthorized", h.Message)
	}
	connect(t, fresh.url, later).await("connect")
}

// TestRenewalsAreLimited renews a token more often than a client needs to: the socket is told, and
// disconnected if it goes on.
func TestRenewalsAreLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, clock := w.startWithClock()
	v := w.visitor()
	const limited = `[{"ok":false,"code":"TOO_MANY_REQUESTS","message":"Too many events. Please try again later."}]`
	renewed := func(c *client, want string) {
		t.Helper()
		c.renew(v.token)
		if got := string(c.await("ack").Data); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	c, other := connect(t, g.url, v.token), connect(t, g.url, v.token)
	c.await("connect")
	other.await("connect")
	for range 3 {
		renewed(c, `[{"ok":true}]`)
	}
	for range 9 {
		renewed(c, limited)
	}
	renewed(other, `[{"ok":true}]`) // the limit is one socket's
	clock.advance(10 * time.Second)
	renewed(c, `[{"ok":true}]`)
	for range 10 {
		renewed(c, limited)
	}
	if got := c.await("disconnect"); got.Reason != "io server disconnect" {
		t.Errorf("got %q, want the server's disconnect", got.Reason)
	}
	renewed(other, `[{"ok":true}]`)
}

// TestTokensDoNotOutliveTheirRevocation has a token that lives longer than revocations are kept.
func TestTokensDoNotOutliveTheirRevocation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, clock := w.startWithClock()
	token := w.sign(w.keys, w.visitor(), time.Now().Add(90*24*time.Hour))
	clock.advance(29 * 24 * time.Hour)
	connect(t, g.url, token).await("connect")
	clock.advance(24 * time.Hour) // the age of REVOCATIONS is 30 days
	if h := connect(t, g.url, token).await("connect_error"); h.Message != "Unauthorized" {
		t.Errorf("got %q, want Unauthorized", h.Message)
	}
}

// TestRevocationsAreMeasured checks the metrics of the alert ParleyStreamFilling for REVOCATIONS, which only
// gateways read.
func TestRevocationsAreMeasured(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	registry := prometheus.NewRegistry()
	w.start(func(c *socketgateway.Config) { c.Registerer = registry })
	timetest.Until(t, "the limit of REVOCATIONS is measured", func() bool {
		return gather(t, registry)["parley_bus_stream_limit_bytes REVOCATIONS"] > 0
	})
}
