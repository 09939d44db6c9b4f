package redisadapter

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// linkIdle is how long a connection may have been unused before it is tried out: one that was closed meanwhile
// must not cost a message.
const linkIdle = time.Second

// direct sends to one server, on a connection of its own.
type direct struct {
	client  *redis.Client
	command string
	timeout time.Duration

	link *redisConn // nil if there is none
	in   *respReader
	used time.Time // when it last worked
	out  []byte
}

func (d *direct) send(batch []*publication) {
	ctx, cancel := context.WithTimeout(context.Background(), d.timeout)
	defer cancel()
	if err := d.connect(ctx); err != nil {
		failAll(batch, err)
		return
	}
	d.encode(batch)
	if d.exchange(batch) != nil {
		d.close()
	}
	d.used = time.Now()
	if cap(d.out) > maxKept {
		d.out = nil
	}
}

func (d *direct) encode(batch []*publication) {
	d.out = d.out[:0]
	for _, pub := range batch {
		pub.each(func(m *message, payload []byte) {
			d.out = appendBulk(appendHeadRESP(d.out, '*', 3), d.command)
			d.out = appendBulk(appendBulk(d.out, m.channel), payload)
		})
	}
}

// connect makes sure of a connection that works.
func (d *direct) connect(ctx context.Context) error {
	if d.link != nil && time.Since(d.used) > linkIdle && d.ping() != nil {
		d.close()
	}
	if d.link != nil {
		return nil
	}
	l, err := dial(ctx, d.client)
	if err != nil {
		return err
	}
	d.link, d.in = l, newRESPReader(l.conn)
	return nil
}

func (d *direct) ping() error {
	if err := d.link.conn.SetDeadline(time.Now().Add(d.timeout)); err != nil {
		return err
	}
	if _, err := d.link.conn.Write(appendCommand(nil, "PING")); err != nil {
		return err
	}
	_, err := d.in.status()
	return err
}

// exchange writes all and reads all answers. An error of Redis belongs to its message alone; one of the connection to
// all messages that are not answered yet.
func (d *direct) exchange(batch []*publication) error {
	if err := d.link.conn.SetDeadline(time.Now().Add(d.timeout)); err != nil {
		return err
	}
	_, broken := d.link.conn.Write(d.out)
	for _, pub := range batch {
		pub.each(func(m *message, _ []byte) {
			if broken == nil {
				m.err, broken = d.in.status()
			}
			if broken != nil {
				m.err = broken
			}
		})
	}
	return broken
}

func (d *direct) close() {
	if d.link != nil {
		d.link.close()
		d.link, d.in = nil, nil
	}
}

func failAll(batch []*publication, err error) {
	for _, pub := range batch {
		pub.each(func(m *message, _ []byte) { m.err = err })
	}
}

// routed lets go-redis find the node for each message, as a cluster needs it.
type routed struct {
	client  redis.UniversalClient
	command string
	timeout time.Duration
}

func (r *routed) send(batch []*publication) {
	ctx, cancel := context.WithTimeout(context.Background(), r.timeout)
	defer cancel()
	pipe := r.client.Pipeline()
	results := make(map[*message]*redis.Cmd)
	for _, pub := range batch {
		pub.each(func(m *message, payload []byte) { results[m] = pipe.Do(ctx, r.command, m.channel, payload) })
	}
	_, _ = pipe.Exec(ctx) // tells each command its error; if a connection fails, that is all commands on it
	for m, result := range results {
		m.err = result.Err()
	}
}

func (r *routed) close() {}
