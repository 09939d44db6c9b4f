package httpapitest_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/parley-chat/parley/testkit/httpapitest"
)

func TestUnseenCodesListsExamplesThatNoAnswerHad(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(things())
	t.Cleanup(server.Close)
	d := httpapitest.Contract(t, []byte(document))
	if got, want := d.UnseenCodes(), []string{"404 NOT_FOUND"}; !slices.Equal(got, want) {
		t.Errorf("at first: got %q, want %q", got, want)
	}
	client := &http.Client{Transport: d.Transport(server.Client().Transport)}
	resp, err := client.Get(server.URL + "/things/none")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if got := d.UnseenCodes(); len(got) > 0 {
		t.Errorf("after a 404: got %q, want none", got)
	}
}
