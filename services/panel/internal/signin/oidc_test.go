package signin

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/apperr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// issuerFunc is an issuer without a network.
type issuerFunc func(*http.Request) (*http.Response, error)

func (f issuerFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(status int, body io.Reader) *http.Response {
	header := http.Header{"Content-Type": {"application/json"}}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(body)}
}

// endless has as many bytes as are read.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	e.read += len(p)
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// An issuer that does not answer, or never stops, ends a sign-in in seconds. All sign-ins that wait share one request.
func TestIssuerIsBounded(t *testing.T) {
	t.Parallel()
	const url = "https://id.example.com"
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		o := &OIDC{Issuer: url, transport: issuerFunc(func(r *http.Request) (*http.Response, error) {
			asked++
			<-r.Context().Done()
			return nil, r.Context().Err()
		})}
		began, failed := time.Now(), make(chan error)
		for range 10 {
			go func() {
				_, _, err := o.Start(t.Context(), "", "")
				failed <- err
			}()
		}
		for range 10 {
			if err := <-failed; !apperr.Is(err, apperr.Unavailable) {
				t.Errorf("an issuer that is silent: got %v, want Unavailable", err)
			}
		}
		if took := time.Since(began); took > issuerTimeout || asked != 1 {
			t.Errorf("got %d requests in %v, want one in %v", asked, took, issuerTimeout)
		}
	})
	long := &endless{}
	o := &OIDC{Issuer: url, transport: issuerFunc(func(*http.Request) (*http.Response, error) { return answer(http.StatusOK, long), nil })}
	if _, _, err := o.Start(t.Context(), "", ""); !apperr.Is(err, apperr.Unavailable) || long.read > 4*issuerAnswer {
		t.Errorf("an endless answer: got %v after %d bytes, want Unavailable after about %d", err, long.read, issuerAnswer)
	}
	long = &endless{}
	o.transport = issuerFunc(func(r *http.Request) (*http.Response, error) {
		switch r.URL.Path {
		case "/.well-known/openid-configuration":
			document := fmt.Sprintf(`{"issuer":%[1]q,"authorization_endpoint":"%[1]s/a","token_endpoint":"%[1]s/t","jwks_uri":"%[1]s/k"}`, url)
			return answer(http.StatusOK, strings.NewReader(document)), nil
		case "/t":
			return answer(http.StatusOK, long), nil
		}
		return nil, errors.New("unexpected request")
	})
	p, err := o.discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.redeem(t.Context(), p, attempt{}, "code"); err == nil || long.read > 4*issuerAnswer {
		t.Errorf("an endless token: got %v after %d bytes, want an error after about %d", err, long.read, issuerAnswer)
	}
}
