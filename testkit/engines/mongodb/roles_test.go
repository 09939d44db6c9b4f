package mongodb_test

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/event"
	"golang.org/x/tools/go/packages"

	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/encrypted"
	"github.com/parley-chat/parley/pkg/store/mongodb"
	testkit "github.com/parley-chat/parley/testkit/engines/mongodb"
	"github.com/parley-chat/parley/testkit/needs"
	"github.com/parley-chat/parley/testkit/storetest"
)

const (
	repository  = "../../.."
	module      = "github.com/parley-chat/parley/"
	storePath   = module + "pkg/store"
	mongodbPath = storePath + "/mongodb"

	idempotencyPath = module + "pkg/idempotency"
)

// privileges are actions of MongoDB by collection.
type privileges map[string][]string

func (p privileges) add(collection string, actions ...string) {
	for _, a := range actions {
		if !slices.Contains(p[collection], a) {
			p[collection] = append(p[collection], a)
			slices.Sort(p[collection])
		}
	}
}

// cached are the methods of the cache that read something else than the method of the store with their name.
var cached = map[string][]string{"FreshChat": {"Chat"}, "Webhooks": {"WebhookEndpoints", "Company"}, "Forget": nil}

// actionsOf are the actions that a command needs. The store sends no upserts.
var actionsOf = map[string][]string{
	"find": {"find"}, "aggregate": {"find"}, "count": {"find"}, "distinct": {"find"}, "insert": {"insert"}, "update": {"update"},
	"delete": {"remove"}, "findAndModify": {"find", "update"}, "createIndexes": {"createIndex"}, "listIndexes": {"listIndexes"},
}

// TestRoles compares the roles of deploy/mongodb/users.js with the store's methods that each service calls,
// and the commands that these send.
func TestRoles(t *testing.T) {
	needs.Long(t) // the commands are recorded on FerretDB
	text, err := os.ReadFile(filepath.Join(repository, "deploy/mongodb/users.js"))
	ok(t, err)
	table := regexp.MustCompile(`(?s)const roles = (\{.*?\n\});`).FindSubmatch(text)
	if table == nil {
		t.Fatal("got no table of roles")
	}
	var roles map[string]privileges
	ok(t, json.Unmarshal(table[1], &roles))
	services := []string{"client-api", "widget-api", "processor", "panel"}
	if got := slices.Sorted(maps.Keys(roles)); !slices.Equal(got, slices.Sorted(slices.Values(services))) {
		t.Errorf("got the roles %v, want those of %v", got, services)
	}
	byMethod := commandsByMethod(t)
	for service, methods := range storeCalls(t, services) {
		need := make(privileges)
		for _, method := range methods {
			if byMethod[method] == nil && method != "Ready" && method != "Close" {
				t.Errorf("%s calls %s, which no test of the contract does", service, method)
			}
			for collection, actions := range byMethod[method] {
				need.add(collection, actions...)
			}
		}
		if got, want := inJSON(t, roles[service]), inJSON(t, need); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s\nfor %v", service, got, want, methods)
		}
	}
}

// inJSON returns the privileges as users.js has them, a collection in each line.
func inJSON(t *testing.T, p privileges) string {
	t.Helper()
	var lines []string
	for _, collection := range slices.Sorted(maps.Keys(p)) {
		actions, err := json.Marshal(p[collection])
		ok(t, err)
		lines = append(lines, fmt.Sprintf("    %q: %s", collection, strings.ReplaceAll(string(actions), ",", ", ")))
	}
	return strings.Join(lines, ",\n")
}

// commandsByMethod runs the steps and the contract suite and returns what each method of the store needs.
func commandsByMethod(t *testing.T) map[string]privileges {
	t.Helper()
	var mu sync.Mutex
	needs := make(map[string]privileges)
	monitor := func(c *mongodb.Config) {
		c.Monitor = &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
			actions, method := actionsOf[e.CommandName], callingMethod()
			mu.Lock()
			defer mu.Unlock()
			if needs[method] == nil {
				needs[method] = make(privileges)
			}
			if collection, ok := e.Command.Lookup(e.CommandName).StringValueOK(); ok && len(actions) > 0 {
				needs[method].add(collection, actions...)
			} else if !slices.Contains([]string{"ping", "getMore", "endSessions", "killCursors"}, e.CommandName) {
				t.Errorf("%s sends %s, which has no known action", method, e.CommandName)
			}
		}}
	}
	t.Run("recording", func(t *testing.T) { // ends with its parallel subtests
		e := testkit.FerretDB(t)
		for _, step := range allSteps(t, e.Open(t, e.Database(t), monitor)) {
			ok(t, step.call())
		}
		storetest.Run(t, func(t testing.TB, options ...storetest.Options) store.Store {
			engine := e.Open(t, e.Database(t), monitor, func(c *mongodb.Config) {
				for _, o := range options {
					c.IdleClose = o.IdleClose
				}
			})
			return encrypted.New(engine, storetest.Keys()) // as services open it
		})
	})
	return needs
}

// callingMethod returns the exported method of the store that the caller of the contract has called.
func callingMethod() (method string) {
	var counters [64]uintptr
	frames := runtime.CallersFrames(counters[:runtime.Callers(2, counters[:])])
	for {
		frame, more := frames.Next()
		if name, found := strings.CutPrefix(frame.Function, mongodbPath+".(*Store)."); found && ast.IsExported(name) {
			method, _, _ = strings.Cut(name, ".")
		}
		if !more {
			return method
		}
	}
}

// storeCalls returns, for each service, the methods of the store that its packages call: through an
// interface, on the cache or on the store itself. A shared package counts for each service that has it.
func storeCalls(t *testing.T, services []string) map[string][]string {
	t.Helper()
	used := make(map[string][]string) // paths of our packages by service
	var all []string
	for _, service := range services {
		main := module + "services/" + service + "/cmd/" + service
		loaded, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedImports | packages.NeedDeps, Dir: repository}, main)
		ok(t, err)
		packages.Visit(loaded, nil, func(p *packages.Package) {
			if strings.HasPrefix(p.PkgPath, module) {
				used[service], all = append(used[service], p.PkgPath), append(all, p.PkgPath)
			}
		})
	}
	slices.Sort(all)
	const typed = packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo
	loaded, err := packages.Load(&packages.Config{Mode: typed, Dir: repository}, slices.Compact(all)...)
	ok(t, err)
	var contract []string
	byPath := make(map[string]*packages.Package)
	for _, p := range loaded {
		byPath[p.PkgPath] = p
		for _, fault := range p.Errors {
			t.Fatal(fault)
		}
	}
	methods := types.NewMethodSet(types.NewPointer(byPath[mongodbPath].Types.Scope().Lookup("Store").Type()))
	for method := range methods.Methods() {
		contract = append(contract, method.Obj().Name())
	}
	cache := types.NewMethodSet(types.NewPointer(byPath[storePath].Types.Scope().Lookup("Cache").Type()))
	for method := range cache.Methods() {
		name := method.Obj().Name()
		if _, known := cached[name]; method.Obj().Exported() && !known && !slices.Contains(contract, name) {
			t.Errorf("got the method %s of the cache, want what it reads in this test", name)
		}
	}
	calls := make(map[string][]string)
	for service, paths := range used {
		found := make(map[string]bool)
		for _, path := range paths {
			switch {
			case path == storePath, strings.HasPrefix(path, storePath+"/"):
			case path == idempotencyPath && !imports(byPath, module+"services/"+service, idempotencyPath):
				// Every service has it, because pkg/httpapi imports it.
			default:
				findCalls(byPath[path], contract, found)
			}
		}
		calls[service] = slices.Sorted(maps.Keys(found))
	}
	return calls
}

// imports reports whether a package of a service imports another package itself.
func imports(byPath map[string]*packages.Package, service, path string) bool {
	for _, p := range byPath {
		if _, found := p.Imports[path]; found && (p.PkgPath == service || strings.HasPrefix(p.PkgPath, service+"/")) {
			return true
		}
	}
	return false
}

// findCalls adds the methods of the contract that a package calls.
func findCalls(p *packages.Package, contract []string, found map[string]bool) {
	for _, selection := range p.TypesInfo.Selections {
		method := selection.Obj()
		if selection.Kind() == types.FieldVal || method.Pkg() == nil || !strings.HasPrefix(method.Pkg().Path(), module) {
			continue
		}
		receiver := method.Type().(*types.Signature).Recv().Type()
		if !types.IsInterface(receiver) && method.Pkg().Path() != storePath && method.Pkg().Path() != mongodbPath {
			continue
		}
		if slices.Contains(contract, method.Name()) {
			found[method.Name()] = true
		}
		for _, name := range cached[method.Name()] {
			found[name] = true
		}
	}
}
