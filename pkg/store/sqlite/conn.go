package sqlite

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

// conn is a connection with its cached statements. It is not safe for concurrent use.
type conn struct {
	*sqlite.Conn
	wrote bool // the job may have changed something; see writer.apply
}

// query runs a statement and calls each for every row until each returns false.
func (c *conn) query(sql string, each func(*row) (more bool), args ...any) error {
	stmt, err := c.Prepare(sql)
	if err != nil {
		return err
	}
	for i, arg := range args {
		bind(stmt, i+1, arg)
	}
	for r := (&row{stmt: stmt}); ; r.column = 0 {
		there, err := stmt.Step()
		if err != nil || !there {
			return err
		}
		if !each(r) {
			return stmt.Reset()
		}
	}
}

// first runs a read-only statement, calls read with the first row, and reports whether a row exists.
func (c *conn) first(sql string, read func(*row), args ...any) (found bool, err error) {
	err = c.query(sql, func(r *row) bool {
		found = true
		read(r)
		return false
	}, args...)
	return found, err
}

// exec runs a statement that writes, and returns the number of changed rows. It must not have a RETURNING clause: with
// one, SQLite keeps a statement journal, which costs several times the change itself.
func (c *conn) exec(sql string, args ...any) (changed int, err error) {
	err = c.query(sql, func(*row) bool { return true }, args...)
	changed = c.Changes()
	c.wrote = c.wrote || changed > 0 || err != nil
	return changed, err
}

// How [conn.insert] treats a row whose key exists.
const (
	orFail    = `INSERT`
	orIgnore  = `INSERT OR IGNORE`
	orReplace = `INSERT OR REPLACE`
)

// insert writes a row and reports whether it did; columns are separated by commas, in the order of the values.
func (c *conn) insert(verb, table, columns string, values ...any) (written bool, err error) {
	marks := strings.Repeat("?, ", len(values)-1) + "?"
	changed, err := c.exec(verb+` INTO `+table+` (`+columns+`) VALUES (`+marks+`)`, values...)
	return changed > 0, err
}

// blob is a value for a column of the type BLOB. Other bytes are text.
type blob []byte

func bind(stmt *sqlite.Stmt, n int, arg any) {
	switch v := arg.(type) {
	case string:
		stmt.BindText(n, v)
	case []byte:
		stmt.BindText(n, string(v))
	case json.RawMessage:
		stmt.BindText(n, string(v))
	case blob:
		stmt.BindBytes(n, v)
	case int64:
		stmt.BindInt64(n, v)
	case int:
		stmt.BindInt64(n, int64(v))
	case bool:
		stmt.BindBool(n, v)
	case time.Time:
		if v.IsZero() {
			stmt.BindNull(n)
		} else {
			stmt.BindInt64(n, milliseconds(v))
		}
	case nil:
		stmt.BindNull(n)
	default:
		panic(fmt.Sprintf("sqlite: cannot bind a %T", arg))
	}
}

// milliseconds converts a time for a column. [store.UTC] truncates, also before 1970, where UnixMilli would round.
func milliseconds(t time.Time) int64 { return store.UTC(t).UnixMilli() }

// microseconds converts the time at which a message entered its chat for a column; 0 for the zero time.
func microseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return chat.EnteredAt(t).UnixMicro()
}

// row reads the columns of a result from left to right. It is valid until the next row.
type row struct {
	stmt   *sqlite.Stmt
	column int
	short  [64]byte
}

func (r *row) next() int {
	r.column++
	return r.column - 1
}

func (r *row) text() string { return r.stmt.ColumnText(r.next()) }

// repeated reads a text column. If the value equals before, the previous row's, it returns before without allocating.
func (r *row) repeated(before string) string {
	n := r.next()
	if size := r.stmt.ColumnLen(n); size == len(before) && size <= len(r.short) {
		r.stmt.ColumnBytes(n, r.short[:])
		if string(r.short[:size]) == before {
			return before
		}
	}
	return r.stmt.ColumnText(n)
}

func (r *row) int() int64 { return r.stmt.ColumnInt64(r.next()) }

func (r *row) float() float64 { return r.stmt.ColumnFloat(r.next()) }

func (r *row) bool() bool { return r.stmt.ColumnInt64(r.next()) != 0 }

func (r *row) bytes() []byte {
	n := r.next()
	b := make([]byte, r.stmt.ColumnLen(n))
	r.stmt.ColumnBytes(n, b)
	return b
}

func (r *row) time() time.Time {
	n := r.next()
	if r.stmt.ColumnIsNull(n) {
		return time.Time{}
	}
	return time.UnixMilli(r.stmt.ColumnInt64(n)).UTC()
}

// entered reads the time at which a message entered its chat.
func (r *row) entered() time.Time {
	n := r.next()
	if r.stmt.ColumnInt64(n) == 0 {
		return time.Time{}
	}
	return time.UnixMicro(r.stmt.ColumnInt64(n)).UTC()
}

// seconds reads a duration.
func (r *row) seconds() time.Duration { return time.Duration(r.int()) * time.Second }

// list decodes a JSON array written by listText; NULL is nil.
func list[V any](r *row) []V {
	text := r.text()
	if text == "" {
		return nil
	}
	var values []V
	if err := json.Unmarshal([]byte(text), &values); err != nil {
		panic(fmt.Sprintf("sqlite: a stored column is not JSON: %v", err))
	}
	return values
}

// listText returns the JSON array of values; NULL if there are none.
func listText[V any](values []V) any {
	if len(values) == 0 {
		return nil
	}
	text, err := json.Marshal(values)
	if err != nil {
		panic(fmt.Sprintf("sqlite: encoding a column: %v", err))
	}
	return string(text)
}

// configure runs the PRAGMAs of a connection.
func (c *conn) configure(settings string) error {
	c.SetBusyTimeout(busyTimeout)
	return c.script(settings)
}

// script runs statements in order, without a transaction.
func (c *conn) script(sql string) error {
	for sql = strings.TrimSpace(sql); sql != ""; {
		stmt, rest, err := c.PrepareTransient(sql)
		if err != nil {
			return err
		}
		if stmt != nil {
			_, err = stmt.Step()
			if err := errors.Join(err, stmt.Finalize()); err != nil {
				return err
			}
		}
		sql = strings.TrimSpace(sql[len(sql)-rest:])
	}
	return nil
}
