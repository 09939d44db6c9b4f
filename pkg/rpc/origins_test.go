package rpc_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/testkit/bustest"
)

func TestAllowedOrigins(t *testing.T) {
	t.Parallel()
	url := bustest.Start(t).URL()
	requester, answering := bustest.Open(t, url).RPC(), bustest.Open(t, url)
	if _, _, err := requester.AllowedOrigins(t.Context(), "app"); !apperr.Is(err, apperr.Unavailable) {
		t.Errorf("without a responder: got %v, want Unavailable at once", err)
	}
	stop, err := answering.RPC().HandleOrigins(func(_ context.Context, appID string) ([]string, error) {
		switch appID {
		case "app":
			return []string{"https://a.example"}, nil
		case "open":
			return nil, nil
		case "gone":
			return nil, apperr.New(apperr.NotFound, "", "")
		}
		return nil, errors.New("the store's secret")
	})
	if err != nil {
		t.Fatal(err)
	}
	bustest.AwaitReady(t, answering)
	for _, test := range []struct {
		appID string
		want  []string
		found bool
		fails bool
	}{
		{"app", []string{"https://a.example"}, true, false},
		{"open", nil, true, false},
		{"gone", nil, false, false},
		{"broken", nil, false, true},
		{"not.an.id", nil, false, false},
		{"*", nil, false, false},
	} {
		got, found, err := requester.AllowedOrigins(t.Context(), test.appID)
		if !slices.Equal(got, test.want) || found != test.found || apperr.Is(err, apperr.Unavailable) != test.fails || (err != nil) != test.fails {
			t.Errorf("%s: got %v, %v, %v, want %v, %v", test.appID, got, found, err, test.want, test.found)
		}
	}
	stop()
	if _, _, err := requester.AllowedOrigins(t.Context(), "app"); !apperr.Is(err, apperr.Unavailable) {
		t.Errorf("after the stop: got %v, want Unavailable", err)
	}
}
