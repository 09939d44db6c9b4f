package main

import (
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/proto-events/subject"
)

// visitor is a visitor who can connect to a room.
type visitor struct {
	companyID, appID, id, chatID string
	subject                      string
	connect                      []byte // the frame with the token
}

// visitors are the visitors of a run, and the keys that verify their tokens.
type visitors struct {
	list []*visitor
	keys *http.Server
	url  string // of the JWKS
}

// newVisitors creates n visitors with tokens, and serves the keys.
func newVisitors(n int) (*visitors, error) {
	set, err := credential.GenerateKeySet()
	if err != nil {
		return nil, err
	}
	keys, err := credential.ParseKeySet(set)
	if err != nil {
		return nil, err
	}
	v := &visitors{list: make([]*visitor, n)}
	companyID, appID := uuid.NewString(), uuid.NewString()
	var mint errgroup.Group
	mint.SetLimit(8)
	for i := range v.list {
		mint.Go(func() (err error) {
			v.list[i], err = newVisitor(keys, companyID, appID)
			return err
		})
	}
	if err := mint.Wait(); err != nil {
		return nil, fmt.Errorf("minting tokens: %w", err)
	}
	return v, v.serve(keys.JWKS())
}

func newVisitor(keys *credential.KeySet, companyID, appID string) (*visitor, error) {
	v := &visitor{companyID: companyID, appID: appID, id: uuid.NewString(), chatID: uuid.NewString()}
	v.subject = subject.Reply(appID, v.id)
	now := time.Now()
	token, err := keys.Sign(credential.VisitorClaims{
		ChatUserID: v.id,
		AppID:      appID,
		CompanyID:  companyID,
		TokenID:    uuid.NewString(),
		IssuedAt:   now,
		ExpiresAt:  now.Add(24 * time.Hour),
	})
	v.connect = connectFrame(token)
	return v, err
}

func (v *visitors) serve(jwks []byte) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	v.url = "http://" + ln.Addr().String() + "/.well-known/jwks.json"
	v.keys = &http.Server{
		ReadHeaderTimeout: 5 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(jwks)
		}),
	}
	go func() { _ = v.keys.Serve(ln) }()
	return nil
}

func (v *visitors) close() { _ = v.keys.Close() }
