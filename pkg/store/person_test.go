package store_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/storetest"
)

// form is what somebody registers with: identities by kind, as in "userId=1".
type form []string

func (f form) identities(scope string) (all []store.Identity) {
	for _, text := range f {
		kind, value, _ := strings.Cut(text, "=")
		all = append(all, store.Identity{Scope: scope, Kind: kind, Value: value})
	}
	return all
}

// oneByOne is what the rules say of registrations that come one after the other: who each of them is, and whose each identity is.
func oneByOne(forms []form, order []int) string {
	owners, people := map[string]int{}, make([]int, len(forms))
	for _, n := range order {
		person := -1
		for _, identity := range forms[n] {
			if owner, ok := owners[identity]; ok && person < 0 {
				person = owner
			}
		}
		if person < 0 {
			person = n
		}
		people[n] = person
		for _, identity := range forms[n] {
			if _, ok := owners[identity]; !ok {
				owners[identity] = person
			}
		}
	}
	return outcome(people, owners)
}

// outcome describes who is the same person as whom, whatever their ids are.
func outcome[ID comparable](people []ID, owners map[string]ID) string {
	var b strings.Builder
	names := map[ID]int{}
	name := func(id ID) int {
		if _, ok := names[id]; !ok {
			names[id] = len(names)
		}
		return names[id]
	}
	for _, id := range people {
		fmt.Fprint(&b, name(id), " ")
	}
	for _, identity := range slices.Sorted(maps.Keys(owners)) {
		fmt.Fprint(&b, identity, ":", name(owners[identity]), " ")
	}
	return b.String()
}

func orders(n int) (all [][]int) {
	if n == 0 {
		return [][]int{nil}
	}
	for _, rest := range orders(n - 1) {
		for at := range n {
			all = append(all, slices.Insert(slices.Clone(rest), at, n-1))
		}
	}
	return all
}

// Registrations that come at once, on two replicas, end as if they had come one after the other, in whichever order: nobody
// is two people who would have been one.
func TestRegistrationsAtOnceEndAsOneByOne(t *testing.T) {
	t.Parallel()
	uri, database := storetest.Start(t), storetest.DatabaseName()
	replicas := []*store.Store{storetest.OpenAt(t, uri, database), storetest.OpenAt(t, uri, database)}
	sets := [][]form{
		{{"email=a"}, {"userId=1", "email=a"}},
		{{"userId=1", "email=a"}, {"userId=1"}, {"email=a"}},
		{{"email=a"}, {"userId=1", "email=a"}, {"userId=1", "email=a"}},
		{{"userId=1", "email=a"}, {"email=a", "phone=5"}, {"userId=1", "phone=5"}},
	}
	random := rand.New(rand.NewPCG(7, 7))
	for range 40 / scale {
		var set []form
		for range 4 {
			var f form
			for _, kind := range []string{"userId", "email", "phone"} {
				if random.IntN(2) == 0 {
					f = append(f, fmt.Sprint(kind, "=", random.IntN(2)))
				}
			}
			if f != nil {
				set = append(set, f)
			}
		}
		sets = append(sets, set)
	}
	for _, set := range sets {
		var allowed []string
		for _, order := range orders(len(set)) {
			allowed = append(allowed, oneByOne(set, order))
		}
		if got := atOnce(t, replicas, set); !slices.Contains(allowed, got) {
			t.Errorf("%v at once: got %s, want one of %q", set, got, slices.Compact(slices.Sorted(slices.Values(allowed))))
		}
	}
}

func atOnce(t *testing.T, replicas []*store.Store, set []form) string {
	t.Helper()
	scope, people := uuid.NewString(), make([]string, len(set))
	resolve := func(n int, f form) string {
		id, _, err := replicas[n%len(replicas)].ResolveVisitor(t.Context(), f.identities(scope))
		if err != nil {
			t.Errorf("resolving %v: %v", f, err)
		}
		return id
	}
	var all sync.WaitGroup
	for n, f := range set {
		all.Go(func() { people[n] = resolve(n, f) })
	}
	all.Wait()
	owners := map[string]string{}
	for _, f := range set {
		for n, identity := range f {
			owners[identity] = resolve(n, form{identity})
		}
	}
	return outcome(people, owners)
}

// Two people whose identities stand in one form stay two: the strongest decides who registers, and the other keeps what is theirs.
func TestPeopleAreNeverJoined(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	resolve := func(f form) string {
		t.Helper()
		id, _, err := s.ResolveVisitor(t.Context(), f.identities("app"))
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	ada, bob := resolve(form{"email=ada"}), resolve(form{"userId=bob"})
	if ada == bob {
		t.Fatal("got one person, want two")
	}
	if got := resolve(form{"email=ada", "userId=bob", "phone=1"}); got != bob {
		t.Errorf("both identities: got %s, want %s, whose userId it is", got, bob)
	}
	if got := resolve(form{"email=ada"}); got != ada {
		t.Errorf("the e-mail alone: got %s, want %s still", got, ada)
	}
	if got := resolve(form{"phone=1"}); got != bob {
		t.Errorf("the new phone: got %s, want %s, to whom it was added", got, bob)
	}
	if got, err := s.FindVisitor(t.Context(), form{"email=ada"}.identities("app")[0]); err != nil || got != ada {
		t.Errorf("finding: got %s, %v, want %s", got, err, ada)
	}
}
