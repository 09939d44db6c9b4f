package e2e

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/ops"
	"github.com/parley-chat/parley/testkit/abusetest"
)

// opsDocument describes the operations server for mutated requests.
const opsDocument = `{"openapi": "3.1.0", "info": {"title": "ops", "version": "1"}, "paths": {
	"/healthz": {"get": {"responses": {"200": {"description": "ok"}}}},
	"/readyz": {"get": {"responses": {"200": {"description": "ok"}}, "parameters": [{"name": "verbose", "in": "query", "schema": {"type": "string"}}]}},
	"/metrics": {"get": {"responses": {"200": {"description": "ok"}}}}}}`

// The operations server answers mutated requests without a failure, and keeps nothing of them. It is the only
// door of the processor.
func TestAbuseOfOperations(t *testing.T) { // not parallel: it measures the process
	handler := ops.New(ops.Config{Service: "test", Gatherer: prometheus.NewRegistry()}).Handler()
	operations, err := abusetest.Operations([]byte(opsDocument))
	check(t, err)
	requests := abuseRequests()
	abuseOperations(t, handler, operations, requests/10) // fills caches and pools
	before := settled(t, footprint{goroutines: 1 << 20})
	abuseOperations(t, handler, operations, requests)
	grown := settled(t, before).heap - before.heap
	const most = 4 << 20
	if grown > most {
		t.Errorf("the heap has grown by %d bytes, want at most %d", grown, most)
	}
	t.Logf("%d requests, the heap has grown by %d KiB", len(operations)*requests, grown>>10)
}

func abuseOperations(t *testing.T, handler http.Handler, operations []abusetest.Operation, requests int) {
	t.Helper()
	m := abusetest.New(abusetest.Config{Seed: abuseSeed(t)})
	for _, o := range operations {
		good, refused := 0, 0
		for range requests {
			r := m.Next(o)
			req, err := r.HTTP(t.Context())
			if err != nil {
				continue // net/http refuses it
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, req)
			switch {
			case w.Code >= http.StatusInternalServerError:
				t.Errorf("got %d %s, want no failure of\n%s", w.Code, w.Body, r)
			case w.Code >= http.StatusBadRequest:
				refused++
			default:
				good++
			}
		}
		if good == 0 || refused == 0 {
			t.Errorf("%s: got %d good answers and %d refusals, want some of either kind", o, good, refused)
		}
	}
}
