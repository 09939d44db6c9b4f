package bus

// The order of the tries: sequential for a key, concurrent across keys. Readers add, consume_handle.go runs.

import (
	"runtime"
	"sync"
	"time"
)

// keyedQueue runs tasks: sequentially per key in the order of add, and concurrently across keys, up to a
// limit that tenants share (consume_shares.go). One call may run several tasks of different keys. A task that
// waits for a retry or for its tenant's share does not occupy a worker. Worker goroutines exist only while
// tasks are ready or running.
type keyedQueue struct {
	run         func(tasks []*task, results []tryResult) // runs tasks of different keys and sets their results by index
	concurrency int                                      // maximum number of concurrent calls of run
	maxBatch    int                                      // maximum number of tasks per call

	mu      sync.Mutex              // guards the fields below, and what their types say
	byKey   map[queueKey]*taskQueue // keys with tasks
	shares  shares                  // the keys whose first task can run
	workers int
	running int // number of running tasks
}

// queueKey is a key within a partition: two partitions may use the same key.
type queueKey struct {
	partition *partition
	key       string
}

// taskQueue is the queue of one key. Its first task is ready, running, or waiting for a retry.
type taskQueue struct {
	key     queueKey
	share   *share // of the tenant's part
	tasks   []*task
	running bool
	timer   *time.Timer
	waits   int // number of the current wait; a timer of an earlier wait is ignored
}

// tryResult is what a try asks of the queue; the zero value means that the task is finished.
type tryResult struct {
	again bool          // the task is tried again
	after time.Duration // delay before the next try
}

// newKeyedQueue returns an empty queue. limited bounds each tenant by its share; it needs a maxBatch of 1.
func newKeyedQueue(concurrency, maxBatch int, limited bool, run func([]*task, []tryResult)) *keyedQueue {
	return &keyedQueue{
		run: run, concurrency: concurrency, maxBatch: maxBatch,
		byKey: make(map[queueKey]*taskQueue), shares: newShares(limited),
	}
}

// add appends each task to the queue of its key, and starts workers as needed.
func (q *keyedQueue) add(tasks ...*task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.addLocked(tasks)
}

// addLocked is add for callers that hold mu.
func (q *keyedQueue) addLocked(tasks []*task) {
	for _, t := range tasks {
		key := queueKey{t.partition, t.key}
		if known, ok := q.byKey[key]; ok {
			known.tasks = append(known.tasks, t)
			continue
		}
		k := &taskQueue{key: key, share: q.shares.join(t.of), tasks: []*task{t}}
		q.byKey[key] = k
		q.makeReady(k)
	}
}

// makeReady marks a key as ready and starts a worker if the limit allows. Callers must hold mu.
func (q *keyedQueue) makeReady(k *taskQueue) {
	q.shares.add(k)
	q.startWorker()
}

// startWorker starts a worker if the limit allows. Callers must hold mu.
func (q *keyedQueue) startWorker() {
	if q.workers < q.concurrency {
		q.workers++
		go q.work()
	}
}

// free returns the number of tasks that can start. Callers must hold mu.
func (q *keyedQueue) free() int { return q.concurrency - q.running }

// work runs tasks until none is ready.
func (q *keyedQueue) work() {
	held := make([]*taskQueue, q.maxBatch)
	tasks := make([]*task, q.maxBatch)
	results := make([]tryResult, q.maxBatch)
	for {
		n := q.next(held, tasks)
		if n == 0 {
			return
		}
		clear(results[:n])
		q.run(tasks[:n], results[:n])
		q.complete(held[:n], results[:n])
		clear(held[:n])
		clear(tasks[:n])
	}
}

// next moves the first tasks of ready keys into tasks and returns their number. At 0 the worker must end.
func (q *keyedQueue) next(held []*taskQueue, tasks []*task) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.yieldToProducers()
	n := 0
	for ; n < len(held); n++ {
		k := q.shares.take(q.free())
		if k == nil {
			break
		}
		held[n] = k
		tasks[n] = k.tasks[0]
		k.running = true
		k.key.partition.runningTasks++
		q.running++
	}
	if n == 0 {
		q.workers--
		return 0
	}
	// The end of a task may let two tenants run one more each, and the worker of an earlier one has ended.
	if q.shares.limited && q.shares.next(q.free()) >= 0 {
		q.startWorker()
	}
	return n
}

// yieldToProducers lets goroutines that are about to add tasks run first, if the queue runs batches. Callers
// must hold mu.
func (q *keyedQueue) yieldToProducers() {
	if q.maxBatch > 1 && q.shares.ready() < q.maxBatch {
		q.mu.Unlock()
		runtime.Gosched()
		q.mu.Lock()
	}
}

// complete applies the results of tasks that have run.
func (q *keyedQueue) complete(held []*taskQueue, results []tryResult) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running -= len(held)
	for i, k := range held {
		p := k.key.partition
		k.running = false
		k.share.addRunning(-1)
		p.runningTasks--
		switch result := results[i]; {
		case result.again && p.released:
			p.unfinished = append(p.unfinished, k.tasks...)
			q.remove(k)
		case result.again:
			q.wait(k, result.after)
		default:
			q.advance(k)
		}
		if p.released && p.runningTasks == 0 {
			close(p.idle)
		}
	}
}

// advance removes the first task of a key and makes the next one ready. Callers must hold mu.
func (q *keyedQueue) advance(k *taskQueue) {
	k.tasks[0] = nil
	k.tasks = k.tasks[1:]
	if len(k.tasks) == 0 {
		q.remove(k)
		return
	}
	q.makeReady(k)
}

// remove removes a key. Callers must hold mu.
func (q *keyedQueue) remove(k *taskQueue) {
	delete(q.byKey, k.key)
	q.shares.leave(k)
}

// wait schedules a retry of the first task of a key. Callers must hold mu.
func (q *keyedQueue) wait(k *taskQueue, after time.Duration) {
	if k.tasks[0].skipped.Load() { // skipped since its last try started
		after = 0
	}
	k.waits++
	wait := k.waits
	k.timer = time.AfterFunc(after, func() { q.retry(k, wait) })
}

func (q *keyedQueue) retry(k *taskQueue, wait int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if k.timer != nil && k.waits == wait {
		k.endWait()
		q.makeReady(k)
	}
}

// retryNow ends the wait of a task for its retry, if it is waiting.
func (q *keyedQueue) retryNow(t *task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if k := q.byKey[queueKey{t.partition, t.key}]; k != nil && k.timer != nil && k.tasks[0] == t {
		k.endWait()
		q.makeReady(k)
	}
}

// endWait stops the timer. Callers must hold mu.
func (k *taskQueue) endWait() {
	k.timer.Stop()
	k.timer = nil
}

// release removes and returns all tasks of a partition that are not running. p.idle is closed when the
// running ones have ended; p.unfinished then holds those that need a retry.
func (q *keyedQueue) release(p *partition) []*task {
	q.mu.Lock()
	defer q.mu.Unlock()
	p.released = true
	var left []*task
	q.shares.drop(func(k *taskQueue) bool { return k.key.partition == p })
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
			q.remove(k)
		}
	}
	if p.runningTasks == 0 {
		close(p.idle)
	}
	return left
}

// runningCount returns the number of running tasks.
func (q *keyedQueue) runningCount() (running int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.running
}
