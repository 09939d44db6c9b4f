package abusetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// mutateMember changes one random value of a JSON body; it changes a form with mutateForm.
func (m *Mutator) mutateMember(r *Request) {
	if isForm(r) {
		m.mutateForm(r)
		return
	}
	decoder := json.NewDecoder(bytes.NewReader(r.Body))
	decoder.UseNumber()
	var root any
	if decoder.Decode(&root) != nil {
		r.Body = []byte(m.value(0))
		return
	}
	root = m.mutateNode(root)
	if text, err := json.Marshal(root); err == nil {
		r.Body = text
	}
}

// raw is text that is written unchanged, valid JSON or not.
type raw string

// MarshalJSON implements [json.Marshaler].
func (r raw) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// mutateNode descends at random and changes the node that it reaches.
func (m *Mutator) mutateNode(node any) any {
	switch n := node.(type) {
	case map[string]any:
		if len(n) > 0 && !m.oneIn(8) {
			return m.mutateObject(n)
		}
	case []any:
		if len(n) > 0 && !m.oneIn(4) {
			return m.mutateArray(n)
		}
	case string:
		if m.oneIn(2) {
			return m.mutateText(n)
		}
	}
	return raw(m.value(0))
}

func (m *Mutator) mutateObject(n map[string]any) any {
	names := sortedKeys(n)
	name := m.pick(names)
	switch m.rng.IntN(9) {
	case 0:
		delete(n, name)
	case 1:
		n[m.pick(words)] = raw(m.value(0))
	case 2:
		n[strings.ToUpper(name)] = n[name]
		delete(n, name)
	case 3:
		n[name] = []any{n[name]}
	case 4:
		n[name] = map[string]any{m.pick([]string{"$gt", "$set", name, ""}): n[name]}
	case 5:
		n[name] = n[m.pick(names)]
	default:
		n[name] = m.mutateNode(n[name])
	}
	return n
}

func (m *Mutator) mutateArray(n []any) any {
	i := m.rng.IntN(len(n))
	switch m.rng.IntN(6) {
	case 0:
		return slices.Delete(n, i, i+1)
	case 1:
		return append(n, raw(m.value(0)))
	case 2:
		return slices.Repeat(n, 1+m.rng.IntN(60))
	}
	n[i] = m.mutateNode(n[i])
	return n
}

func (m *Mutator) mutateText(s string) any {
	switch m.rng.IntN(4) {
	case 0:
		return s + m.pick(words)
	case 1:
		return m.pick(words) + s
	case 2:
		return strings.Repeat(s, 1+m.rng.IntN(200))
	}
	at := m.rng.IntN(len(s) + 1)
	return s[:at]
}

// value returns JSON of any kind, sometimes malformed.
func (m *Mutator) value(depth int) string {
	switch m.rng.IntN(16) {
	case 0:
		return "null"
	case 1:
		return m.pick([]string{"true", "false", "True"})
	case 2:
		return m.pick([]string{"0", "-0", "-1", "1e308", "1e309", "1E-400", "12345678901234567890", "01", "1.", ".5", "-", "+1", "0x1", "1_000", strings.Repeat("1", 300)})
	case 3:
		return m.pick([]string{"{", "[", "}", "]", `"`, `"\`, `"\u12`, `"\ud800"`, `"\udc00\ud800"`, `"\u0000"`, "\"\x01\"", "\"\xff\"", "//", "NaN", "nul", ",", ":", "'x'"})
	case 4:
		n := 1 + m.rng.IntN(80)
		return strings.Repeat("[", n) + strings.Repeat("]", n)
	case 5:
		n := 1 + m.rng.IntN(80)
		return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n)
	case 6:
		return `{"a":1,"a":2}`
	case 7:
		return "[" + strings.TrimSuffix(strings.Repeat(`"x",`, 1+m.rng.IntN(400)), ",") + "]"
	case 8, 9:
		if depth < 3 {
			return fmt.Sprintf(`{%s:%s,"text":%s}`, quote(m.pick(words)), m.value(depth+1), m.value(depth+1))
		}
	}
	return quote(m.pick(words))
}

// quote writes a JSON string and leaves invalid UTF-8 as it is.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ':
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// mutateBytes changes random bytes.
func (m *Mutator) mutateBytes(r *Request) {
	if len(r.Body) == 0 {
		r.Body = []byte(m.pick(words))
		return
	}
	at := m.rng.IntN(len(r.Body))
	upTo := at + m.rng.IntN(len(r.Body)-at) + 1
	switch m.rng.IntN(8) {
	case 0:
		r.Body[at] ^= 1 << m.rng.IntN(8)
	case 1:
		r.Body = r.Body[:at]
	case 2:
		r.Body = slices.Delete(r.Body, at, upTo)
	case 3:
		r.Body = slices.Insert(r.Body, at, []byte(m.pick(words))...)
	case 4:
		r.Body = slices.Insert(r.Body, at, slices.Clone(r.Body[at:upTo])...)
	case 5:
		r.Body = append(r.Body, m.pick([]string{"{}", " ", "\n", "\x00", "]", "}", ",", "x"})...)
	case 6:
		r.Body = slices.Concat([]byte(m.pick([]string{"\ufeff", " ", "[", "\x00", "\xff"})), r.Body)
	case 7:
		for range 1 + m.rng.IntN(10) {
			r.Body[m.rng.IntN(len(r.Body))] = byte(m.rng.IntN(256))
		}
	}
}

// mutateSize makes the body large, around the limits.
func (m *Mutator) mutateSize(r *Request) {
	const limit = 1 << 20
	size := m.pick([]string{"below", "at", "above", "some"})
	want := map[string]int{"below": limit - 1, "at": limit, "above": limit + 1, "some": 64 << 10}[size]
	if size != "some" && !m.oneIn(4) { // a megabyte takes time
		want = 100 << 10
	}
	if want > len(r.Body) {
		pad := bytes.Repeat([]byte{m.pick([]string{" ", "a", "[", "\n"})[0]}, want-len(r.Body))
		r.Body = slices.Insert(r.Body, m.rng.IntN(len(r.Body)+1), pad...)
	}
}

// mutateFraming truncates the body, hides its length, or removes it.
func (m *Mutator) mutateFraming(r *Request) {
	switch m.rng.IntN(4) {
	case 0:
		r.Cut = true
	case 1:
		r.Unsized = true
	case 2:
		r.Body = nil
	case 3:
		r.Cut, r.Unsized, r.Body = true, true, nil
	}
}
