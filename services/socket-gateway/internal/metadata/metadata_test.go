package metadata

import (
	"math"
	"testing"

	"github.com/parley-chat/parley/pkg/socketio"
)

func TestMetadata(t *testing.T) {
	t.Parallel()
	for _, want := range []Metadata{
		{},
		{Offset: math.MaxUint64, Receipt: Receipt{"m", "c"}, TraceParent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
		{Part: Part{"m", math.MaxInt32}},
	} {
		var b socketio.Broadcast
		want.Put(&b)
		if got := Of(&b); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	for _, foreign := range []map[string]string{nil, {"offset": "x"}, {"offset": "-1"}, {"offset": "18446744073709551616"}, {"part": "m"}, {"part": "m", "n": "2147483648"}, {"chat": "c"}} {
		if got := Of(&socketio.Broadcast{Metadata: foreign}); got != (Metadata{}) {
			t.Errorf("%v: got %+v, want none", foreign, got)
		}
	}
}
