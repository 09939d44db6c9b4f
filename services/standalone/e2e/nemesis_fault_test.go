package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/redisclient"
	"github.com/parley-chat/parley/testkit/nemesis"
	"github.com/parley-chat/parley/testkit/opstest"
)

// The targets of faults beside processes and links.
const (
	targetGateways   = "gateways"
	targetProcessors = "processors"
	targetServices   = "services"
	targetDisk       = "nats-disk" // with three servers all of their disks
	targetStore      = "store-disk"
	targetLeaders    = "nats-leaders"
	targetWebhook    = "webhook"
	targetModel      = "model"
	clockSuffix      = "-clock"
	natsSuffix       = "-nats"
)

// targets returns what faults hit in this topology.
func (w *nemesisWorld) targets() (all []nemesis.Target) {
	add := func(kind, name string, faults ...string) {
		all = append(all, nemesis.Target{Name: name, Kind: kind, Faults: faults})
	}
	for _, name := range w.running() {
		add("service", name, nemesis.Kill, nemesis.Term, nemesis.Pause)
		add("clock", name+clockSuffix, nemesis.Clock, nemesis.ClockDrift)
	}
	if len(w.nats) > 0 {
		w.addEngines(add)
	}
	for _, name := range slices.Sorted(maps.Keys(w.links)) {
		faults := []string{nemesis.Cut, nemesis.Delay, nemesis.HalfOpen}
		if strings.HasSuffix(name, natsSuffix) { // what was published is stored, and its publisher does not know
			faults = append(faults, nemesis.NoAnswers)
		}
		add("link", name, faults...)
	}
	for _, name := range slices.Sorted(maps.Keys(w.machines)) {
		add("disk", name, nemesis.Power)
	}
	for _, name := range slices.Sorted(maps.Keys(w.disks)) {
		add("disk", name, nemesis.Slow, nemesis.Fill)
	}
	add("webhook", targetWebhook, nemesis.Dead)
	return all
}

// addEngines adds what a single process has not: replicas and engines.
func (w *nemesisWorld) addEngines(add func(kind, name string, faults ...string)) {
	add("replicas", targetGateways, nemesis.ScaleUp, nemesis.ScaleDown)
	add("replicas", targetProcessors, nemesis.ScaleDown)
	add("replicas", targetServices, nemesis.Rolling)
	for _, name := range w.nats {
		add("engine", name, nemesis.Kill, nemesis.Term, nemesis.Pause)
	}
	if w.clustered {
		add("engine", targetLeaders, nemesis.Leader)
	} else {
		add("engine", "nats-sync", nemesis.Kill, nemesis.Term, nemesis.Pause)
	}
	if w.units["mongodb"] != nil {
		add("engine", "mongodb", nemesis.Kill, nemesis.Term, nemesis.Pause)
	}
	add("engine", "redis", nemesis.Kill, nemesis.Term, nemesis.Pause, nemesis.Forget)
	if w.model != nil {
		add("model", targetModel, nemesis.Dead, nemesis.Slow)
	}
}

// checkTimetable ends the test if a timetable was made for another topology.
func (w *nemesisWorld) checkTimetable(t *testing.T, faults nemesis.Timetable) {
	t.Helper()
	targets := w.targets()
	for _, f := range faults {
		accepts := func(target nemesis.Target) bool {
			return target.Name == f.Target && slices.Contains(target.Faults, f.Kind)
		}
		if !slices.ContainsFunc(targets, accepts) {
			t.Fatalf("%s: this topology has no such target", f)
		}
	}
}

// suffer injects the faults of a timetable at their times, and returns when all have ended.
func (w *nemesisWorld) suffer(ctx context.Context, t *testing.T, faults nemesis.Timetable) {
	began := time.Now()
	var running sync.WaitGroup
	for _, f := range faults {
		running.Go(func() {
			select {
			case <-time.After(time.Until(began.Add(f.At))):
				w.inject(t, f)
			case <-ctx.Done():
			}
		})
	}
	running.Wait()
}

// inject injects a fault, ends it, and records both. It waits for an earlier fault of the target.
func (w *nemesisWorld) inject(t *testing.T, f nemesis.Fault) {
	lock := w.busy[strings.TrimSuffix(f.Target, clockSuffix)]
	if lock != nil {
		lock.Lock()
		defer lock.Unlock()
	}
	span := nemesis.FaultSpan{Fault: f, Begun: time.Now()}
	t.Logf("%s", f)
	end, err := w.begin(t, f)
	if end != nil {
		time.Sleep(f.For)
		err = errors.Join(err, end())
	}
	span.Ended = time.Now()
	if err != nil {
		span.Err = err.Error()
		w.breach(ruleRuns, "%s: %v", f, err)
	}
	w.record.AddFault(span)
}

// begin begins a fault. end ends it.
func (w *nemesisWorld) begin(t *testing.T, f nemesis.Fault) (end func() error, err error) {
	switch f.Kind {
	case nemesis.Kill:
		u := w.units[f.Target]
		return u.run, u.kill()
	case nemesis.Term:
		u := w.units[f.Target]
		return u.run, w.terminate(u)
	case nemesis.Pause:
		u := w.units[f.Target]
		return func() error { return u.signal(syscall.SIGCONT) }, u.signal(syscall.SIGSTOP)
	case nemesis.Cut, nemesis.Delay, nemesis.HalfOpen, nemesis.NoAnswers:
		return w.breakLink(f)
	case nemesis.Clock, nemesis.ClockDrift:
		return w.bendClock(t, f)
	case nemesis.Rolling:
		return w.roll(f)
	case nemesis.ScaleUp, nemesis.ScaleDown:
		return w.scale(f)
	case nemesis.Forget:
		return done, w.forget(t.Context())
	case nemesis.Leader:
		return done, w.electLeaders(t.Context())
	case nemesis.Power:
		return w.losePower(t, f)
	case nemesis.Fill:
		return w.fillDisk(f)
	case nemesis.Slow:
		if _, isDisk := w.disks[f.Target]; isDisk {
			return w.slowDisk(f)
		}
		return w.dependency(f.Target).begin(f, w.chance(f.String())), nil
	case nemesis.Dead:
		return w.dependency(f.Target).begin(f, w.chance(f.String())), nil
	}
	return nil, fmt.Errorf("this topology has no fault %q", f.Kind)
}

// dependency returns the server beside Parley that a fault hits.
func (w *nemesisWorld) dependency(target string) *dependency {
	if target == targetModel {
		return &w.model.dependency
	}
	return &w.endpoint.dependency
}

// done ends a fault that has ended by itself.
func done() error { return nil }

// terminate stops a process as an orchestrator does. A service that runs must end by itself, with code 0, unless it
// notices now that a stream has lost messages. One that starts may not handle signals yet, and the engines have codes
// of their own.
func (w *nemesisWorld) terminate(u *unit) error {
	_, notRunning := opstest.Read("http://" + w.ops[u.name])
	code, err := u.stop()
	if err == nil && code != 0 && notRunning == nil && !noticedLoss(u.child) {
		err = fmt.Errorf("%s stopped with code %d, want 0", u.name, code)
	}
	return err
}

// breakLink breaks a link. Half of the half-open links have lost the connections of before: what is sent over them
// disappears.
func (w *nemesisWorld) breakLink(f nemesis.Fault) (end func() error, err error) {
	link := w.links[f.Target]
	var mend func()
	switch f.Kind {
	case nemesis.Cut:
		mend = link.Cut()
	case nemesis.Delay:
		mend = link.Delay(time.Duration(f.Arg) * time.Millisecond)
	case nemesis.HalfOpen:
		mend = link.Silence()
		if w.chance(f.String()).IntN(2) == 0 {
			link.Lose()
		}
	case nemesis.NoAnswers:
		mend = func() {} // until the client notices, and connects again
		link.LoseAnswers()
	}
	return func() error { mend(); return nil }, nil
}

// bendClock sets a service's clock wrong, or lets it drift.
func (w *nemesisWorld) bendClock(t *testing.T, f nemesis.Fault) (end func() error, err error) {
	name := strings.TrimSuffix(f.Target, clockSuffix)
	if f.Kind == nemesis.Clock {
		w.setClock(t, name, f.Arg)
		return func() error { w.setClock(t, name, 0); return nil }, nil
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		began := time.Now()
		for {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
				w.setClock(t, name, int(time.Since(began).Seconds()*float64(f.Arg)))
			}
		}
	}()
	return func() error {
		close(stop)
		<-stopped
		w.setClock(t, name, 0)
		return nil
	}, nil
}

// rollingPatience bounds how long a rolling restart waits for a service to be ready: other faults may delay that.
const rollingPatience = 5 * time.Second

// roll restarts all services, one after the other.
func (w *nemesisWorld) roll(nemesis.Fault) (end func() error, err error) {
	for _, name := range w.running() {
		err = errors.Join(err, w.restart(name))
	}
	return done, err
}

// restart stops a service and starts it, and waits until it is ready.
func (w *nemesisWorld) restart(name string) error {
	w.busy[name].Lock()
	defer w.busy[name].Unlock()
	u := w.units[name]
	if err := errors.Join(w.terminate(u), u.run()); err != nil {
		return err
	}
	until(time.Now().Add(rollingPatience), func() bool {
		state, err := opstest.Read("http://" + w.ops[name])
		return err == nil && state.Ready
	})
	return nil
}

// scale starts a further gateway, or stops a gateway or a processor.
func (w *nemesisWorld) scale(f nemesis.Fault) (end func() error, err error) {
	name := gatewayName(nemesisGateways - 1)
	switch {
	case f.Kind == nemesis.ScaleUp:
		name = w.spare()
	case f.Target == targetProcessors:
		name = "processor-2"
	}
	w.busy[name].Lock()
	u := w.units[name]
	stop := func() error { return w.terminate(u) }
	begin, finish := stop, u.run
	if f.Kind == nemesis.ScaleUp {
		begin, finish = u.run, stop
	}
	end = func() error {
		defer w.busy[name].Unlock()
		return finish()
	}
	return end, begin()
}

// forget lets Redis forget everything.
func (w *nemesisWorld) forget(ctx context.Context) error {
	client, err := redisclient.New(w.redisURL("operator"), redisclient.Timeouts{})
	if err != nil {
		return err
	}
	defer client.Close()
	return client.FlushAll(ctx).Err()
}

// losePower stops a machine: its disks lose what was not synced. In half of the cases the kernel had written some of
// the files, and in half of them the processors stood still before, so that only NATS has what was accepted.
func (w *nemesisWorld) losePower(t *testing.T, f nemesis.Fault) (end func() error, err error) {
	of := w.machines[f.Target]
	chance := w.chance(f.String())
	if f.Target == targetDisk && chance.IntN(2) == 0 {
		goOn := w.stopProcessors()
		defer goOn()
		time.Sleep(processorLag)
	}
	for _, name := range of.processes {
		w.busy[name].Lock()
		err = errors.Join(err, w.units[name].kill())
	}
	for _, disk := range of.disks {
		seed := ""
		if chance.IntN(2) == 0 {
			seed = fmt.Sprint(chance.Uint32())
		}
		disk.cut(t, seed)
	}
	end = func() (err error) {
		for _, name := range of.processes {
			err = errors.Join(err, w.units[name].run())
			w.busy[name].Unlock()
		}
		return err
	}
	return end, err
}

// processorLag is how long the processors stand still before a machine loses its power.
const processorLag = 300 * time.Millisecond

// stopProcessors lets the processors that no fault has hit stand still, until goOn is called.
func (w *nemesisWorld) stopProcessors() (goOn func()) {
	var stopped []string
	for _, name := range w.running() {
		if !strings.HasPrefix(name, "processor") || !w.busy[name].TryLock() {
			continue
		}
		_ = w.units[name].signal(syscall.SIGSTOP) // one that has ended stands still
		stopped = append(stopped, name)
	}
	return func() {
		for _, name := range stopped {
			_ = w.units[name].signal(syscall.SIGCONT)
			w.busy[name].Unlock()
		}
	}
}

// slowDisk lets each sync of a machine's disks take longer.
func (w *nemesisWorld) slowDisk(f nemesis.Fault) (end func() error, err error) {
	of := w.disks[f.Target]
	end = func() error { return of.tellDisks("slow 0s") }
	return end, of.tellDisks(fmt.Sprintf("slow %dms", f.Arg))
}

// fillDisk fills a machine's disks. Its processes are restarted when there is space again, as the runbook asks for:
// nats-server does not write to a stream again after a failed write.
func (w *nemesisWorld) fillDisk(f nemesis.Fault) (end func() error, err error) {
	of := w.disks[f.Target]
	for _, name := range of.processes {
		w.busy[name].Lock()
	}
	end = func() error {
		err := of.tellDisks("free")
		for _, name := range of.processes {
			err = errors.Join(err, w.units[name].kill(), w.units[name].run())
			w.busy[name].Unlock()
		}
		return err
	}
	return end, of.tellDisks("full")
}

// tellDisks sends a command to all disks.
func (m machine) tellDisks(command string) (err error) {
	for _, disk := range m.disks {
		_, failed := disk.command(command)
		err = errors.Join(err, failed)
	}
	return err
}

// electLeaders lets the cluster and each stream elect another leader.
func (w *nemesisWorld) electLeaders(ctx context.Context) error {
	nc, err := nats.Connect(w.natsURL("operator"))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	subjects := []string{"$JS.API.META.LEADER.STEPDOWN"}
	names := js.StreamNames(ctx)
	for name := range names.Name() {
		subjects = append(subjects, "$JS.API.STREAM.LEADER.STEPDOWN."+name)
	}
	for _, subject := range subjects {
		_ = nc.Publish(subject, nil) // a stream may have no leader now
	}
	return errors.Join(names.Err(), nc.Flush())
}
