package bus

import (
	"runtime"
	"slices"
	"sync"
	"time"
)

// keyedQueue runs tasks: those of one key one after the other in the order in which they were added, those of different keys
// beside each other, up to a number at once, or several in one call. A task that is to run again later frees its place until then.
// Goroutines exist only for what runs.
type keyedQueue struct {
	run         func(tasks []*task, outcomes []outcome) // tasks of different keys; outcomes has one place for each
	concurrency int                                     // calls of run at once
	most        int                                     // tasks in one call

	mu      sync.Mutex
	byKey   map[queueKey]*taskQueue // every key that has tasks
	ready   []*taskQueue            // keys whose first task may run now
	workers int
	running int // tasks that are being run
}

// queueKey is a key of one partition: two partitions may have the same key.
type queueKey struct {
	partition *partition
	key       string
}

// taskQueue is the queue of one key. Its first task is ready, running, or waits for its timer.
type taskQueue struct {
	key     queueKey
	tasks   []*task
	running bool
	timer   *time.Timer
	ended   chan struct{} // closes when the timer or something else has ended the wait
	turn    int           // counts the waits: what ends an old one changes nothing
}

// outcome is what a task wants after a try; the zero value is that it has ended.
type outcome struct {
	again bool
	after time.Duration
	ready <-chan struct{} // ends the wait early; nil: nothing does
}

func newKeyedQueue(concurrency, most int, run func([]*task, []outcome)) *keyedQueue {
	return &keyedQueue{run: run, concurrency: concurrency, most: most, byKey: make(map[queueKey]*taskQueue)}
}

// add puts each task after all of the same key. A call takes as many of them together as it may.
func (q *keyedQueue) add(tasks ...*task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, t := range tasks {
		key := queueKey{t.partition, t.key}
		if known, ok := q.byKey[key]; ok {
			known.tasks = append(known.tasks, t)
			continue
		}
		fresh := &taskQueue{key: key, tasks: []*task{t}}
		q.byKey[key] = fresh
		q.makeReady(fresh)
	}
}

// makeReady is called with the lock held.
func (q *keyedQueue) makeReady(k *taskQueue) {
	q.ready = append(q.ready, k)
	if q.workers < q.concurrency {
		q.workers++
		go q.work()
	}
}

// work runs tasks until none is ready.
func (q *keyedQueue) work() {
	held, tasks, outcomes := make([]*taskQueue, q.most), make([]*task, q.most), make([]outcome, q.most)
	for {
		n := q.next(held, tasks)
		if n == 0 {
			return
		}
		clear(outcomes[:n])
		q.run(tasks[:n], outcomes[:n])
		q.settle(held[:n], outcomes[:n])
		clear(held[:n])
		clear(tasks[:n])
	}
}

// next takes the first tasks of keys that are ready, and returns how many. At 0 the worker has ended.
func (q *keyedQueue) next(held []*taskQueue, tasks []*task) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.yieldToProducers()
	n := copy(held, q.ready)
	for i, k := range held[:n] {
		tasks[i], k.running = k.tasks[0], true
		k.key.partition.running++
	}
	clear(q.ready[:n])
	if q.ready = q.ready[n:]; len(q.ready) == 0 {
		q.ready = nil // its array would never shrink
	}
	if n == 0 {
		q.workers--
	}
	q.running += n
	return n
}

// yieldToProducers lets goroutines run first that are about to add more, where tasks are taken together. It is called with the lock held.
func (q *keyedQueue) yieldToProducers() {
	if q.most > 1 && len(q.ready) < q.most {
		q.mu.Unlock()
		runtime.Gosched()
		q.mu.Lock()
	}
}

// settle takes keys back from a worker.
func (q *keyedQueue) settle(held []*taskQueue, outcomes []outcome) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running -= len(held)
	for i, k := range held {
		p := k.key.partition
		k.running = false
		p.running--
		switch o := outcomes[i]; {
		case o.again && p.released:
			p.unfinished = append(p.unfinished, k.tasks...)
			delete(q.byKey, k.key)
		case o.again:
			q.wait(k, o)
		default:
			q.advance(k)
		}
		if p.released && p.running == 0 {
			close(p.idle)
		}
	}
}

// advance goes on with the next task of a key. It is called with the lock held.
func (q *keyedQueue) advance(k *taskQueue) {
	k.tasks[0] = nil
	if k.tasks = k.tasks[1:]; len(k.tasks) == 0 {
		delete(q.byKey, k.key)
		return
	}
	q.makeReady(k)
}

// wait lets the first task of a key run again later. It is called with the lock held.
func (q *keyedQueue) wait(k *taskQueue, o outcome) {
	if k.tasks[0].skipped.Load() { // since its last try began
		o.after = 0
	}
	k.turn++
	turn, ended := k.turn, make(chan struct{})
	k.timer, k.ended = time.AfterFunc(o.after, func() { q.retry(k, turn) }), ended
	if o.ready == nil {
		return
	}
	go func() {
		select {
		case <-o.ready:
			q.retry(k, turn)
		case <-ended:
		}
	}()
}

func (q *keyedQueue) retry(k *taskQueue, turn int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if k.timer != nil && k.turn == turn {
		k.endWait()
		q.makeReady(k)
	}
}

// retryNow lets a task run again now if it waits for that.
func (q *keyedQueue) retryNow(t *task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if k := q.byKey[queueKey{t.partition, t.key}]; k != nil && k.timer != nil && k.tasks[0] == t {
		k.endWait()
		q.makeReady(k)
	}
}

// endWait is called with the lock held.
func (k *taskQueue) endWait() {
	k.timer.Stop()
	close(k.ended)
	k.timer, k.ended = nil, nil
}

// release takes all tasks of a partition out that do not run, and returns them. p.idle closes when the others have ended; those that
// would have to run again are then in p.unfinished.
func (q *keyedQueue) release(p *partition) []*task {
	q.mu.Lock()
	defer q.mu.Unlock()
	p.released = true
	var left []*task
	for key, k := range q.byKey {
		switch {
		case key.partition != p:
		case k.running:
			left = append(left, k.tasks[1:]...)
			k.tasks = k.tasks[:1:1]
		default:
			if k.timer != nil {
				k.endWait()
			}
			left = append(left, k.tasks...)
			delete(q.byKey, key)
		}
	}
	q.ready = slices.DeleteFunc(q.ready, func(k *taskQueue) bool { return k.key.partition == p })
	if p.running == 0 {
		close(p.idle)
	}
	return left
}

// counts returns how many tasks run.
func (q *keyedQueue) counts() (running int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.running
}
