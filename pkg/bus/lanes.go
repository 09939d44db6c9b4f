package bus

import (
	"runtime"
	"sync"
	"time"
)

// lanes runs tasks: those of one key one after the other in the order in which they were added, those of different keys side
// by side on a fixed number of workers, or several at once in the hands of one. A task that wants to be run again later parks
// its lane and frees the worker.
type lanes struct {
	run  func(tasks []*task, verdicts []verdict) // tasks of different keys; verdicts has one place for each
	most int                                     // tasks that a worker takes at once

	mu      sync.Mutex
	wake    *sync.Cond
	byKey   map[string]*lane // every lane that has tasks
	ready   []*lane          // lanes whose first task may run now
	stopped bool
	workers sync.WaitGroup
}

// lane is the queue of one key. It is in one of three places: ready, in a worker's hands, or parked with a timer.
type lane struct {
	key   string
	tasks []*task
	timer *time.Timer
}

// verdict is what a task wants after a try; the zero value is that it has ended.
type verdict struct {
	again bool
	after time.Duration
}

func startLanes(workers, most int, run func([]*task, []verdict)) *lanes {
	l := &lanes{run: run, most: most, byKey: make(map[string]*lane)}
	l.wake = sync.NewCond(&l.mu)
	for range workers {
		l.workers.Go(l.work)
	}
	return l
}

// add puts t behind all tasks of the same key.
func (l *lanes) add(t *task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q, ok := l.byKey[t.key]; ok {
		q.tasks = append(q.tasks, t)
		return
	}
	q := &lane{key: t.key, tasks: []*task{t}}
	l.byKey[t.key] = q
	l.makeReady(q)
}

func (l *lanes) work() {
	held, tasks, verdicts := make([]*lane, l.most), make([]*task, l.most), make([]verdict, l.most)
	for {
		n := l.next(held, tasks)
		if n == 0 {
			return
		}
		clear(verdicts[:n])
		l.run(tasks[:n], verdicts[:n])
		l.settle(held[:n], verdicts[:n])
		clear(held[:n])
		clear(tasks[:n])
	}
}

// next waits for lanes whose first task may run, takes them, and returns how many they are. It is 0 when the lanes have
// stopped.
func (l *lanes) next(held []*lane, tasks []*task) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.ready) == 0 && !l.stopped {
		l.wake.Wait()
		l.letGather()
	}
	if l.stopped {
		return 0
	}
	n := copy(held, l.ready)
	for i, q := range held[:n] {
		tasks[i] = q.tasks[0]
	}
	clear(l.ready[:n])
	if l.ready = l.ready[n:]; len(l.ready) > 0 {
		l.wake.Signal()
	}
	return n
}

// letGather lets those run first who are about to add more, where tasks are taken together. It is called with the lock held.
func (l *lanes) letGather() {
	if l.most > 1 && len(l.ready) < l.most {
		l.mu.Unlock()
		runtime.Gosched()
		l.mu.Lock()
	}
}

// settle takes lanes back from a worker.
func (l *lanes) settle(held []*lane, verdicts []verdict) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, q := range held {
		if v := verdicts[i]; v.again {
			q.timer = time.AfterFunc(v.after, func() { l.unpark(q) })
			continue
		}
		q.tasks[0] = nil
		q.tasks = q.tasks[1:]
		if len(q.tasks) == 0 {
			delete(l.byKey, q.key)
			continue
		}
		l.makeReady(q)
	}
}

func (l *lanes) unpark(q *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.makeReady(q)
}

// makeReady is called with the lock held.
func (l *lanes) makeReady(q *lane) {
	l.ready = append(l.ready, q)
	l.wake.Signal()
}

// stop lets the tasks that run finish, starts no others, and returns those that are left.
func (l *lanes) stop() []*task {
	l.mu.Lock()
	l.stopped = true
	l.wake.Broadcast()
	l.mu.Unlock()
	l.workers.Wait()

	l.mu.Lock()
	defer l.mu.Unlock()
	var left []*task
	for _, q := range l.byKey {
		if q.timer != nil {
			q.timer.Stop()
		}
		left = append(left, q.tasks...)
	}
	return left
}
