// Package opstest reads the state of a service from its operations server, for tests.
package opstest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/ops"
	"github.com/parley-chat/parley/testkit/timetest"
)

// State is the response of /readyz?verbose.
type State struct {
	Ready bool // the status was 200
	ops.Report
}

// AllUp reports whether the service is ready and all of its dependencies are up.
func (s State) AllUp() bool {
	for _, state := range s.Dependencies {
		if state != ops.StatusOK {
			return false
		}
	}
	return s.Ready
}

// Down reports whether a dependency is down.
func (s State) Down(dependency string) bool {
	state, known := s.Dependencies[dependency]
	return known && state != ops.StatusOK
}

// Read reads the state from the operations server at url, such as http://127.0.0.1:9090. It keeps no connection.
func Read(url string) (State, error) {
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Get(url + "/readyz?verbose")
	if err != nil {
		return State{}, fmt.Errorf("asking %s: %w", url, err)
	}
	defer func() { _ = answer.Body.Close() }()
	state := State{Ready: answer.StatusCode == http.StatusOK}
	if err := json.NewDecoder(answer.Body).Decode(&state.Report); err != nil {
		return State{}, fmt.Errorf("reading the answer of %s: %w", url, err)
	}
	return state, nil
}

// AwaitUp waits until the service at url is ready and all of its dependencies are up.
func AwaitUp(t testing.TB, url string) {
	t.Helper()
	await(t, url, "ready", State.AllUp)
}

// AwaitUnready waits until the service at url reports that it is not ready.
func AwaitUnready(t testing.TB, url string) {
	t.Helper()
	await(t, url, "not ready", func(s State) bool { return !s.Ready })
}

// AwaitDown waits until the service at url is ready although it reports the dependency as down.
func AwaitDown(t testing.TB, url, dependency string) {
	t.Helper()
	await(t, url, "ready without "+dependency, func(s State) bool { return s.Ready && s.Down(dependency) })
}

func await(t testing.TB, url, what string, ok func(State) bool) {
	t.Helper()
	timetest.Await(t, what, func() (State, error) { return Read(url) }, ok)
}
