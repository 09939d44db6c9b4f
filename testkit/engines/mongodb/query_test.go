package mongodb_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/mongodb"
	testkit "github.com/parley-chat/parley/testkit/engines/mongodb"
)

// TestRoundTrips limits the number of commands of each call of the contract.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, e testkit.Engine) {
		var r recorder
		s := e.Open(t, e.Database(t), r.monitor)
		for _, step := range allSteps(t, s) {
			r.take()
			if err := step.call(); err != nil {
				t.Fatalf("%s: %v", step.name, err)
			}
			if got := r.take(); len(got) != step.trips {
				t.Errorf("%s: got %d commands, want %d: %v", step.name, len(got), step.trips, got)
			}
		}
	})
}

// TestPageIsOneQuery reads pages that are larger than the driver's default batch.
func TestPageIsOneQuery(t *testing.T) {
	t.Parallel()
	e := testkit.FerretDB(t)
	var r recorder
	s := e.Open(t, e.Database(t), r.monitor)
	c := newChat(t, s)
	manyMessages(t, s, c.ID, 250)
	for _, q := range []store.HistoryQuery{{}, {Limit: 249}, {Limit: 250}, {Limit: 101}} {
		r.take()
		page, more, err := s.History(t.Context(), c.ID, q)
		if err != nil || more != (q.Limit > 0 && q.Limit < 250) || q.Limit > 0 && len(page) != q.Limit {
			t.Fatalf("%+v: got %d messages, more %v, %v", q, len(page), more, err)
		}
		if got := r.take(); len(got) != 1 {
			t.Errorf("%+v: got %d commands, want 1: %v", q, len(got), got)
		}
	}
}

// TestEveryQueryHasAnIndex compares every command of the store with the declared indexes and, on an engine
// with explain, with the query plans.
func TestEveryQueryHasAnIndex(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, e testkit.Engine) {
		var r recorder
		database := e.Database(t)
		s := e.Open(t, database, r.monitor)
		if !e.IsFerretDB() {
			ok(t, s.EnsureIndexes(t.Context()))
		}
		r.take()
		for _, step := range allSteps(t, s) {
			ok(t, step.call())
		}
		commands, checked := r.take(), 0
		raw := e.Raw(t, database)
		for _, command := range commands {
			q, isQuery := queryOf(t, command)
			if !isQuery {
				continue
			}
			checked++
			if !q.covered(mongodb.Indexes()) {
				t.Errorf("no declared index serves %v", q)
			}
			if !e.IsFerretDB() {
				checkPlan(t, raw, q, command)
			}
		}
		if checked < 100 {
			t.Errorf("got %d queries, want all that the contract needs", checked)
		}
	})
}

// TestNoIndexNoCoverage checks that TestEveryQueryHasAnIndex would reject a query without an index.
func TestNoIndexNoCoverage(t *testing.T) {
	t.Parallel()
	for why, q := range map[string]query{
		"everything":              {collection: "chats"},
		"a field without index":   {collection: "messages", filter: bson.D{{Key: "type", Value: "TEXT"}}},
		"not the first field":     {collection: "messages", filter: bson.D{{Key: "order", Value: "x"}}},
		"a sort in memory":        {collection: "messages", filter: bson.D{{Key: "chatId", Value: "c"}}, sort: bson.D{{Key: "createdAt", Value: 1}}},
		"a mixed direction":       {collection: "chats", filter: bson.D{{Key: "appId", Value: "a"}}, sort: bson.D{{Key: "createdAt", Value: 1}, {Key: "_id", Value: 1}}},
		"a range and no equality": {collection: "messages", filter: bson.D{{Key: "order", Value: bson.D{{Key: "$lt", Value: "x"}}}}},
	} {
		if q.covered(mongodb.Indexes()) {
			t.Errorf("%s: got covered, want not: %v", why, q)
		}
	}
}

// query is the filter and the sort of a command.
type query struct {
	collection   string
	filter, sort bson.D
}

func (q query) String() string {
	return fmt.Sprintf("%s: %v sorted by %v", q.collection, q.filter, q.sort)
}

// queryOf returns the query of a command; none for ping, insert and similar.
func queryOf(t testing.TB, command bson.Raw) (q query, isQuery bool) {
	t.Helper()
	var d struct {
		Filter, Query, Sort bson.D
		Updates, Deletes    []struct{ Q bson.D }
		Pipeline            []bson.D
	}
	elements, err := command.Elements()
	ok(t, err)
	if err := bson.Unmarshal(command, &d); err != nil {
		t.Fatal(err)
	}
	name := elements[0].Key()
	q.collection, _ = elements[0].Value().StringValueOK()
	q.sort = d.Sort
	switch name {
	case "find":
		q.filter = d.Filter
	case "findAndModify":
		q.filter = d.Query
	case "update":
		q.filter = d.Updates[0].Q
	case "delete":
		q.filter = d.Deletes[0].Q
	case "aggregate":
		match, _ := d.Pipeline[0][0].Value.(bson.D)
		q.filter = match
		// seeks from one value to the next: each is a query for one value
		if group, ok := d.Pipeline[1][0].Value.(bson.D); ok {
			field, _ := group[0].Value.(string)
			q.filter = append(q.filter, bson.E{Key: strings.TrimPrefix(field, "$"), Value: "any"})
		}
	case "insert", "ping", "endSessions":
		return q, false
	default:
		t.Fatalf("a command that this test does not know: %s", name)
	}
	return q, true
}

// covered reports whether one range of an index serves the query in its sort order.
func (q query) covered(indexes []mongodb.Index) bool {
	all := append(slices.Clone(indexes), mongodb.Index{Collection: q.collection, Name: "_id_", Keys: bson.D{{Key: "_id", Value: int32(1)}}})
	return slices.ContainsFunc(all, func(i mongodb.Index) bool { return i.Collection == q.collection && q.coveredBy(i.Keys) })
}

func (q query) coveredBy(keys bson.D) bool {
	equal, ranges := map[string]bool{}, map[string]bool{}
	for _, condition := range q.filter {
		operators, compares := condition.Value.(bson.D)
		switch {
		case strings.HasPrefix(condition.Key, "$"): // checked on the index's results
		case !compares, len(operators) == 1 && operators[0].Key == "$in":
			equal[condition.Key] = true
		default:
			ranges[condition.Key] = true
		}
	}
	if equal["_id"] && keys[0].Key == "_id" { // one document
		return true
	}
	used := false
	for len(keys) > 0 && equal[keys[0].Key] {
		keys, used = keys[1:], true
	}
	if len(keys) > 0 && ranges[keys[0].Key] {
		delete(ranges, keys[0].Key)
		used = true
	}
	if len(ranges) > 0 {
		return false
	}
	if len(q.sort) == 0 {
		return used
	}
	return sorted(keys, q.sort) || used && len(keys) == 0 && equal[q.sort[0].Key]
}

// sorted reports whether keys begin with the sort, ascending or descending.
func sorted(keys, sort bson.D) bool {
	if len(keys) < len(sort) {
		return false
	}
	direction := number(keys[0].Value) * number(sort[0].Value)
	for n, field := range sort {
		if keys[n].Key != field.Key || number(keys[n].Value)*number(field.Value) != direction {
			return false
		}
	}
	return true
}

func number(v any) int {
	switch n := v.(type) {
	case int32:
		return int(n)
	case int64:
		return int(n)
	case int:
		return n
	}
	return 0
}

// checkPlan explains a command as the store issued it. A plan must not scan a collection or sort in memory.
func checkPlan(t *testing.T, raw *mongo.Database, q query, command bson.Raw) {
	t.Helper()
	var fields bson.D
	ok(t, bson.Unmarshal(command, &fields))
	fields = slices.DeleteFunc(fields, func(e bson.E) bool {
		return strings.HasPrefix(e.Key, "$") || slices.Contains([]string{"lsid", "txnNumber", "readConcern", "writeConcern"}, e.Key)
	})
	var reply bson.D
	err := raw.RunCommand(t.Context(), bson.D{{Key: "explain", Value: fields}, {Key: "verbosity", Value: "queryPlanner"}}).Decode(&reply)
	if err != nil {
		t.Errorf("explaining %v: %v", q, err)
		return
	}
	stages := stagesOf(reply)
	if len(stages) == 0 {
		t.Errorf("explaining %v: got no stage in %v", q, reply)
	}
	for _, stage := range stages {
		if stage == "COLLSCAN" || stage == "SORT" {
			t.Errorf("%v: got the plan %v, want no %s", q, stages, stage)
		}
	}
}

// stagesOf collects the stages of the winning plans.
func stagesOf(v any) (stages []string) {
	switch v := v.(type) {
	case bson.D:
		for _, e := range v {
			if stage, isText := e.Value.(string); isText && e.Key == "stage" {
				stages = append(stages, stage)
			}
			if e.Key != "rejectedPlans" && e.Key != "command" {
				stages = append(stages, stagesOf(e.Value)...)
			}
		}
	case bson.A:
		for _, e := range v {
			stages = append(stages, stagesOf(e)...)
		}
	}
	return stages
}
