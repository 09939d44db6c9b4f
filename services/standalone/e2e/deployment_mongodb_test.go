package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/testkit/nettest"
)

// TestDeploymentOnMongoDB migrates a deployment that was seeded on SQLite to MongoDB and runs the session
// flow there, also with a store outage. MongoDB is the server in MONGODB_URI, or else FerretDB.
func TestDeploymentOnMongoDB(t *testing.T) {
	f := newDeployment(t, 2)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	own := os.Getenv("MONGODB_URI") == ""
	if own {
		f.addMongoDB(t)
		f.start(t, "mongodb")
	}
	f.start(t, "seed")
	if _, err := f.run["seed"].stop(); err != nil {
		t.Fatal(err)
	}
	if !own {
		f.MongoDB = os.Getenv("MONGODB_URI")
	}
	f.migrate(t)
	for _, name := range append([]string{"nats", "redis"}, f.services...) {
		f.start(t, name)
	}
	f.awaitReady(t, http.StatusOK, f.services...)
	t.Run("session", func(t *testing.T) { session(t, f.place, "polling", "websocket") })
	if own {
		t.Run("store away", f.storeOutage)
		t.Run("session after it", func(t *testing.T) { session(t, f.place, "websocket") })
	}
	for _, name := range f.services {
		if code, err := f.run[name].stop(); err != nil || code != 0 {
			t.Errorf("stopping %s: got code %d, %v, want 0", name, code, err)
		}
	}
}

// addMongoDB allocates the address of FerretDB.
func (f *deployment) addMongoDB(t *testing.T) {
	t.Helper()
	f.addr["mongodb"] = nettest.Addr(t)
	f.MongoDB = mongoDBURI(f.addr["mongodb"])
}

// mongoDBURI returns the URI of FerretDB, which has no transactions to retry in.
func mongoDBURI(addr string) string {
	return "mongodb://" + addr + "/?directConnection=true&retryWrites=false"
}

// migrate copies the seeded records to a new database of MongoDB, which the services use.
func (f *deployment) migrate(t *testing.T) {
	t.Helper()
	f.Database = "e2e_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	c := exec.CommandContext(t.Context(), program(t, "parleyctl"), "migrate", "--from", "sqlite:"+f.SQLitePath, "--to", "mongodb")
	c.Dir, c.Env = t.TempDir(), append(os.Environ(), f.storeSettings()...)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("parleyctl migrate: %v\n%s", err, out)
	}
}

// storeOutage kills the store under load: clients get 503, and accepted messages reach the history afterwards.
func (f *deployment) storeOutage(t *testing.T) {
	traffic := startTraffic(t, f.place)
	traffic.await(t, "traffic", &traffic.accepted, 30)
	check(t, f.run["mongodb"].kill())
	traffic.await(t, "503 while the store is down", &traffic.refused, 5)
	f.start(t, "mongodb")
	traffic.await(t, "traffic after the store is back", &traffic.accepted, 30)
	f.awaitReady(t, http.StatusOK, f.services...)
	traffic.checkNothingLost(t, f.place)
}
