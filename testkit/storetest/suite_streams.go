package storetest

import (
	"testing"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/store"
)

func testStreams(t *testing.T, open Opener) {
	s := open(t)
	ctx := t.Context()
	wantCode(t, "an unknown stream", errorOf(s.StreamMark(ctx, "REPLIES")), apperr.NotFound)
	first := store.StreamMark{Stream: "REPLIES", Epoch: noon, Sequence: 7, MessageID: newID(), At: noon.Add(1)}
	must(t, s.PutStreamMark(ctx, first))
	must(t, s.PutStreamMark(ctx, store.StreamMark{Stream: "INBOUND", Epoch: noon, Sequence: 1, MessageID: "m", At: noon}))
	want(t, "the mark", get[store.StreamMark](t)(s.StreamMark(ctx, "REPLIES")), first)
	second := first
	second.Sequence, second.MessageID = 5_000_000_000, newID()
	must(t, s.PutStreamMark(ctx, second))
	want(t, "the next mark", get[store.StreamMark](t)(s.StreamMark(ctx, "REPLIES")), second)
}
