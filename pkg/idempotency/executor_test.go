package idempotency_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/testkit/storetest"
	"github.com/parley-chat/parley/testkit/timetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is an executor with a real store.
type world struct {
	t        *testing.T
	store    store.Store
	clock    *timetest.Clock
	executor *idempotency.Executor
	acts     atomic.Int64
}

func open(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, store: storetest.Open(t)}
	// A store expires records by the real clock, so this clock starts at the current time.
	w.clock = timetest.NewClock(time.Now().Truncate(time.Millisecond))
	w.executor = w.replica()
	return w
}

func (w *world) replica() *idempotency.Executor {
	return idempotency.NewExecutor(w.store, nil, w.clock.Now, slog.New(slog.DiscardHandler))
}

var request = idempotency.Request{Scope: "company", Key: "key", Fingerprint: "content"}

// send returns the identity's id as the answer, so that answers for the same message are equal.
func (w *world) send(_ context.Context, identity chat.MessageIdentity) (idempotency.Answer, error) {
	w.acts.Add(1)
	return idempotency.Answer{Status: 200, Body: []byte(identity.ID)}, nil
}

func (w *world) do(r idempotency.Request, act idempotency.Act) (idempotency.Answer, error) {
	return w.executor.Do(w.t.Context(), r, act)
}

// ok is do for requests that must succeed.
func (w *world) ok(r idempotency.Request, act idempotency.Act) idempotency.Answer {
	w.t.Helper()
	answer, err := w.do(r, act)
	if err != nil {
		w.t.Fatalf("got %v, want an answer", err)
	}
	return answer
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) acted(want int64) {
	w.t.Helper()
	if got := w.acts.Load(); got != want {
		w.t.Errorf("acted %d times, want %d", got, want)
	}
}

func reasonOf(err error) string {
	e, _ := errors.AsType[*apperr.Error](err)
	if e == nil {
		return ""
	}
	return e.Reason
}

func TestFirstAnswerIsReplayed(t *testing.T) {
	t.Parallel()
	w := open(t)
	first := w.ok(request, w.send)
	w.clock.Advance(24*time.Hour - time.Millisecond)
	again := w.ok(request, w.send)
	if first.Replayed || !again.Replayed || again.Status != 200 || string(again.Body) != string(first.Body) {
		t.Errorf("got %+v and then %+v, want the same, replayed", first, again)
	}
	w.acted(1)
}

func TestReusedKeyIsRejected(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.ok(request, w.send)
	other := request
	other.Fingerprint = "other content"
	if _, err := w.do(other, w.send); apperr.CodeOf(err) != apperr.Invalid || reasonOf(err) != "IDEMPOTENCY_KEY_REUSED" {
		t.Errorf("got %v, want IDEMPOTENCY_KEY_REUSED", err)
	}
	other.Scope = "other company"
	if answer := w.ok(other, w.send); answer.Replayed {
		t.Error("got the answer of another scope")
	}
	w.acted(2)
}

// A permit is for one record: of a request that adds none it is given back, and without one only what is stored is
// answered.
func TestPermits(t *testing.T) {
	t.Parallel()
	w := open(t)
	left := 2
	r := request
	r.Permit = func() (func(), error) {
		if left == 0 {
			return nil, apperr.TooManyRequests.New()
		}
		left--
		return func() { left++ }, nil
	}
	use := func(key string) error {
		r.Key = key
		_, err := w.do(r, w.send)
		return err
	}
	wantLeft := func(want int) {
		t.Helper()
		if left != want {
			t.Errorf("got %d permits left, want %d", left, want)
		}
	}
	for range 3 {
		w.must(use("a"))
		wantLeft(1)
	}
	fail := func(context.Context, chat.MessageIdentity) (idempotency.Answer, error) {
		return idempotency.Answer{}, apperr.StreamFull.New()
	}
	r.Key = "b"
	if _, err := w.do(r, fail); !apperr.Is(err, apperr.Unavailable) {
		t.Fatalf("got %v, want the act's error", err)
	}
	wantLeft(0)
	if err := use("c"); !apperr.Is(err, apperr.TooMany) {
		t.Errorf("a new key without a permit: got %v, want TooMany", err)
	}
	for range 2 { // a replay, and an attempt after a failure
		w.must(use("a"))
		w.must(use("b"))
	}
	w.acted(2)
	w.clock.Advance(idempotency.KeyTTL)
	if err := use("a"); !apperr.Is(err, apperr.TooMany) {
		t.Errorf("an expired key without a permit: got %v, want TooMany", err)
	}
	left = 1
	w.must(use("a"))
	wantLeft(0)
}

func TestRequestInProgressIsAConflict(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.ok(request, func(ctx context.Context, identity chat.MessageIdentity) (idempotency.Answer, error) {
		for _, step := range []struct{ at, wait time.Duration }{
			{0, time.Second}, {5 * time.Second, 5 * time.Second}, {15 * time.Second, 10 * time.Second}, {9500 * time.Millisecond, time.Second},
		} {
			w.clock.Advance(step.at)
			_, err := w.do(request, w.send)
			e, _ := errors.AsType[*apperr.Error](err)
			if e == nil || e.Code != apperr.Conflict || e.Reason != "IDEMPOTENCY_KEY_IN_USE" || e.RetryAfter != step.wait {
				t.Errorf("after %s more: got %#v, want IDEMPOTENCY_KEY_IN_USE and %s", step.at, e, step.wait)
			}
			other := request
			other.Fingerprint = "other content"
			if _, err := w.do(other, w.send); reasonOf(err) != "IDEMPOTENCY_KEY_REUSED" {
				t.Errorf("another request: got %v, want IDEMPOTENCY_KEY_REUSED", err)
			}
		}
		return w.send(ctx, identity)
	})
	w.acted(1)
}

func TestOneOfConcurrentRequestsExecutes(t *testing.T) {
	t.Parallel()
	w := open(t)
	replicas := []*idempotency.Executor{w.executor, w.replica()}
	var group sync.WaitGroup
	ids := make([]string, 50)
	for i := range ids {
		group.Go(func() {
			for {
				answer, err := replicas[i%2].Do(t.Context(), request, w.send)
				if err == nil {
					ids[i] = string(answer.Body)
					return
				}
				if !apperr.Is(err, apperr.Conflict) {
					t.Errorf("got %v, want an answer or a conflict", err)
					return
				}
			}
		})
	}
	group.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("got the answers %s and %s, want the same", id, ids[0])
		}
	}
	w.acted(1)
}

// Failures that are not definite outcomes are not stored; a retry has the same message identity.
func TestFailuresAreRetried(t *testing.T) {
	t.Parallel()
	w := open(t)
	var identities []chat.MessageIdentity
	fail := func(err error) idempotency.Act {
		return func(_ context.Context, identity chat.MessageIdentity) (idempotency.Answer, error) {
			identities = append(identities, identity)
			return idempotency.Answer{}, err
		}
	}
	for _, err := range []error{
		apperr.Unreachable("NATS", errors.New("timeout")), errors.New("a fault"), &apperr.Error{Code: apperr.TooMany},
		&apperr.Error{Code: apperr.Unauthenticated}, &apperr.Error{Code: apperr.Conflict},
	} {
		if _, got := w.do(request, fail(err)); !errors.Is(got, err) {
			t.Errorf("got %v, want %v", got, err)
		}
		w.clock.Advance(time.Second)
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = w.do(request, func(context.Context, chat.MessageIdentity) (idempotency.Answer, error) { panic("a fault") })
	}()
	answer := w.ok(request, w.send)
	for i, s := range identities {
		if s.ID != string(answer.Body) || !s.At.Equal(identities[0].At) || s.Again != (i > 0) {
			t.Errorf("try %d: got the identity %+v, want the id %s, the time of the first try, and Again from the second", i, s, answer.Body)
		}
	}
	if answer.Replayed {
		t.Error("got a replay, want a new answer")
	}
}

// A definite error is an outcome.
func TestDefiniteErrorsAreReplayed(t *testing.T) {
	t.Parallel()
	for _, want := range []*apperr.Error{
		{Code: apperr.NotFound, Reason: "CHAT_NOT_FOUND", Message: "Chat not found"},
		{Code: apperr.Invalid, Reason: "X", Message: "x", Fields: []apperr.Field{{Name: "a", Message: "is wrong"}}},
	} {
		w := open(t)
		refuse := func(context.Context, chat.MessageIdentity) (idempotency.Answer, error) {
			return idempotency.Answer{}, want.Wrap(errors.New("why"))
		}
		_, _ = w.do(request, refuse)
		answer, err := w.do(request, w.send)
		got, _ := errors.AsType[*apperr.Error](err)
		if got == nil || got.Code != want.Code || got.Reason != want.Reason || got.Message != want.Message || len(got.Fields) != len(want.Fields) {
			t.Fatalf("got %#v, want %#v", got, want)
		}
		if !answer.Replayed {
			t.Error("got a new error, want a replay")
		}
		w.acted(0)
	}
}

// The first holder exceeds its lease; the next one continues with the same message after the lease has
// expired. If the first one finishes after all, it returns the second one's answer.
func TestExpiredLeaseIsTakenOver(t *testing.T) {
	t.Parallel()
	w := open(t)
	var second idempotency.Answer
	var first chat.MessageIdentity
	late := w.ok(request, func(ctx context.Context, identity chat.MessageIdentity) (idempotency.Answer, error) {
		first = identity
		w.clock.Advance(idempotency.Lease)
		second = w.ok(request, func(ctx context.Context, identity chat.MessageIdentity) (idempotency.Answer, error) {
			if !identity.Again || identity.ID != first.ID || !identity.At.Equal(first.At) {
				t.Errorf("got the identity %+v, want the same, %+v", identity, first)
			}
			return idempotency.Answer{Status: 200, Body: []byte("the second's")}, nil
		})
		return idempotency.Answer{Status: 200, Body: []byte("the first's")}, nil
	})
	if string(second.Body) != "the second's" || string(late.Body) != "the second's" || !late.Replayed {
		t.Errorf("got %s and %s, want the second's answer", second.Body, late.Body)
	}
}

// Of concurrent requests that find an expired lease, one takes it over.
func TestOneOfConcurrentRequestsTakesOver(t *testing.T) {
	t.Parallel()
	w := open(t)
	crashed := idempotency.Record{
		ID: idempotency.Fingerprint(request.Scope, request.Key), Fingerprint: request.Fingerprint, MessageID: "m",
		At: w.clock.Now(), LeasedUntil: w.clock.Now(), ExpiresAt: w.clock.Now().Add(time.Hour),
	}
	if _, _, err := w.store.InsertIdempotencyRecord(t.Context(), crashed); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if _, err := w.do(request, w.send); err != nil && !apperr.Is(err, apperr.Conflict) {
				t.Errorf("got %v, want an answer or a conflict", err)
			}
		})
	}
	group.Wait()
	w.acted(1)
}

func TestExpiredKeyCanBeReused(t *testing.T) {
	t.Parallel()
	w := open(t)
	first := w.ok(request, w.send)
	w.clock.Advance(idempotency.KeyTTL)
	other := request
	other.Fingerprint = "other content"
	second := w.ok(other, w.send)
	if second.Replayed || string(second.Body) == string(first.Body) {
		t.Errorf("got %+v after %+v, want a new message", second, first)
	}
	if again := w.ok(other, w.send); !again.Replayed || string(again.Body) != string(second.Body) {
		t.Errorf("got %+v, want a replay of the second answer", again)
	}
	w.acted(2)
}

// A request completes after its caller has disconnected, so that a retry gets the answer.
func TestRequestOfADisconnectedCallerCompletes(t *testing.T) {
	t.Parallel()
	w := open(t)
	ctx, disconnect := context.WithCancel(t.Context())
	_, err := w.executor.Do(ctx, request, func(ctx context.Context, identity chat.MessageIdentity) (idempotency.Answer, error) {
		disconnect()
		if ctx.Err() != nil {
			t.Error("the context was cancelled with the caller's")
		}
		return w.send(ctx, identity)
	})
	if err != nil {
		t.Errorf("got %v, want an answer", err)
	}
	if answer := w.ok(request, w.send); !answer.Replayed {
		t.Error("got a new answer, want a replay")
	}
	w.acted(1)
}

// readOnly is a store that fails to store answers.
type readOnly struct{ store.Store }

func (readOnly) EndIdempotencyLease(context.Context, string, string) (string, error) {
	return "", apperr.Unreachable("MongoDB", errors.New("gone"))
}

func TestAnswerIsReturnedIfStoringItFails(t *testing.T) {
	t.Parallel()
	w := open(t)
	executor := idempotency.NewExecutor(readOnly{w.store}, nil, w.clock.Now, slog.New(slog.DiscardHandler))
	first, err := executor.Do(t.Context(), request, w.send)
	if err != nil {
		t.Fatalf("got %v, want the answer", err)
	}
	w.clock.Advance(idempotency.Lease)
	if second := w.ok(request, w.send); string(second.Body) != string(first.Body) {
		t.Errorf("got the message %s, want the same, %s", second.Body, first.Body)
	}
}

// effects are those of messages that may be lost.
type effects struct{ lost atomic.Bool }

func (e *effects) Exists(context.Context, idempotency.Request, string) (bool, error) {
	return !e.lost.Load(), nil
}

// The answer of a lost message is not given again: the request is executed once more, as the same message.
func TestLostEffectIsExecutedAgain(t *testing.T) {
	t.Parallel()
	w := open(t)
	var stored effects
	w.executor = idempotency.NewExecutor(w.store, &stored, w.clock.Now, slog.New(slog.DiscardHandler))
	first := w.ok(request, w.send)
	if again := w.ok(request, w.send); !again.Replayed || w.acts.Load() != 1 {
		t.Errorf("while the message exists: got %+v after %d acts, want the stored answer", again, w.acts.Load())
	}
	stored.lost.Store(true)
	again := w.ok(request, func(ctx context.Context, identity chat.MessageIdentity) (idempotency.Answer, error) {
		if !identity.Again {
			t.Error("got a first attempt, want a repeated one")
		}
		return w.send(ctx, identity)
	})
	if again.Replayed || string(again.Body) != string(first.Body) || w.acts.Load() != 2 {
		t.Errorf("after the loss: got %+v after %d acts, want the same message, executed again", again, w.acts.Load())
	}
}
