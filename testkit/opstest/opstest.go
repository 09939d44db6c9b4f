// Package opstest asks a service's operations server what it says of itself, for tests.
package opstest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/parley-chat/parley/pkg/ops"
)

// State is the answer of /readyz?verbose.
type State struct {
	Ready bool // the status was 200
	ops.Report
}

// AllUp tells whether the service is ready and can use all of its dependencies.
func (s State) AllUp() bool {
	for _, state := range s.Dependencies {
		if state != ops.StatusOK {
			return false
		}
	}
	return s.Ready
}

// Away tells whether the service cannot use a dependency.
func (s State) Away(dependency string) bool {
	state, known := s.Dependencies[dependency]
	return known && state != ops.StatusOK
}

// Read asks the operations server at url, such as http://127.0.0.1:9090. It keeps no connection.
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
